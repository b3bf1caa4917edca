/* The field of all points on a grid; defined in `_detail/repulsion.py`. */

#include "kernels.h"
#include "threads.h"

#define GHOSTS 2
#define NODES 8192   /* of a grid, per thread at a time */
#define LATITUDES 16 /* per thread at a time */
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
    int32_t row[LANES], column[LANES]; /* the second of four nodes in each direction; rows include those beyond the pole */
    float down[LANES], right[LANES];
};

static void locate(const float *Y, int64_t count, int64_t n_rows, int64_t n_columns, struct places *p)
{
    float x[LANES], y[LANES], z[LANES];
    for (int l = 0; l < LANES; l++) {
        const float *here = Y + 3 * (l < count ? l : 0); /* always all lanes, for bit-identical results */
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
    int64_t *used;                  /* first node and end of the part of each block's grid that is set */
};

/* Spreads unit charges of the points of some blocks on the grids of these blocks. Only the rows that the points of a
   block cover are set: few, since neighbours are near in memory and on the map. */
static void spread(const void *arguments, int64_t first, int64_t last)
{
    const struct grid g = *(const struct grid *)arguments;
    struct places p;
    float down[4], right[4], slope[4];
    for (int64_t b = first; b < last; b++) {
        float *grid = g.values + b * g.size;
        int64_t low = 0, high = 0, stop = (b + 1) * g.block < g.n ? (b + 1) * g.block : g.n;
        for (int64_t start = b * g.block; start < stop; start += LANES) {
            int64_t count = stop - start < LANES ? stop - start : LANES;
            locate(g.Y + 3 * start, count, g.n_rows, g.n_columns, &p);
            for (int l = 0; l < count; l++) {
                const int64_t above = (p.row[l] - 1) * g.n_columns, below = above + 4 * g.n_columns;
                if (low == high)
                    low = high = above;
                if (above < low) {
                    memset(grid + above, 0, sizeof(float) * (low - above));
                    low = above;
                }
                if (below > high) {
                    memset(grid + high, 0, sizeof(float) * (below - high));
                    high = below;
                }
                cubic(p.down[l], down, slope);
                cubic(p.right[l], right, slope);
                for (int c = 0; c < 4; c++) {
                    float *cell = grid + above + around(p.column[l] + c - 1, g.n_columns);
                    for (int r = 0; r < 4; r++)
                        cell[r * g.n_columns] += down[r] * right[c];
                }
            }
        }
        g.used[2 * b] = low;
        g.used[2 * b + 1] = high;
    }
}

/* Sums the grids of all blocks at some nodes. */
static void add_up(const void *arguments, int64_t first, int64_t last)
{
    const struct grid g = *(const struct grid *)arguments;
    memset(g.charge + first, 0, sizeof(float) * (last - first));
    for (int64_t b = 0; b * g.block < g.n; b++) {
        const int64_t low = g.used[2 * b], high = g.used[2 * b + 1], to = high < last ? high : last;
        for (int64_t i = low > first ? low : first; i < to; i++)
            g.charge[i] += g.values[b * g.size + i];
    }
}

/* Spreads unit charges of n points Y on a grid of n_rows + 2 GHOSTS rows; `grids` holds one grid per block,
   `used` two numbers. */
KERNEL(charge)(int64_t n_threads, int64_t n, const float *Y, int64_t n_rows, int64_t n_columns, int64_t block, float *grids,
               int64_t *used, float *charge)
{
    const int64_t size = (n_rows + 2 * GHOSTS) * n_columns;
    struct grid grid = {n, n_rows, n_columns, size, block, Y, grids, charge, NULL, used};
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
    struct grid grid = {n, n_rows, n_columns, 0, 0, Y, field, value, slope, NULL};
    for_rows(n_threads, n, ROWS, read_at, &grid);
}

/* 0 for numbers so small that their products would be denormal, which is slow. */
static inline float normal(float x) { return fabsf(x) < 1e-30f ? 0 : x; }

/* The kernel between latitudes i and j for frequency m, K_m[i][j], decreases with m and with |i - j|. In the table,
   LANES frequencies are side by side: row i < half of group g has the entries low <= j < high, from `offset`, LANES
   numbers each; rows of the other hemisphere are the same in reverse order. Fills in rows first <= i < last from power
   = K_0, rho = K_m / K_(m-1), and the `alias` of K_m on the grid of longitudes; all are half x n. `power` and `alias`
   are overwritten. */
KERNEL(fill_table)(int64_t first, int64_t last, int64_t half, int64_t n_frequencies, const double *rho, double *power,
                   double *alias, const int32_t *low, const int32_t *high, const int64_t *offset, float *table)
{
    for (int64_t i = first; i < last; i++) {
        const double *ratio = rho + i * 2 * half;
        double *p = power + i * 2 * half, *a = alias + i * 2 * half;
        for (int64_t m = 0; m < n_frequencies; m++) {
            const int64_t row = m / LANES * half + i;
            float *K = table + offset[row] + m % LANES;
            for (int64_t j = low[row]; j < high[row]; j++, K += LANES) {
                *K = normal((float)(p[j] + a[j]));
                p[j] *= ratio[j];
                a[j] /= ratio[j];
            }
        }
    }
}

#define PAIR (2 * LANES) /* real parts of LANES frequencies, then imaginary parts */

/* Solves the spline equations along n nodes, 6 x = (1 4 1) y, for LANES frequencies at a time (n x PAIR); `factors` are
   those of the elimination. Away from charges, solutions decay to 0. */
static void to_splines(int64_t n, const float *restrict factors, float *restrict x)
{
    float re[LANES] = {0}, im[LANES] = {0};
    for (int64_t j = 0; j < n; j++)
        for (int l = 0; l < LANES; l++) {
            re[l] = x[j * PAIR + l] = normal((6 * x[j * PAIR + l] - re[l]) * factors[j * LANES + l]);
            im[l] = x[j * PAIR + LANES + l] = normal((6 * x[j * PAIR + LANES + l] - im[l]) * factors[j * LANES + l]);
        }
    memset(re, 0, sizeof re);
    memset(im, 0, sizeof im);
    for (int64_t j = n - 1; j >= 0; j--)
        for (int l = 0; l < LANES; l++) {
            re[l] = x[j * PAIR + l] = normal(x[j * PAIR + l] - factors[j * LANES + l] * re[l]);
            im[l] = x[j * PAIR + LANES + l] = normal(x[j * PAIR + LANES + l] - factors[j * LANES + l] * im[l]);
        }
}

struct filter {
    int64_t half, n_frequencies;
    const int64_t *offset;
    const int32_t *low, *high;
    const float *table, *factors, *scale;
    float *spectrum, *scratch; /* per group: charges and field, 2 half x PAIR each */
};

/* Converts the spectrum of a charge to spline coefficients, for some groups of frequencies. */
static void charges_of(const void *arguments, int64_t first, int64_t last)
{
    const struct filter f = *(const struct filter *)arguments;
    const int64_t n = 2 * f.half, width = 2 * f.n_frequencies;
    for (int64_t g = first; g < last; g++) {
        const int64_t start = g * LANES, rest = f.n_frequencies - start, count = rest < LANES ? rest : LANES;
        float *charge = f.scratch + 2 * g * n * PAIR, numbers[PAIR] = {0}, scale[LANES] = {0};
        memcpy(scale, f.scale + start, sizeof(float) * count);
        for (int64_t j = 0; j < n; j++) {
            memcpy(numbers, f.spectrum + j * width + 2 * start, sizeof(float) * 2 * count);
            for (int l = 0; l < LANES; l++) {
                charge[j * PAIR + l] = numbers[2 * l] * scale[l];
                charge[j * PAIR + LANES + l] = numbers[2 * l + 1] * scale[l];
            }
        }
        to_splines(n, f.factors, charge);
    }
}

/* Applies the kernel: computes rows of the field in both hemispheres. Rows are counted over all groups. */
static void apply(const void *arguments, int64_t first, int64_t last)
{
    const struct filter f = *(const struct filter *)arguments;
    const int64_t n = 2 * f.half;
    for (int64_t row = first; row < last; row++) {
        const int64_t g = row / f.half, i = row % f.half;
        const float *charge = f.scratch + 2 * g * n * PAIR, *K = f.table + f.offset[row];
        float *field = f.scratch + (2 * g + 1) * n * PAIR, north[PAIR] = {0}, south[PAIR] = {0};
        for (int64_t j = f.low[row]; j < f.high[row]; j++, K += LANES) {
            const float *here = charge + j * PAIR, *mirrored = charge + (n - 1 - j) * PAIR;
            for (int l = 0; l < LANES; l++) {
                north[l] += K[l] * here[l];
                north[LANES + l] += K[l] * here[LANES + l];
                south[l] += K[l] * mirrored[l];
                south[LANES + l] += K[l] * mirrored[LANES + l];
            }
        }
        memcpy(field + i * PAIR, north, sizeof north);
        memcpy(field + (n - 1 - i) * PAIR, south, sizeof south);
    }
}

/* Converts the field at the nodes to the spectrum of its spline coefficients, for some groups. */
static void spectrum_of(const void *arguments, int64_t first, int64_t last)
{
    const struct filter f = *(const struct filter *)arguments;
    const int64_t n = 2 * f.half, width = 2 * f.n_frequencies;
    for (int64_t g = first; g < last; g++) {
        const int64_t start = g * LANES, rest = f.n_frequencies - start, count = rest < LANES ? rest : LANES;
        float *field = f.scratch + (2 * g + 1) * n * PAIR, numbers[PAIR];
        to_splines(n, f.factors, field);
        for (int64_t j = 0; j < n; j++) {
            for (int l = 0; l < LANES; l++) {
                numbers[2 * l] = field[j * PAIR + l];
                numbers[2 * l + 1] = field[j * PAIR + LANES + l];
            }
            memcpy(f.spectrum + j * width + 2 * start, numbers, sizeof(float) * 2 * count);
        }
    }
}

/* Replaces the spectrum of a charge (n rows of n_frequencies complex numbers) by that of its field. `factors` are
   n x LANES, `scale` has one number per frequency; `scratch` holds 2 n PAIR numbers per group of LANES frequencies. */
KERNEL(filter)(int64_t n_threads, int64_t half, int64_t n_frequencies, const int32_t *low, const int32_t *high,
               const int64_t *offset, const float *table, const float *factors, const float *scale, float *spectrum,
               float *scratch)
{
    struct filter filter = {half, n_frequencies, offset, low, high, table, factors, scale, spectrum, scratch};
    const int64_t n_groups = (n_frequencies + LANES - 1) / LANES;
    for_rows(n_threads, n_groups, 1, charges_of, &filter);
    for_rows(n_threads, n_groups * half, LATITUDES, apply, &filter);
    for_rows(n_threads, n_groups, 1, spectrum_of, &filter);
}
