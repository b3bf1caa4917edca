/* The field of all points on a grid; defined in `_detail/repulsion.py`. */

#include "kernels.h"
#include "threads.h"

#define GHOSTS 2
#define NODES 8192 /* of a grid, per thread at a time */
#define PI 3.14159265358979323846f

/* atan2 to within 2 ulp of the C library, without branches (polynomial from the Cephes library). */
static inline float arctan2(float y, float x)
{
    float u = fabsf(x), v = fabsf(y);
    float large = u > v ? u : v, small = u > v ? v : u;
    float t = small / (large > 0 ? large : 1);
    int far = t > 0.41421356f;
    t = far ? (t - 1) / (t + 1) : t;
    float z = t * t;
    float p = ((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f;
    float angle = p * z * t + t + (far ? PI / 4 : 0);
    angle = v > u ? PI / 2 - angle : angle;
    angle = x < 0 ? PI - angle : angle;
    return y < 0 ? -angle : angle;
}

static inline float clamped(float value, float low, float high)
{
    value = value > low ? value : low; /* NaN becomes low */
    return value < high ? value : high;
}

/* Weights of the nodes -1, 0, 1, 2 for value and slope at a position t between 0 and 1. */
static inline void cubic(float t, float value[4], float slope[4])
{
    float u = 1 - t;
    value[0] = u * u * u / 6;
    value[1] = (4 - t * t * (6 - 3 * t)) / 6;
    value[2] = (4 - u * u * (6 - 3 * u)) / 6;
    value[3] = t * t * t / 6;
    slope[0] = -u * u / 2;
    slope[1] = t * (3 * t - 4) / 2;
    slope[2] = u * (4 - 3 * u) / 2;
    slope[3] = t * t / 2;
}

/* Positions of LANES points on the grid. */
struct places {
    int32_t row[LANES], column[LANES]; /* the second of four each; rows include those beyond the pole */
    float down[LANES], right[LANES];
};

static void locate(const float *Y, int64_t count, int64_t n_rows, int64_t n_columns, struct places *p)
{
    float x[LANES], y[LANES], z[LANES];
    for (int l = 0; l < LANES; l++) {
        const float *here = Y + 3 * (l < count ? l : 0); /* always all lanes, for the same bits */
        x[l] = here[0];
        y[l] = here[1];
        z[l] = here[2];
    }
    float rows = n_rows / PI, columns = n_columns / (2 * PI), half = n_columns / 2.0f;
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        float row = (arctan2(z[l], sqrtf(x[l] * x[l] + y[l] * y[l])) + PI / 2) * rows - 0.5f + GHOSTS;
        float column = clamped(arctan2(y[l], x[l]) * columns, -half, half);
        row = clamped(row, GHOSTS - 0.5f, n_rows + GHOSTS - 0.5f);
        float above = floorf(row), left = floorf(column);
        p->down[l] = row - above;
        p->right[l] = column - left;
        p->row[l] = (int32_t)above;
        p->column[l] = (int32_t)left;
    }
}

static inline int64_t around(int64_t column, int64_t n_columns)
{
    column += column < 0 ? n_columns : 0;
    return column >= n_columns ? column - n_columns : column;
}

struct grid {
    int64_t n, n_rows, n_columns, size, block; /* points, grid, points per block */
    const float *Y;
    float *values, *charge, *slope; /* `values` are on one grid, or on one grid per block */
};

/* Spreads unit charges of the points of some blocks on the grids of these blocks. */
static void spread(const void *arguments, int64_t first, int64_t last)
{
    const struct grid g = *(const struct grid *)arguments;
    struct places p;
    float down[4], right[4], slope[4];
    for (int64_t b = first; b < last; b++) {
        float *grid = g.values + b * g.size;
        memset(grid, 0, sizeof(float) * g.size);
        int64_t stop = (b + 1) * g.block < g.n ? (b + 1) * g.block : g.n;
        for (int64_t start = b * g.block; start < stop; start += LANES) {
            int64_t count = stop - start < LANES ? stop - start : LANES;
            locate(g.Y + 3 * start, count, g.n_rows, g.n_columns, &p);
            for (int l = 0; l < count; l++) {
                cubic(p.down[l], down, slope);
                cubic(p.right[l], right, slope);
                for (int c = 0; c < 4; c++) {
                    float *cell = grid + (p.row[l] - 1) * g.n_columns + around(p.column[l] + c - 1, g.n_columns);
                    for (int r = 0; r < 4; r++)
                        cell[r * g.n_columns] += down[r] * right[c];
                }
            }
        }
    }
}

/* Sums the grids of all blocks at some nodes. */
static void add_up(const void *arguments, int64_t first, int64_t last)
{
    const struct grid g = *(const struct grid *)arguments;
    memset(g.charge + first, 0, sizeof(float) * (last - first));
    for (int64_t b = 0; b * g.block < g.n; b++)
        for (int64_t i = first; i < last; i++)
            g.charge[i] += g.values[b * g.size + i];
}

/* Spreads unit charges of n points Y on a grid of n_rows + 2 GHOSTS rows; `grids` holds one grid per block. */
KERNEL(charge)(int64_t n_threads, int64_t n, const float *Y, int64_t n_rows, int64_t n_columns, int64_t block, float *grids,
               float *charge)
{
    const int64_t size = (n_rows + 2 * GHOSTS) * n_columns;
    struct grid grid = {n, n_rows, n_columns, size, block, Y, grids, charge, NULL};
    for_rows(n_threads, (n + block - 1) / block, 1, spread, &grid);
    for_rows(n_threads, size, NODES, add_up, &grid);
}

static void read_at(const void *arguments, int64_t first, int64_t last)
{
    const struct grid g = *(const struct grid *)arguments;
    struct places p;
    float down[4], right[4], along_down[4], along_right[4];
    float rows = g.n_rows / PI, columns = g.n_columns / (2 * PI), least = 1e-3f / g.n_rows;
    for (int64_t start = first; start < last; start += LANES) {
        int64_t count = last - start < LANES ? last - start : LANES;
        locate(g.Y + 3 * start, count, g.n_rows, g.n_columns, &p);
        for (int l = 0; l < count; l++) {
            float level = 0, along = 0, across = 0;
            cubic(p.down[l], down, along_down);
            cubic(p.right[l], right, along_right);
            int64_t at[4];
            for (int c = 0; c < 4; c++)
                at[c] = around(p.column[l] + c - 1, g.n_columns);
            for (int r = 0; r < 4; r++) {
                const float *cell = g.values + (p.row[l] - 1 + r) * g.n_columns;
                float sum = 0, change = 0;
                for (int c = 0; c < 4; c++) {
                    sum += cell[at[c]] * right[c];
                    change += cell[at[c]] * along_right[c];
                }
                level += down[r] * sum;
                along += along_down[r] * sum;
                across += down[r] * change;
            }
            const float *here = g.Y + 3 * (start + l);
            float *slope = g.slope + 3 * (start + l), z = here[2];
            float cosine = sqrtf(here[0] * here[0] + here[1] * here[1]);
            cosine = cosine > least ? cosine : least;
            float x = here[0] / cosine, y = here[1] / cosine;
            float north = along * rows, east = across * columns / cosine;
            g.charge[start + l] = level;
            slope[0] = -z * x * north - y * east;
            slope[1] = -z * y * north + x * east;
            slope[2] = cosine * north;
        }
    }
}

/* Value (n) and gradient (n x 3) at n points Y of a field on such a grid. */
KERNEL(read_field)(int64_t n_threads, int64_t n, const float *Y, int64_t n_rows, int64_t n_columns, float *field,
                   float *value, float *slope)
{
    struct grid grid = {n, n_rows, n_columns, 0, 0, Y, field, value, slope};
    for_rows(n_threads, n, ROWS, read_at, &grid);
}

/* The kernel between latitudes i and j for frequency m, K_m[i][j], decreases with m and with |i - j|. The table has the
   entries low <= j < high of row i < half, from `offset`; rows of the other hemisphere are the same in reverse order.
   Fills in rows first <= i < last from power = K_0, rho = K_m / K_(m-1), and the `alias` of K_m on a grid of finitely
   many longitudes; all are half x n. `power` and `alias` are overwritten. */
KERNEL(fill_table)(int64_t first, int64_t last, int64_t half, int64_t n_frequencies, const double *rho, double *power,
                   double *alias, const int32_t *low, const int32_t *high, const int64_t *offset, float *table)
{
    for (int64_t i = first; i < last; i++) {
        const double *ratio = rho + i * 2 * half;
        double *p = power + i * 2 * half, *a = alias + i * 2 * half;
        for (int64_t m = 0; m < n_frequencies; m++) {
            const int64_t row = m * half + i, from = low[row], to = high[row];
            float *K = table + offset[row] - from;
            for (int64_t j = from; j < to; j++) {
                K[j] = (float)(p[j] + a[j]);
                p[j] *= ratio[j];
                a[j] /= ratio[j];
            }
        }
    }
}

/* Solves the spline equations along n nodes, 6 x = (1 4 1) y, for LANES frequencies at a time; `factors` are those of
   the elimination. */
static void to_splines(int64_t n, const float *factors, float *x)
{
    for (int l = 0; l < LANES; l++)
        x[l] = 6 * x[l] * factors[l];
    for (int64_t j = 1; j < n; j++)
        for (int l = 0; l < LANES; l++)
            x[j * LANES + l] = (6 * x[j * LANES + l] - x[(j - 1) * LANES + l]) * factors[j * LANES + l];
    for (int64_t j = n - 2; j >= 0; j--)
        for (int l = 0; l < LANES; l++)
            x[j * LANES + l] -= factors[j * LANES + l] * x[(j + 1) * LANES + l];
}

struct filter {
    int64_t half, n_frequencies;
    const int64_t *starts, *offset;
    const int32_t *low, *high;
    const float *table, *factors, *scale;
    float *spectrum, *scratch;
};

static void filter_groups(const void *arguments, int64_t first, int64_t last)
{
    const struct filter f = *(const struct filter *)arguments;
    const int64_t n = 2 * f.half, width = 2 * f.n_frequencies;
    for (int64_t g = first; g < last; g++) {
        const int64_t start = f.starts[g], count = f.starts[g + 1] - start;
        float *part[2] = {f.scratch + g * (2 * LANES + 4) * n, f.scratch + g * (2 * LANES + 4) * n + n * LANES};
        float *x = part[1] + n * LANES, *y = x + n, *mirrored_x = y + n, *mirrored_y = mirrored_x + n;
        for (int64_t j = 0; j < n; j++)
            for (int l = 0; l < LANES; l++)
                for (int c = 0; c < 2; c++)
                    part[c][j * LANES + l] = l < count ? f.spectrum[j * width + 2 * (start + l) + c] : 0;
        to_splines(n, f.factors, part[0]);
        to_splines(n, f.factors, part[1]);
        for (int64_t l = 0; l < count; l++) {
            for (int64_t j = 0; j < n; j++) {
                x[j] = mirrored_x[n - 1 - j] = part[0][j * LANES + l] * f.scale[start + l];
                y[j] = mirrored_y[n - 1 - j] = part[1][j * LANES + l] * f.scale[start + l];
            }
            for (int64_t i = 0; i < f.half; i++) {
                const int64_t row = (start + l) * f.half + i, from = f.low[row], to = f.high[row];
                const float *K = f.table + f.offset[row] - from;
                float a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
                for (int64_t j = from; j < to; j++) {
                    a += K[j] * x[j];
                    b += K[j] * y[j];
                    c += K[j] * mirrored_x[j];
                    d += K[j] * mirrored_y[j];
                }
                part[0][i * LANES + l] = a;
                part[1][i * LANES + l] = b;
                part[0][(n - 1 - i) * LANES + l] = c;
                part[1][(n - 1 - i) * LANES + l] = d;
            }
        }
        to_splines(n, f.factors, part[0]);
        to_splines(n, f.factors, part[1]);
        for (int64_t j = 0; j < n; j++)
            for (int l = 0; l < count; l++)
                for (int c = 0; c < 2; c++)
                    f.spectrum[j * width + 2 * (start + l) + c] = part[c][j * LANES + l];
    }
}

/* Replaces the spectrum of a charge (n rows of n_frequencies complex numbers) by that of its field. Group g has the
   frequencies starts[g] to starts[g + 1], at most LANES, and starts at an even number. `factors` are n x LANES, `scale`
   has one number per frequency; `scratch` holds (2 LANES + 4) n numbers per group. */
KERNEL(filter)(int64_t n_threads, int64_t n_groups, const int64_t *starts, int64_t half, int64_t n_frequencies,
               const int32_t *low, const int32_t *high, const int64_t *offset, const float *table, const float *factors,
               const float *scale, float *spectrum, float *scratch)
{
    struct filter filter = {half, n_frequencies, starts, offset, low, high, table, factors, scale, spectrum, scratch};
    for_rows(n_threads, n_groups, 1, filter_groups, &filter);
}
