/* Affinities of neighbours; defined in `_detail/affinities.py`. */

#include "kernels.h"
#include "threads.h"

#define MOST_EDGES 128 /* most edges of a row for which paths are searched, see `affinities.py` */

struct edges {
    int64_t r;
    const int64_t *ends;
    const int32_t *columns;
    const float *X;
    float *steps;
};

/* Prim's algorithm: the next neighbour is the one whose longest step is shortest; it may shorten the longest steps to
   the others. */
static void shorten(const struct edges *e, const int32_t *columns, int64_t k, float *steps)
{
    int32_t left[MOST_EDGES]; /* those not reached yet */
    for (int32_t j = 0; j < k; j++) {
        left[j] = j;
        steps[j] *= steps[j];
    }
    for (int64_t n = k; n > 1; n--) {
        int64_t at = 0;
        for (int64_t j = 1; j < n; j++)
            at = steps[left[j]] < steps[left[at]] ? j : at;
        const float so_far = steps[left[at]], *x = e->X + columns[left[at]] * e->r;
        left[at] = left[n - 1];
        for (int64_t j = 0; j < n - 1; j++) {
            float *step = steps + left[j];
            if (*step <= so_far)
                continue;
            const float direct = squared_distance(x, e->X + columns[left[j]] * e->r, e->r);
            const float longest = direct > so_far ? direct : so_far;
            *step = longest < *step ? longest : *step;
        }
    }
    for (int64_t j = 0; j < k; j++)
        steps[j] = sqrtf(steps[j]);
}

static void shorten_rows(const void *arguments, int64_t first, int64_t last)
{
    const struct edges *e = arguments;
    for (int64_t i = first; i < last; i++) {
        const int64_t start = e->ends[i], k = e->ends[i + 1] - start;
        if (k <= MOST_EDGES)
            shorten(e, e->columns + start, k, e->steps + start);
    }
}

/* Replaces the lengths of the edges (`steps`) by the longest steps of the best paths to the neighbours. */
KERNEL(longest_steps)(int64_t n_threads, int64_t n, int64_t r, const int64_t *ends, const int32_t *columns,
                      const float *X, float *steps)
{
    const struct edges edges = {r, ends, columns, X, steps};
    for_rows(n_threads, n, ROWS / 8, shorten_rows, &edges);
}
