/* What all kernels share.

   Every file is compiled once for each level of the processor's instructions (`_build.py`), and LEVEL ends the
   names of its functions. A kernel works on rows first <= i < last, and a row comes out the same to the
   bit whatever rows come with it: lanes of a sum run along the row, never across rows. */

#ifndef MERCAT_KERNELS_H
#define MERCAT_KERNELS_H

#include <math.h>
#include <stdint.h>

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

#endif
