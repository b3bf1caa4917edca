/* Directions, their sums and their gradients at a block of apices; defined in `_math/angles.py`. */

#include "kernels.h"

#define REAL float
#define ROOT sqrtf
#define KERNEL_OF(name) KERNEL(JOIN(name, _float32))
#include "angles.h"
#undef REAL
#undef ROOT
#undef KERNEL_OF

#define REAL double
#define ROOT sqrt
#define KERNEL_OF(name) KERNEL(JOIN(name, _float64))
#include "angles.h"
