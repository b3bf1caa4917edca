/* The angle loss of all points as apices and as legs, and its gradient; defined in `_solve/losses.py`. */

#include "kernels.h"
#include "threads.h"

#define MOST_POINTS 2048 /* most points; their directions fit on the stack of a thread */
#define APICES 32        /* per thread at a time; their forces on legs are summed */

struct points {
    int64_t n, r, width, padded;
    const float *X, *Xt, *near, *Y;
    float softening, alpha, beta;
    float *M, *sums, *moments, *to_apices, *to_legs;
};

/* One number per point, aligned to a cache line. */
typedef float row[MOST_POINTS] __attribute__((aligned(64)));

/* Directions from point i to all points (0 where they coincide in the data), and inverse sines. */
static void look_around(const struct points *p, int64_t i, float *U, float *V, float *restrict B1, float *restrict B2,
                        float *restrict sine)
{
    const float *x = p->Y, *y = x + p->padded, *z = y + p->padded, *near = p->near + i * p->n, softening = p->softening;
    const float here[3] = {x[i], y[i], z[i]};
    frame_at_float(here, U, V);
    const float u0 = U[0], u1 = U[1], u2 = U[2], v0 = V[0], v1 = V[1], v2 = V[2];
#pragma omp simd
    for (int64_t j = 0; j < p->n; j++) {
        const float c1 = u0 * x[j] + u1 * y[j] + u2 * z[j], c2 = v0 * x[j] + v1 * y[j] + v2 * z[j];
        const float inverse = (near[j] > 0 ? 1.0f : 0.0f) / sqrtf(c1 * c1 + c2 * c2 + softening);
        sine[j] = inverse;
        B1[j] = c1 * inverse;
        B2[j] = c2 * inverse;
    }
}

static void sum_up(const void *arguments, int64_t first, int64_t last)
{
    const struct points *p = arguments;
    row W[4], sine;
    float U[3], V[3], sums_of_weights[4], m1, m2;
    memset(W, 0, sizeof W);
    for (int64_t pair = first; pair < last; pair += 2) {
        const int two = pair + 1 < last;
        for (int l = 0; l <= two; l++) {
            const int64_t i = pair + l;
            const float *near = p->near + i * p->n;
            float *W1 = W[2 * l], *W2 = W[2 * l + 1], s1 = 0, s2 = 0, s12 = 0, t1 = 0, t2 = 0, w1 = 0, w2 = 0;
            look_around(p, i, U, V, W1, W2, sine);
#pragma omp simd reduction(+ : s1, s2, s12, t1, t2, w1, w2)
            for (int64_t j = 0; j < p->n; j++) {
                const float c1 = W1[j], c2 = W2[j];
                W1[j] = c1 * near[j];
                W2[j] = c2 * near[j];
                s1 += c1 * c1;
                s2 += c2 * c2;
                s12 += c1 * c2;
                t1 += c1;
                t2 += c2;
                w1 += c1 * near[j];
                w2 += c2 * near[j];
            }
            const float found[5] = {s1, s2, s12, t1, t2};
            memcpy(p->sums + 7 * i, found, sizeof found);
            sums_of_weights[2 * l] = w1;
            sums_of_weights[2 * l + 1] = w2;
        }
        float *M = p->M + 2 * pair * p->width;
        if (two) {
            const float *const weights[4] = {W[0], W[1], W[2], W[3]};
            float *const out[4] = {M, M + p->width, M + 2 * p->width, M + 3 * p->width};
            four_weighted_sums(p->n, p->width, p->X, weights, out);
        } else
            weighted_sums(p->n, p->width, p->X, W[0], W[1], M, M + p->width);
        for (int l = 0; l <= two; l++) {
            const int64_t i = pair + l;
            const float *x = p->X + i * p->width, *w = sums_of_weights + 2 * l;
            float *M1 = p->M + 2 * i * p->width, *sums = p->sums + 7 * i;
            const float ab = sums_from(p->r, x, w[0], w[1], M1, M1 + p->width, &m1, &m2);
            const float s1 = sums[0], s2 = sums[1], s12 = sums[2], t1 = sums[3], t2 = sums[4];
            sums[5] = m1;
            sums[6] = m2;
            p->moments[i] = t1 * t1 + t2 * t2 - s1 - s2;
            p->moments[p->n + i] = s1 * s1 + s2 * s2 + 2 * s12 * s12 - s1 - s2;
            p->moments[2 * p->n + i] = ab - s1 - s2;
        }
    }
}

