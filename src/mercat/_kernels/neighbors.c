/* Nearest-neighbour search; defined in `_detail/neighbors.py`. A heap per query holds its k nearest points so far, the
   farthest first. */

#include "kernels.h"

#define STEP 64 /* columns compared at a time with the farthest so far */

/* Whether point i at distance a comes before point j at distance b. */
static int before(float a, int64_t i, float b, int64_t j) { return a < b || (a == b && i < j); }

static void push(float value, int64_t index, int64_t k, float *values, int64_t *indices)
{
    int64_t at = 0;
    for (int64_t child = 1; child < k; child = 2 * at + 1) { /* replace the farthest, and sift down */
        child += child + 1 < k && before(values[child], indices[child], values[child + 1], indices[child + 1]);
        if (!before(value, index, values[child], indices[child]))
            break;
        values[at] = values[child];
        indices[at] = indices[child];
        at = child;
    }
    values[at] = value;
    indices[at] = index;
}

/* Adds the columns first, first + 1, ... of each row of D (rows x columns), except `itself`, to the heap of the row (k
   values and indices), which is initialized with infinities. */
KERNEL(smallest)(int64_t rows, int64_t columns, const float *D, int64_t first, const int64_t *itself, int64_t k,
                 float *values, int64_t *indices)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = D + i * columns;
        float *heap = values + i * k;
        for (int64_t start = 0; start < columns; start += STEP) {
            int64_t stop = start + STEP < columns ? start + STEP : columns;
            float farthest = heap[0];
            int any = 0;
#pragma omp simd reduction(| : any)
            for (int64_t j = start; j < stop; j++)
                any |= row[j] < farthest;
            for (int64_t j = start; any && j < stop; j++)
                if (row[j] < heap[0] && first + j != itself[i])
                    push(row[j], first + j, k, heap, indices + i * k);
        }
    }
}

/* Adds the points of some cells (rows x reach) to the heap of each query (k squared distances and positions), which is
   initialized with infinities. X stores the coordinates of LANES points side by side, and cell c has the points
   starts[c] to starts[c + 1] - 1; both are multiples of LANES. */
KERNEL(nearest_in_cells)(int64_t rows, int64_t reach, int64_t r, int64_t k, const float *X, const int64_t *starts,
                         const float *queries, const int64_t *cells, float *values, int64_t *indices)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *q = queries + i * r;
        float *heap = values + i * k;
        for (int64_t c = 0; c < reach; c++) {
            const int64_t stop = starts[cells[i * reach + c] + 1];
            for (int64_t j = starts[cells[i * reach + c]]; j < stop; j += LANES) {
                const float *x = X + j * r, farthest = heap[0];
                float squared[LANES] = {0};
                int any = 1;
                for (int64_t from = 0; any && from < r; from += LANES) { /* most are too far already */
                    for (int64_t m = from; m < r && m < from + LANES; m++)
#pragma omp simd
                        for (int l = 0; l < LANES; l++)
                            squared[l] += (x[m * LANES + l] - q[m]) * (x[m * LANES + l] - q[m]);
                    any = 0;
#pragma omp simd reduction(| : any)
                    for (int l = 0; l < LANES; l++)
                        any |= squared[l] < farthest;
                }
                for (int l = 0; any && l < LANES; l++)
                    if (squared[l] < heap[0])
                        push(squared[l], j + l, k, heap, indices + i * k);
            }
        }
    }
}

/* Sorts the points found for each query (rows x k indices into X) by distance, then by index. */
KERNEL(in_order)(int64_t rows, int64_t k, int64_t r, const float *X, const float *queries, int64_t *found,
                 float *distances)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *q = queries + i * r;
        int64_t *index = found + i * k;
        float *distance = distances + i * k;
        for (int64_t l = 0; l < k; l++) {
            const int64_t which = index[l];
            const float squared = squared_distance(X + which * r, q, r);
            int64_t at = l;
            for (; at > 0 && before(squared, which, distance[at - 1], index[at - 1]); at--) {
                distance[at] = distance[at - 1];
                index[at] = index[at - 1];
            }
            distance[at] = squared;
            index[at] = which;
        }
        for (int64_t l = 0; l < k; l++)
            distance[l] = sqrtf(distance[l]);
    }
}
