/* Common definitions of all kernels.

   Every file is compiled once per instruction set level (`_build.py`); LEVEL is the suffix of its function names. The
   result for a row is bit-identical for any thread and any other rows in its block: SIMD lanes run along a row, never
   across rows. Sums over rows are formed per block of a fixed size. */

#ifndef MERCAT_KERNELS_H
#define MERCAT_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define PADDED(n) (((n) + LANES - 1) / LANES * LANES)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define KERNEL(name) EXPORT void JOIN(JOIN(mercat_, name), LEVEL)

/* The angle with cosine c, to within 2e-8 (Abramowitz and Stegun, 4.4.46); c is clipped to [-1, 1]. */
static inline float arc_of(float c)
{
    float x = fabsf(c) < 1 ? fabsf(c) : 1;
    float arc = 0.0066700901f - 0.0012624911f * x;
    arc = ((((arc * x - 0.0170881256f) * x + 0.0308918810f) * x - 0.0501743046f) * x + 0.0889789874f) * x;
    arc = ((arc - 0.2145988016f) * x + 1.5707963050f) * sqrtf(1 - x);
    return c < 0 ? 3.14159265f - arc : arc;
}

/* 1 / sine of the angle with cosine c; the squared sine is at least `least`. */
static inline float inverse_sine(float c, float least)
{
    float square = 1 - c * c;
    return 1 / sqrtf(square > least ? square : least);
}

static inline float dot(const float *a, const float *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static inline float squared_distance(const float *x, const float *y, int64_t r)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < r; c++)
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
}

/* The inverse of d slope + rank(d) for m inverse distances `near`; 0 stays 0. The rank is interpolated between the
   ranks of 65 quantiles, the first of which is 0. */
static inline void half_ranks_of(int64_t m, const float *restrict near, const float *restrict quantiles,
                                 const float *restrict ranks, float slope, float *restrict found)
{
#pragma omp simd
    for (int64_t j = 0; j < m; j++) {
        const float d = near[j] > 0 ? 1 / near[j] : 0;
        int32_t at = quantiles[32] <= d ? 32 : 0; /* bisection; a loop would not be vectorised */
        at += quantiles[at + 16] <= d ? 16 : 0;
        at += quantiles[at + 8] <= d ? 8 : 0;
        at += quantiles[at + 4] <= d ? 4 : 0;
        at += quantiles[at + 2] <= d ? 2 : 0;
        at += quantiles[at + 1] <= d ? 1 : 0;
        const float low = quantiles[at], high = quantiles[at + 1];
        const float part = d < high ? (d - low) / (high - low) : 1;
        const float rank = (1 - part) * ranks[at] + part * ranks[at + 1];
        found[j] = d > 0 ? 1 / (d * slope + rank) : 0;
    }
}

/* Tangent vectors U, V at y, see `tangent_frame`. */
#define FRAME_AT(REAL) \
    static inline void JOIN(frame_at_, REAL)(const REAL *y, REAL *U, REAL *V) \
    { \
        REAL sign = y[2] >= 0 ? 1 : -1, a = -1 / (sign + y[2]), c = y[0] * y[1] * a; \
        U[0] = 1 + sign * y[0] * y[0] * a; \
        U[1] = sign * c; \
        U[2] = -sign * y[0]; \
        V[0] = c; \
        V[1] = sign + y[1] * y[1] * a; \
        V[2] = -y[1]; \
    }
FRAME_AT(float)
FRAME_AT(double)

/* out1, out2 = sums of the rows of A with weights w1, w2; A (n x width) is padded with zeros to multiples
   of 4 rows and LANES columns. */
static inline void weighted_sums(int64_t n, int64_t width, const float *restrict A, const float *restrict w1,
                                 const float *restrict w2, float *restrict out1, float *restrict out2)
{
    memset(out1, 0, sizeof(float) * width);
    memset(out2, 0, sizeof(float) * width);
    for (int64_t i = 0; i < n; i += 4) {
        const float *a = A + i * width, *b = a + width, *c = b + width, *d = c + width;
        const float u0 = w1[i], u1 = w1[i + 1], u2 = w1[i + 2], u3 = w1[i + 3];
        const float v0 = w2[i], v1 = w2[i + 1], v2 = w2[i + 2], v3 = w2[i + 3];
        for (int64_t from = 0; from < width; from += LANES)
#pragma omp simd
            for (int64_t k = from; k < from + LANES; k++) {
                out1[k] += u0 * a[k] + u1 * b[k] + u2 * c[k] + u3 * d[k];
                out2[k] += v0 * a[k] + v1 * b[k] + v2 * c[k] + v3 * d[k];
            }
    }
}

/* Adds the weighted sums for four weights to four rows `out`; faster than two calls for two weights. */
static inline void add_four_weighted_sums(int64_t n, int64_t width, const float *restrict A, const float *const w[4],
                                          float *const out[4])
{
    float *restrict o0 = out[0], *restrict o1 = out[1], *restrict o2 = out[2], *restrict o3 = out[3];
    for (int64_t i = 0; i < n; i += 4) {
        const float *a = A + i * width, *b = a + width, *c = b + width, *d = c + width;
        const float *s = w[0] + i, *t = w[1] + i, *u = w[2] + i, *v = w[3] + i;
        const float s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3];
        const float u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3], v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
        for (int64_t from = 0; from < width; from += LANES)
#pragma omp simd
            for (int64_t k = from; k < from + LANES; k++) {
                o0[k] += s0 * a[k] + s1 * b[k] + s2 * c[k] + s3 * d[k];
                o1[k] += t0 * a[k] + t1 * b[k] + t2 * c[k] + t3 * d[k];
                o2[k] += u0 * a[k] + u1 * b[k] + u2 * c[k] + u3 * d[k];
                o3[k] += v0 * a[k] + v1 * b[k] + v2 * c[k] + v3 * d[k];
            }
    }
}

/* The same, starting from 0. */
static inline void four_weighted_sums(int64_t n, int64_t width, const float *A, const float *const w[4],
                                      float *const out[4])
{
    for (int k = 0; k < 4; k++)
        memset(out[k], 0, sizeof(float) * width);
    add_four_weighted_sums(n, width, A, w, out);
}

/* Converts weighted sums M of legs, with sums w of the weights, to weighted sums of the differences leg - x (r
   numbers). Returns their squared norm; m1, m2 are their products with x. */
static inline float sums_from(int64_t r, const float *x, float w1, float w2, float *restrict M1, float *restrict M2,
                              float *m1, float *m2)
{
    float squares = 0, s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : squares, s1, s2)
    for (int64_t k = 0; k < r; k++) {
        const float a = M1[k] - w1 * x[k], c = M2[k] - w2 * x[k];
        M1[k] = a;
        M2[k] = c;
        squares += a * a + c * c;
        s1 += a * x[k];
        s2 += c * x[k];
    }
    *m1 = s1;
    *m2 = s2;
    return squares;
}

#endif
