/* The highest instruction set level that the processor and the operating system support: an index into LEVELS of
   `_build.py`. Compiled once, for any processor. */

#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

static int level_of_cpu(void)
{
    unsigned a, b, c, d, saved, high;
    const unsigned fma_osxsave_avx = 1u << 12 | 1u << 27 | 1u << 28;
    const unsigned avx2 = 1u << 5, avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & fma_osxsave_avx) != fma_osxsave_avx)
        return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0)); /* registers saved by the operating system */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2) || (saved & 6) != 6)
        return 0;
    return (b & avx512_f_dq_bw_vl) == avx512_f_dq_bw_vl && (saved & 0xe6) == 0xe6 ? 2 : 1;
}
#else
static int level_of_cpu(void) { return 0; }
#endif

EXPORT int mercat_cpu_level(void) { return level_of_cpu(); }
