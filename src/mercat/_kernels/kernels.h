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

#endif
