/* Attraction of neighbours and steps, defined in `_detail/descent.py`, and forces of angles, in `_detail/terms.py`. */

#include "kernels.h"
#include "threads.h"

struct graph {
    const int64_t *ends;
    const int32_t *columns;
    const float *weights, *Y;
    float square, *force;
};

static void attract(const void *arguments, int64_t first, int64_t last)
{
    const struct graph g = *(const struct graph *)arguments;
    for (int64_t i = first; i < last; i++) {
        const float *here = g.Y + 3 * i;
        float x = here[0], y = here[1], z = here[2], fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (int64_t e = g.ends[i]; e < g.ends[i + 1]; e++) {
            const int32_t there = 3 * g.columns[e]; /* 32 bits, not 64: twice as many are loaded at a time */
            float u = g.Y[there], v = g.Y[there + 1], w = g.Y[there + 2];
            float pull = (x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w);
            pull = g.weights[e] / (1 + g.square * pull);
            fx += pull * u;
            fy += pull * v;
            fz += pull * w;
        }
        g.force[3 * i] = -4 * g.square * fx;
        g.force[3 * i + 1] = -4 * g.square * fy;
        g.force[3 * i + 2] = -4 * g.square * fz;
    }
}

/* -4 s sum_j p_ij y_j / (1 + s |y_i - y_j|^2) for each row i of a sparse matrix, with s = 1 / bandwidth^2. */
KERNEL(attraction)(int64_t n_threads, int64_t n, const int64_t *ends, const int32_t *columns, const float *weights,
                   const float *Y, double square, float *force)
{
    struct graph graph = {ends, columns, weights, Y, (float)square, force};
    for_rows(n_threads, n, ROWS, attract, &graph);
}

struct step {
    const float *Y, *pull, *push, *far, *stiffness, *far_curvature;
    float of_pull, of_push, of_stiffness, momentum, factor, longest, *velocity, *moved;
};

static void take_step(const void *arguments, int64_t first, int64_t last)
{
    const struct step s = *(const struct step *)arguments;
    for (int64_t i = first; i < last; i++) {
        const float *y = s.Y + 3 * i, curvature = s.of_stiffness * s.stiffness[i] + s.far_curvature[i];
        float *v = s.velocity + 3 * i, *to = s.moved + 3 * i, f[3];
        for (int c = 0; c < 3; c++)
            f[c] = s.of_pull * s.pull[3 * i + c] + s.of_push * s.push[3 * i + c] + s.far[3 * i + c];
        const float out = dot(v, y), pushed_out = dot(f, y);
        for (int c = 0; c < 3; c++)
            v[c] = s.momentum * (v[c] - out * y[c]) - s.factor * (f[c] - pushed_out * y[c]) / curvature;
        float length = sqrtf(dot(v, v)), shorten = length > s.longest ? s.longest / length : 1;
        for (int c = 0; c < 3; c++)
            to[c] = y[c] + shorten * v[c];
        length = sqrtf(dot(to, to));
        for (int c = 0; c < 3; c++)
            to[c] /= length;
    }
}

/* A step from Y on the sphere with momentum, along -gradient / curvature (see `Forces`), of length at most
   `longest`. Updates the velocities in place and writes the new positions to `moved`. */
KERNEL(move)(int64_t n_threads, int64_t n, const float *Y, const float *pull, const float *push, const float *far,
             const float *stiffness, const float *far_curvature, double of_pull, double of_push, double of_stiffness,
             double momentum, double factor, double longest, float *velocity, float *moved)
{
    struct step step = {Y,
                        pull,
                        push,
                        far,
                        stiffness,
                        far_curvature,
                        (float)of_pull,
                        (float)of_push,
                        (float)of_stiffness,
                        (float)momentum,
                        (float)factor,
                        (float)longest,
                        velocity,
                        moved};
    for_rows(n_threads, n, ROWS, take_step, &step);
}