static void turn(const void *arguments, int64_t first, int64_t last)
{
    const struct points *p = arguments;
    const float four = 4 * p->beta, quadratic = four * p->beta, own = four * (1 - p->alpha - p->beta / 2);
    const float *x = p->Y, *y = x + p->padded, *z = y + p->padded;
    float *fx = p->to_legs + first / APICES * 3 * p->padded, *fy = fx + p->padded, *fz = fy + p->padded, U[3], V[3];
    row B1, B2, sine, P[4];
    memset(fx, 0, sizeof(float) * 3 * p->padded);
    for (int64_t i = first; i < last; i++) {
        const float *near = p->near + i * p->n, *M = p->M + 2 * i * p->width, *sums = p->sums + 7 * i;
        const int64_t second = (i - first) % 2;
        if (!second && i + 1 < last) {
            const float *const weights[4] = {M, M + p->width, M + 2 * p->width, M + 3 * p->width};
            float *const out[4] = {P[0], P[1], P[2], P[3]};
            four_weighted_sums(p->r, p->padded, p->Xt, weights, out);
        } else if (!second)
            weighted_sums(p->r, p->padded, p->Xt, M, M + p->width, P[0], P[1]);
        const float *P1 = P[2 * second], *P2 = P[2 * second + 1], y0 = x[i], y1 = y[i], y2 = z[i];
        const float q1 = quadratic * sums[0] + own, q2 = quadratic * sums[1] + own, q12 = quadratic * sums[2];
        const float d1 = four * p->alpha * sums[3], d2 = four * p->alpha * sums[4], m1 = sums[5], m2 = sums[6];
        float along_U = 0, along_V = 0;
        look_around(p, i, U, V, B1, B2, sine);
        const float u0 = U[0], u1 = U[1], u2 = U[2], v0 = V[0], v1 = V[1], v2 = V[2];
#pragma omp simd reduction(+ : along_U, along_V)
        for (int64_t j = 0; j < p->n; j++) {
            const float g1 = q1 * B1[j] + q12 * B2[j] + d1 - four * near[j] * (P1[j] - m1);
            const float g2 = q2 * B2[j] + q12 * B1[j] + d2 - four * near[j] * (P2[j] - m2);
            const float across = (g2 * B1[j] - g1 * B2[j]) * sine[j], u = -B2[j] * across, v = B1[j] * across;
            const float cosine = y0 * x[j] + y1 * y[j] + y2 * z[j];
            along_U += u * cosine;
            along_V += v * cosine;
            fx[j] += u * u0 + v * v0;
            fy[j] += u * u1 + v * v1;
            fz[j] += u * u2 + v * v2;
        }
        for (int k = 0; k < 3; k++)
            p->to_apices[3 * i + k] = -along_U * U[k] - along_V * V[k];
    }
}

/* Sums over the legs of each of n apices: M (n x 2 x width), S, S12, t and M x (n x 7), and `map_moments` (3 x n). X
   (n x r) is padded with zeros to `padded` x `width`; positions are given by coordinates (3 x padded). */
KERNEL(loss_sums)(int64_t n_threads, int64_t n, int64_t r, int64_t width, int64_t padded, const float *X,
                  const float *near, const float *Y, double softening, float *M, float *sums, float *moments)
{
    struct points points = {.n = n, .r = r, .width = width, .padded = padded, .X = X, .near = near, .Y = Y};
    points.softening = (float)softening;
    points.M = M;
    points.sums = sums;
    points.moments = moments;
    for_rows(n_threads, n, APICES, sum_up, &points);
}

/* `apex_gradient` of all points from these sums: on the apices (n x 3), and on the legs, summed over blocks of 32
   apices (n / 32 x 3 x padded). Xt is the transpose of X. */
KERNEL(loss_forces)(int64_t n_threads, int64_t n, int64_t r, int64_t width, int64_t padded, const float *Xt,
                    const float *near, const float *Y, double softening, double alpha, double beta, const float *M,
                    const float *sums, float *to_apices, float *to_legs)
{
    struct points points = {.n = n, .r = r, .width = width, .padded = padded, .Xt = Xt, .near = near, .Y = Y};
    points.softening = (float)softening;
    points.alpha = (float)alpha;
    points.beta = (float)beta;
    points.M = (float *)M;
    points.sums = (float *)sums;
    points.to_apices = to_apices;
    points.to_legs = to_legs;
    for_rows(n_threads, n, APICES, turn, &points);
}
