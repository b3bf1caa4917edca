/* The attraction of neighbours: `_detail/descent.py` defines it. */

#include "kernels.h"

/* -4 s sum_j p_ij y_j / (1 + s |y_i - y_j|^2) over the entries of row i of a sparse matrix, s = 1 / bandwidth^2.
   `ends` are those of the rows that are asked for, counted from the first entry of `columns` and `weights`. */
KERNEL(attraction)(int64_t n_rows, const int64_t *ends, const int32_t *columns, const float *weights, const float *Y,
                   int64_t first, double s, float *force)
{
    const float square = (float)s;
    for (int64_t i = 0; i < n_rows; i++) {
        const float *here = Y + 3 * (first + i);
        float x = here[0], y = here[1], z = here[2], fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (int64_t e = ends[i]; e < ends[i + 1]; e++) {
            const float *there = Y + 3 * (int64_t)columns[e];
            float u = there[0], v = there[1], w = there[2];
            float pull = (x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w);
            pull = weights[e] / (1 + square * pull);
            fx += pull * u;
            fy += pull * v;
            fz += pull * w;
        }
        force[3 * i] = -4 * square * fx;
        force[3 * i + 1] = -4 * square * fy;
        force[3 * i + 2] = -4 * square * fz;
    }
}

static inline float dot(const float *a, const float *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* A step with momentum from Y, along the sphere, against the forces over their curvature: velocities in place, and where
   the points are after it, no farther away than `longest`. */
KERNEL(move)(int64_t n, const float *Y, const float *force, const float *curvature, double momentum, double factor,
             double longest, float *velocity, float *moved)
{
    const float keep = (float)momentum, scale = (float)factor, most = (float)longest;
    for (int64_t i = 0; i < n; i++) {
        const float *y = Y + 3 * i, *f = force + 3 * i;
        float *v = velocity + 3 * i, *to = moved + 3 * i, out = dot(v, y), pushed_out = dot(f, y);
        for (int c = 0; c < 3; c++)
            v[c] = keep * (v[c] - out * y[c]) - scale * (f[c] - pushed_out * y[c]) / curvature[i];
        float length = sqrtf(dot(v, v)), shorten = length > most ? most / length : 1;
        for (int c = 0; c < 3; c++)
            to[c] = y[c] + shorten * v[c];
        length = sqrtf(dot(to, to));
        for (int c = 0; c < 3; c++)
            to[c] /= length;
    }
}