/* Forces of angles on b points X (b x r) at Y (`AngleTerm`): as apices over pairs of m anchors, and as legs at each
   anchor, paired with the others. `near` are inverse distances to the anchors (b x m, 0 for points that coincide), K
   the products of the sums M at each anchor with the differences point - anchor (b x 2m). `anchors` are 14 rows of
   m numbers: positions, frames (six), S, S12 and t. The data of the anchors are given by rows (`width` numbers each)
   and by columns (`padded`), padded with zeros. `scratch` holds 14 padded + 4 width numbers. Two points are processed
   at a time, with bit-identical results. */
static void angle_forces(int64_t b, int64_t m, int64_t r, int64_t width, int64_t padded, const float *X, const float *Y,
                         const float *near_, const float *K, const float *anchors, const float *X_anchors,
                         const float *Xt_anchors, double alpha_, double beta_, double softening_, float *scratch,
                         float *force, float *steepness, float *moments)
{
    const float alpha = (float)alpha_, beta = (float)beta_, softening = (float)softening_;
    const float four = 4 * beta, quadratic = four * beta, own = four * (1 - alpha - beta / 2), shift = four * alpha;
    const float *Zx = anchors, *Zy = Zx + m, *Zz = Zy + m, *Ux = Zz + m, *Uy = Ux + m, *Uz = Uy + m, *Vx = Uz + m;
    const float *Vy = Vx + m, *Vz = Vy + m, *S1 = Vz + m, *S2 = S1 + m, *S12 = S2 + m, *t1 = S12 + m, *t2 = t1 + m;
    float *W = scratch, *P = W + 4 * padded, *M = P + 4 * padded, *bearings = M + 4 * width, sums[2][7];
    const float *const weights[4] = {W, W + padded, W + 2 * padded, W + 3 * padded};
    const float *const vectors[4] = {M, M + width, M + 2 * width, M + 3 * width};
    float *const sums_of_legs[4] = {M, M + width, M + 2 * width, M + 3 * width};
    float *const products[4] = {P, P + padded, P + 2 * padded, P + 3 * padded};
    memset(scratch, 0, sizeof(float) * (14 * padded + 4 * width));
    for (int64_t pair = 0; pair < b; pair += 2) {
        const int count = pair + 1 < b ? 2 : 1;
        for (int l = 0; l < count; l++) {
            const int64_t i = pair + l;
            const float *near = near_ + i * m;
            float *B1 = bearings + 3 * l * padded, *B2 = B1 + padded, *sine = B2 + padded, *W1 = W + 2 * l * padded;
            float *W2 = W1 + padded, U[3], V[3], s1 = 0, s2 = 0, s12 = 0, sum1 = 0, sum2 = 0, w1 = 0, w2 = 0, steep = 0;
            frame_at_float(Y + 3 * i, U, V);
            const float u0 = U[0], u1 = U[1], u2 = U[2], v0 = V[0], v1 = V[1], v2 = V[2];
#pragma omp simd reduction(+ : s1, s2, s12, sum1, sum2, w1, w2, steep)
            for (int64_t j = 0; j < m; j++) {
                float c1 = u0 * Zx[j] + u1 * Zy[j] + u2 * Zz[j], c2 = v0 * Zx[j] + v1 * Zy[j] + v2 * Zz[j];
                const float inverse = (near[j] > 0 ? 1.0f : 0.0f) / sqrtf(c1 * c1 + c2 * c2 + softening);
                c1 *= inverse;
                c2 *= inverse;
                sine[j] = inverse;
                B1[j] = c1;
                B2[j] = c2;
                W1[j] = c1 * near[j];
                W2[j] = c2 * near[j];
                s1 += c1 * c1;
                s2 += c2 * c2;
                s12 += c1 * c2;
                sum1 += c1;
                sum2 += c2;
                w1 += c1 * near[j];
                w2 += c2 * near[j];
                steep += inverse * inverse;
            }
            const float found[7] = {s1, s2, s12, sum1, sum2, w1, w2};
            memcpy(sums[l], found, sizeof found);
            steepness[i] = steep;
        }
        float m1[2], m2[2], ab[2];
        if (count == 2)
            four_weighted_sums(m, width, X_anchors, weights, sums_of_legs);
        else
            weighted_sums(m, width, X_anchors, W, W + padded, M, M + width);
        for (int l = 0; l < count; l++) {
            float *M1 = M + 2 * l * width;
            ab[l] = sums_from(r, X + (pair + l) * r, sums[l][5], sums[l][6], M1, M1 + width, m1 + l, m2 + l);
        }
        if (count == 2)
            four_weighted_sums(r, padded, Xt_anchors, vectors, products);
        else
            weighted_sums(r, padded, Xt_anchors, M, M + width, P, P + padded);
        for (int l = 0; l < count; l++) {
            const int64_t i = pair + l;
            const float *near = near_ + i * m, *K1 = K + 2 * i * m, *K2 = K1 + m, *B1 = bearings + 3 * l * padded;
            const float *B2 = B1 + padded, *sine = B2 + padded, *P1 = P + 2 * l * padded, *P2 = P1 + padded;
            const float s1 = sums[l][0], s2 = sums[l][1], s12 = sums[l][2], sum1 = sums[l][3], sum2 = sums[l][4];
            const float q1 = quadratic * s1 + own, q2 = quadratic * s2 + own, q12 = quadratic * s12;
            const float d1 = shift * sum1, d2 = shift * sum2, o1 = m1[l], o2 = m2[l];
            const float y0 = Y[3 * i], y1 = Y[3 * i + 1], y2 = Y[3 * i + 2];
            float U[3], V[3], along_U = 0, along_V = 0, fx = 0, fy = 0, fz = 0;
            frame_at_float(Y + 3 * i, U, V);
#pragma omp simd reduction(+ : along_U, along_V, fx, fy, fz)
            for (int64_t j = 0; j < m; j++) {
                /* as an apex */
                float g1 = q1 * B1[j] + q12 * B2[j] + d1 - four * near[j] * (P1[j] - o1);
                float g2 = q2 * B2[j] + q12 * B1[j] + d2 - four * near[j] * (P2[j] - o2);
                float across = (g2 * B1[j] - g1 * B2[j]) * sine[j] * (y0 * Zx[j] + y1 * Zy[j] + y2 * Zz[j]);
                along_U -= B2[j] * across;
                along_V += B1[j] * across;
                /* as a leg */
                float c1 = y0 * Ux[j] + y1 * Uy[j] + y2 * Uz[j], c2 = y0 * Vx[j] + y1 * Vy[j] + y2 * Vz[j];
                const float inverse = (near[j] > 0 ? 1.0f : 0.0f) / sqrtf(c1 * c1 + c2 * c2 + softening);
                c1 *= inverse;
                c2 *= inverse;
                g1 = (quadratic * S1[j] + own) * c1 + quadratic * S12[j] * c2 + shift * t1[j] - four * near[j] * K1[j];
                g2 = (quadratic * S2[j] + own) * c2 + quadratic * S12[j] * c1 + shift * t2[j] - four * near[j] * K2[j];
                across = (g2 * c1 - g1 * c2) * inverse;
                fx += across * (c1 * Vx[j] - c2 * Ux[j]);
                fy += across * (c1 * Vy[j] - c2 * Uy[j]);
                fz += across * (c1 * Vz[j] - c2 * Uz[j]);
            }
            force[3 * i] = fx - along_U * U[0] - along_V * V[0];
            force[3 * i + 1] = fy - along_U * U[1] - along_V * V[1];
            force[3 * i + 2] = fz - along_U * U[2] - along_V * V[2];
            moments[i] = sum1 * sum1 + sum2 * sum2 - s1 - s2;
            moments[b + i] = s1 * s1 + s2 * s2 + 2 * s12 * s12 - s1 - s2;
            moments[2 * b + i] = ab[l] - s1 - s2;
        }
    }
}

