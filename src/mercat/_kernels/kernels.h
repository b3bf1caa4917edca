/* What all kernels share.

   Every file is compiled once for each level of the processor's instructions (`_build.py`), and LEVEL ends the
   names of its functions. A kernel works on rows first <= i < last, and a row comes out the same to the
   bit whatever rows come with it: lanes of a sum run along the row, never across rows. */

#ifndef MERCAT_KERNELS_H
#define MERCAT_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define KERNEL(name) EXPORT void JOIN(JOIN(mercat_, name), LEVEL)

/* The angle whose cosine is c, to 2e-8 (Abramowitz and Stegun, 4.4.46); what exceeds 1 counts as 1. */
static inline float arc_of(float c)
{
    float x = fabsf(c) < 1 ? fabsf(c) : 1;
    float arc = 0.0066700901f - 0.0012624911f * x;
    arc = ((((arc * x - 0.0170881256f) * x + 0.0308918810f) * x - 0.0501743046f) * x + 0.0889789874f) * x;
    arc = ((arc - 0.2145988016f) * x + 1.5707963050f) * sqrtf(1 - x);
    return c < 0 ? 3.14159265f - arc : arc;
}

/* 1 over the sine of the same angle, whose square is at least `least`. */
static inline float inverse_sine(float c, float least)
{
    float square = 1 - c * c;
    return 1 / sqrtf(square > least ? square : least);
}

/* Tangent vectors U, V at y: see `tangent_frame`. */
static inline void frame_at(const float *y, float *U, float *V)
{
    float sign = y[2] >= 0 ? 1 : -1, a = -1 / (sign + y[2]), c = y[0] * y[1] * a;
    U[0] = 1 + sign * y[0] * y[0] * a, U[1] = sign * c, U[2] = -sign * y[0];
    V[0] = c, V[1] = sign + y[1] * y[1] * a, V[2] = -y[1];
}

/* out1, out2 = sums over rows of A (n x width, with zeros up to multiples of 4 and LANES) with weights w1, w2. */
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

#endif
