/* Nearest-neighbour search; defined in `_detail/neighbors.py`. A heap per query holds its k nearest points so far, the
   farthest first. An entry of a heap is a key that sorts like the distance, then the index of the point. */

#include "kernels.h"

#define STEP 64 /* columns compared at a time with the farthest so far */
#define EMPTY UINT64_MAX

static inline uint64_t key_of(float value, int64_t index)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u; /* sorts like the value */
    return (uint64_t)bits << 32 | (uint32_t)index;
}

static inline float value_of(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    float value;
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    memcpy(&value, &bits, sizeof value);
    return key == EMPTY ? INFINITY : value;
}

static inline void push(uint64_t key, int64_t k, uint64_t *heap)
{
    int64_t at = 0;
    for (int64_t child = 1; child < k; child = 2 * at + 1) { /* replace the farthest, and sift down */
        child += child + 1 < k && heap[child] < heap[child + 1];
        if (key >= heap[child])
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* Adds the columns first, first + 1, ... of each row of D (rows x columns), except `itself`, to the heap of the row (k
   keys), which is initially empty. */
KERNEL(smallest)(int64_t rows, int64_t columns, const float *D, int64_t first, const int64_t *itself, int64_t k,
                 uint64_t *heaps)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = D + i * columns;
        uint64_t *heap = heaps + i * k;
        for (int64_t start = 0; start < columns; start += STEP) {
            int64_t stop = start + STEP < columns ? start + STEP : columns;
            float farthest = value_of(heap[0]);
            int any = 0;
#pragma omp simd reduction(| : any)
            for (int64_t j = start; j < stop; j++)
                any |= row[j] < farthest;
            for (int64_t j = start; any && j < stop; j++)
                if (row[j] < farthest && first + j != itself[i]) {
                    push(key_of(row[j], first + j), k, heap);
                    farthest = value_of(heap[0]);
                }
        }
    }
}

#define TOGETHER 4 /* queries compared with the same points at a time */
#define AT_ONCE 32 /* coordinates summed at a time: for most points, the first ones show that they are too far */
#define SHARED 256 /* queries among which these are chosen, so that the points of a cell stay in the cache */

/* Adds the points start, ..., stop - 1 to the heaps of some queries, except each query itself. */
static void add_points(int64_t start, int64_t stop, int64_t r, int64_t k, const float *X,
                       const float *const queries[TOGETHER], const int64_t itself[TOGETHER],
                       uint64_t *const heaps[TOGETHER])
{
    const float *q0 = queries[0], *q1 = queries[1], *q2 = queries[2], *q3 = queries[3];
    float f0 = value_of(heaps[0][0]), f1 = value_of(heaps[1][0]);
    float f2 = value_of(heaps[2][0]), f3 = value_of(heaps[3][0]);
    for (int64_t j = start; j < stop; j += LANES) {
        const float *x = X + j * r;
        float squared[TOGETHER][LANES] = {{0}};
        int any = 1; /* whether any may be nearer than the farthest so far */
        for (int64_t from = 0; any && from < r; from += AT_ONCE) {
            for (int64_t m = from; m < r && m < from + AT_ONCE; m++)
#pragma omp simd
                for (int l = 0; l < LANES; l++) {
                    const float v = x[m * LANES + l];
                    squared[0][l] += (v - q0[m]) * (v - q0[m]);
                    squared[1][l] += (v - q1[m]) * (v - q1[m]);
                    squared[2][l] += (v - q2[m]) * (v - q2[m]);
                    squared[3][l] += (v - q3[m]) * (v - q3[m]);
                }
            any = 0;
#pragma omp simd reduction(| : any)
            for (int l = 0; l < LANES; l++)
                any |= (squared[0][l] < f0) | (squared[1][l] < f1) | (squared[2][l] < f2) | (squared[3][l] < f3);
        }
        if (!any)
            continue;
        uint32_t first = 0, second = 0; /* a bit for each point that is nearer to one of two queries */
#pragma omp simd reduction(| : first, second)
        for (int l = 0; l < LANES; l++) {
            first |= (squared[0][l] < f0 ? 1u << l : 0) | (squared[1][l] < f1 ? 0x10000u << l : 0);
            second |= (squared[2][l] < f2 ? 1u << l : 0) | (squared[3][l] < f3 ? 0x10000u << l : 0);
        }
        uint32_t near[2] = {first, second};
        for (int pair = 0; pair < 2; pair++)
            for (; near[pair]; near[pair] &= near[pair] - 1) {
                const int bit = __builtin_ctz(near[pair]), i = 2 * pair + bit / LANES;
                const int64_t index = j + bit % LANES;
                const uint64_t key = key_of(squared[i][bit % LANES], index);
                if (key < heaps[i][0] && index != itself[i])
                    push(key, k, heaps[i]);
            }
        f0 = value_of(heaps[0][0]);
        f1 = value_of(heaps[1][0]);
        f2 = value_of(heaps[2][0]);
        f3 = value_of(heaps[3][0]);
    }
}

/* The points nearest to each query (k distances and positions, nearest first) in some cells (rows x reach), except the
   position `itself`; missing ones have distance infinity and position -1. X stores the coordinates of LANES points side by
   side, and cell c has the points starts[c] to stops[c] - 1; both are multiples of LANES. */
KERNEL(nearest_in_cells)(int64_t rows, int64_t reach, int64_t r, int64_t k, const float *X, const int64_t *starts,
                         const int64_t *stops, const float *queries, const int64_t *itself, const int64_t *cells,
                         uint64_t *heaps, float *distances, int64_t *found)
{
    uint64_t none = 0; /* a heap to which nothing is added */
    for (int64_t first = 0; first < rows; first += SHARED) {
        const int64_t last = first + SHARED < rows ? first + SHARED : rows;
        int64_t done[SHARED] = {0}; /* number of cells */
        for (int64_t cell = 0; cell < INT64_MAX;) {
            const float *q[TOGETHER];
            uint64_t *heap[TOGETHER];
            int64_t own[TOGETHER] = {0}, chosen = 0, next = INT64_MAX;
            for (int64_t i = first; i < last; i++) {
                const int64_t *rest = cells + i * reach + done[i - first], *end = cells + (i + 1) * reach;
                if (rest < end && *rest == cell) {
                    q[chosen] = queries + i * r;
                    own[chosen] = itself[i];
                    heap[chosen++] = heaps + i * k;
                    done[i - first]++;
                    rest++;
                }
                if (rest < end && *rest < next)
                    next = *rest;
                for (; i == last - 1 && chosen % TOGETHER > 0; chosen++) { /* fill up */
                    q[chosen] = q[0];
                    heap[chosen] = &none;
                }
                if (chosen == TOGETHER) {
                    add_points(starts[cell], stops[cell], r, k, X, q, own, heap);
                    chosen = 0;
                }
            }
            cell = next;
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        uint64_t *heap = heaps + i * k;
        for (int64_t last = k - 1; last >= 0; last--) { /* the farthest of the rest */
            distances[i * k + last] = sqrtf(value_of(heap[0]));
            found[i * k + last] = heap[0] == EMPTY ? -1 : (int64_t)(uint32_t)heap[0];
            push(heap[last], last, heap);
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
            for (; at > 0 && key_of(squared, which) < key_of(distance[at - 1], index[at - 1]); at--) {
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