KERNEL(read_field)(int64_t n_threads, int64_t n, const float *Y, int64_t n_rows, int64_t n_columns, float *field,
                   float *value, float *slope);
KERNEL(arc_residuals)(int64_t n_threads, int64_t b, int64_t m, const float *near, const float *Y, const float *Z, double p,
                      double q, double least_sine, float *squares, float *gradient, float *sums);
KERNEL(inverse_distances_float32)(int64_t b, int64_t m, int64_t r, const float *X_apex, const float *X_legs, int64_t stride,
                                const float *norms_apex, const float *norms_legs, double trusted, double negligible,
                                float *result);

/* Indices into `numbers`. For angles: alpha, beta, the softening, and the factors of the forces and of the curvatures. For
   distances: p, q, the smallest sine, and both factors. Then, for `far_forces`: the tolerances of `inverse_distances`. For
   `settle`: the inverse of the squared bandwidth, the factors of `Forces`, and the longest step. */
enum {
    ALPHA, BETA, SOFTENING, ANGLE_FACTOR, ANGLE_CURVATURE, ARC_P, ARC_Q, LEAST_SINE, ARC_FACTOR, ARC_CURVATURE, FAR_NUMBERS,
    TRUSTED = FAR_NUMBERS, NEGLIGIBLE,
    INVERSE_SQUARE = FAR_NUMBERS, PULL, PUSH, STIFFNESS, LONGEST
};

