/* Residuals of distances against arcs, and distances half replaced by ranks; defined in `_math/distances.py`. */

#include "kernels.h"
#include "threads.h"

/* `half_ranks_of` b rows of m inverse distances. */
KERNEL(half_ranks)(int64_t b, int64_t m, const float *near, const float *quantiles, const float *ranks, double slope,
                   float *found)
{
    for (int64_t i = 0; i < b; i++)
        half_ranks_of(m, near + i * m, quantiles, ranks, (float)slope, found + i * m);
}

struct pairs {
    int64_t b, m;
    const float *near, *Y, *Z;
    float p, q, least;
    float *squares, *gradient, *sums;
};

static void residuals_of(const void *arguments, int64_t first, int64_t last)
{
    const struct pairs pairs = *(const struct pairs *)arguments;
    const int64_t b = pairs.b, m = pairs.m;
    const float p = pairs.p, q = pairs.q, least = pairs.least, *z0 = pairs.Z, *z1 = z0 + m, *z2 = z1 + m;
    for (int64_t i = first; i < last; i++) {
        const float *inverse = pairs.near + i * m, *y = pairs.Y + 3 * i, y0 = y[0], y1 = y[1], y2 = y[2];
        float *gradient = pairs.gradient + 3 * i, *sums = pairs.sums + i;
        float square = 0, gx = 0, gy = 0, gz = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
#pragma omp simd reduction(+ : square, gx, gy, gz, s1, s2, s3, s4, s5)
        for (int64_t j = 0; j < m; j++) {
            float d = inverse[j] > 0 ? 1 / inverse[j] : 0, cosine = y0 * z0[j] + y1 * z1[j] + y2 * z2[j];
            float arc = arc_of(cosine), residual = d - p - q * arc, pull = residual * inverse_sine(cosine, least);
            square += residual * residual;
            gx += pull * z0[j];
            gy += pull * z1[j];
            gz += pull * z2[j];
            s1 += d;
            s2 += arc;
            s3 += d * d;
            s4 += arc * arc;
            s5 += d * arc;
        }
        pairs.squares[i] = square;
        gradient[0] = 2 * q * gx;
        gradient[1] = 2 * q * gy;
        gradient[2] = 2 * q * gz;
        sums[0] = s1;
        sums[b] = s2;
        sums[2 * b] = s3;
        sums[3 * b] = s4;
        sums[4 * b] = s5;
    }
}

/* For b points at Y and m others at Z (by coordinates, 3 x m), with inverse distances `near` (b x m, 0 for points that
   coincide): sums of squared residuals d - p - q arc, their gradients (b x 3), and sums (5 x b) of d, arc, d^2, arc^2
   and d arc. */
KERNEL(arc_residuals)(int64_t n_threads, int64_t b, int64_t m, const float *near, const float *Y, const float *Z, double p,
                      double q, double least_sine, float *squares, float *gradient, float *sums)
{
    struct pairs pairs = {b, m, near, Y, Z, (float)p, (float)q, (float)(least_sine * least_sine), squares, gradient, sums};
    for_rows(n_threads, b, ROWS / 16, residuals_of, &pairs);
}