struct far {
    int64_t m, r, width, padded, grain, room; /* room: numbers of scratch memory per block of rows */
    const double *numbers;
    const float *X, *Y, *anchors, *X_anchors, *Xt_anchors, *factors;
    float *scratch, *force, *curvature;
    double *sums;
};

static void far_rows(const void *arguments, int64_t start, int64_t last)
{
    const struct far f = *(const struct far *)arguments;
    const int64_t m = f.m, r = f.r, width = f.width, padded = f.padded, wide = 3 * padded, block = start / f.grain;
    const double *numbers = f.numbers;
    const float *offsets = f.factors + width * wide, *norms = offsets + 2 * padded;
    float *scratch = f.scratch + block * f.room, *x = scratch + 14 * padded + 4 * width, *products = x + 4 * width;
    float *near = products + 4 * wide, *K = near + 4 * m, *far = K + 8 * m, *steepness = far + 12;
    float *moments = steepness + 4, *arcs = moments + 12, *squares = arcs + 12, *of_arcs = squares + 4, own[4];
    double *sums = f.sums + 8 * block;
    const float *const four_x[4] = {x, x + width, x + 2 * width, x + 3 * width};
    float *const four_products[4] = {products, products + wide, products + 2 * wide, products + 3 * wide};
    for (int64_t first = start; first < last; first += 4) {
        const int64_t count = first + 4 <= last ? 4 : last - first;
        const float *X = f.X + first * r, *Y = f.Y + 3 * first;
        for (int64_t l = 0; l < count; l++)
            memcpy(x + l * width, X + l * r, sizeof(float) * r);
        four_weighted_sums(r, wide, f.factors, four_x, four_products);
        for (int64_t l = 0; l < count; l++) {
            const float *here = x + l * width, *found = products + l * wide;
            float square = 0, *K1 = K + 2 * l * m;
#pragma omp simd reduction(+ : square)
            for (int64_t k = 0; k < r; k++)
                square += here[k] * here[k];
            own[l] = square;
#pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                K1[j] = found[j] - offsets[j];
                K1[m + j] = found[padded + j] - offsets[padded + j];
                near[l * m + j] = found[2 * padded + j];
            }
        }
        JOIN(mercat_inverse_distances_float32, LEVEL)(count, m, r, X, f.X_anchors, width, own, norms, numbers[TRUSTED],
                                                    numbers[NEGLIGIBLE], near);
        angle_forces(count, m, r, width, padded, X, Y, near, K, f.anchors, f.X_anchors, f.Xt_anchors,
                     numbers[ALPHA], numbers[BETA], numbers[SOFTENING], scratch, far, steepness, moments);
        JOIN(mercat_arc_residuals, LEVEL)(1, count, m, near, Y, f.anchors, numbers[ARC_P], numbers[ARC_Q],
                                          numbers[LEAST_SINE], squares, arcs, of_arcs);
        for (int64_t i = 0; i < 3 * count; i++)
            f.force[3 * first + i] = (float)numbers[ANGLE_FACTOR] * far[i] + (float)numbers[ARC_FACTOR] * arcs[i];
        for (int64_t l = 0; l < count; l++) {
            f.curvature[first + l] = (float)numbers[ANGLE_CURVATURE] * steepness[l] + (float)numbers[ARC_CURVATURE];
            for (int k = 0; k < 3; k++)
                sums[k] += moments[k * count + l];
            for (int k = 0; k < 5; k++)
                sums[3 + k] += of_arcs[k * count + l];
        }
    }
}

/* Forces of angles and distances on n points X (n x r) at Y and their curvatures (`FarTerms`). `sums` are, for each block
   of `grain` points, the totals of the moments of `angle_forces` (3) and of the sums of `arc_residuals` (5). Anchors are
   given as for `angle_forces`, and by `factors`: r rows of 3 padded numbers (the sums M and the data), then the products
   of M with the anchors, and their squared norms. `scratch`: `room` numbers for each block, at least
   26 padded + 8 width + 12 m + 68. */
KERNEL(far_forces)(int64_t n_threads, int64_t n, int64_t m, int64_t r, int64_t width, int64_t padded, int64_t grain,
                   int64_t room, const double *numbers, const float *X, const float *Y, const float *anchors,
                   const float *X_anchors, const float *Xt_anchors, const float *factors, float *scratch, float *force,
                   float *curvature, double *sums)
{
    struct far far = {m, r, width, padded, grain, room, numbers, X, Y, anchors, X_anchors, Xt_anchors, factors, scratch,
                      force, curvature, sums};
    for_rows(n_threads, n, grain, far_rows, &far);
}

/* Moves b new points X (b x r) on a finished map by a fixed number of steps, see `DetailPlacer`. Y contains their
   positions, followed by those of their neighbours; each point is attracted by a row of a sparse matrix (`ends`,
   `columns`, `weights`). `near`, K and the anchors are those of `angle_forces`. `scratch`: 14 padded + 4 width + 23 b
   numbers. */
KERNEL(settle)(int64_t b, int64_t m, int64_t r, int64_t width, int64_t padded, int64_t n_rows, int64_t n_columns,
               int64_t steps, const double *numbers, const int64_t *ends, const int32_t *columns, const float *weights,
               const float *stiffness, const float *X, const float *near, const float *K, const float *anchors,
               const float *X_anchors, const float *Xt_anchors, float *field, float *scratch, float *Y)
{
    float *pull = scratch + 14 * padded + 4 * width, *push = pull + 3 * b, *far = push + 3 * b, *arcs = far + 3 * b;
    float *velocity = arcs + 3 * b, *curvature = velocity + 3 * b, *steepness = curvature + b, *value = steepness + b;
    float *sums = value + b;
    const struct graph graph = {ends, columns, weights, Y, (float)numbers[INVERSE_SQUARE], pull};
    const struct step step = {Y, pull, push, far, stiffness, curvature, (float)numbers[PULL], (float)numbers[PUSH],
                              (float)numbers[STIFFNESS], 0, 1, (float)numbers[LONGEST], velocity, Y};
    memset(velocity, 0, sizeof(float) * 3 * b);
    for (int64_t s = 0; s < steps; s++) {
        attract(&graph, 0, b);
        JOIN(mercat_read_field, LEVEL)(1, b, Y, n_rows, n_columns, field, value, push);
        angle_forces(b, m, r, width, padded, X, Y, near, K, anchors, X_anchors, Xt_anchors, numbers[ALPHA], numbers[BETA],
                     numbers[SOFTENING], scratch, far, steepness, sums);
        JOIN(mercat_arc_residuals, LEVEL)(1, b, m, near, Y, anchors, numbers[ARC_P], numbers[ARC_Q],
                                          numbers[LEAST_SINE], value, arcs, sums);
        for (int64_t i = 0; i < 3 * b; i++)
            far[i] = (float)numbers[ANGLE_FACTOR] * far[i] + (float)numbers[ARC_FACTOR] * arcs[i];
        for (int64_t i = 0; i < b; i++)
            curvature[i] = (float)numbers[ANGLE_CURVATURE] * steepness[i] + (float)numbers[ARC_CURVATURE];
        take_step(&step, 0, b);
    }
}
