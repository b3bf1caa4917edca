/* Placement of points against landmarks; defined in `_solve/placement.py`. Each point descends from its best candidate
   to a minimum of its energy. */

#include <float.h>

#include "kernels.h"

/* A point as a leg at L landmarks: the rows of `legs` are the coordinates of the frames U and V of the landmarks, then
   sigma (two) and sigma12; K1 and K2 belong to the point. A point as an apex over m legs: the rows of `Y` are the
   coordinates of the legs, those of `X` their data (m rows of `width` numbers, padded with zeros); `Xt` is the
   transpose of `X` (rows of `padded` numbers). */
struct landmarks {
    int64_t L, m, r, width, padded;
    const float *legs, *Y, *X, *Xt;
    float softening, alpha, beta, apex_weight;
    float pair_weight, p, q, least_sine; /* for distances to the legs of an apex */
};

struct point {
    const float *x, *K1, *K2, *near, *seen; /* inverse distances to the legs, as angles and as distances see them */
    float *scratch; /* 7 padded + 2 width numbers */
};

/* Energy of a point at y as an apex; its gradient in R^3 is added to g unless g is NULL. */
static float as_apex(const struct landmarks *k, const struct point *p, const float y[3], float *g)
{
    const int64_t m = k->m, r = k->r, width = k->width, padded = k->padded;
    const float *Y1 = k->Y, *Y2 = Y1 + m, *Y3 = Y2 + m, *near = p->near, *x = p->x;
    const float alpha = k->alpha, beta = k->beta, softening = k->softening, y0 = y[0], y1 = y[1], y2 = y[2];
    float *B1 = p->scratch, *B2 = B1 + padded, *sine = B2 + padded, *W1 = sine + padded, *W2 = W1 + padded;
    float *P1 = W2 + padded, *P2 = P1 + padded, *M1 = P2 + padded, *M2 = M1 + width;
    float U[3], V[3], s1 = 0, s2 = 0, s12 = 0, t1 = 0, t2 = 0, w1 = 0, w2 = 0;
    frame_at_float(y, U, V);
    const float U0 = U[0], U1 = U[1], U2 = U[2], V0 = V[0], V1 = V[1], V2 = V[2];
#pragma omp simd reduction(+ : s1, s2, s12, t1, t2, w1, w2)
    for (int64_t j = 0; j < m; j++) {
        float c1 = U0 * Y1[j] + U1 * Y2[j] + U2 * Y3[j], c2 = V0 * Y1[j] + V1 * Y2[j] + V2 * Y3[j];
        float inverse = 1 / sqrtf(c1 * c1 + c2 * c2 + softening);
        c1 *= inverse;
        c2 *= inverse;
        sine[j] = inverse;
        B1[j] = c1;
        B2[j] = c2;
        const float a = c1 * near[j], c = c2 * near[j];
        W1[j] = a;
        W2[j] = c;
        s1 += c1 * c1;
        s2 += c2 * c2;
        s12 += c1 * c2;
        t1 += c1;
        t2 += c2;
        w1 += a;
        w2 += c;
    }
    weighted_sums(m, width, k->X, W1, W2, M1, M2);
    float m1, m2, own = s1 + s2, ab = sums_from(r, x, w1, w2, M1, M2, &m1, &m2);
    float b = t1 * t1 + t2 * t2, bb = s1 * s1 + s2 * s2 + 2 * s12 * s12;
    float energy = beta * beta * (bb - own) - 2 * beta * (ab - own) + 2 * alpha * beta * (b - own);
    if (g) {
        weighted_sums(r, padded, k->Xt, M1, M2, P1, P2);
        float along_U = 0, along_V = 0, gamma = 1 - alpha - beta / 2;
        float q1 = 4 * beta * (beta * s1 + gamma), q2 = 4 * beta * (beta * s2 + gamma), q12 = 4 * beta * beta * s12;
        float d1 = 4 * alpha * beta * t1, d2 = 4 * alpha * beta * t2;
#pragma omp simd reduction(+ : along_U, along_V)
        for (int64_t j = 0; j < m; j++) {
            float g1 = q1 * B1[j] + q12 * B2[j] + d1 - 4 * beta * near[j] * (P1[j] - m1);
            float g2 = q2 * B2[j] + q12 * B1[j] + d2 - 4 * beta * near[j] * (P2[j] - m2);
            float along = g1 * B1[j] + g2 * B2[j], cosine = y0 * Y1[j] + y1 * Y2[j] + y2 * Y3[j];
            along_U += (g1 - B1[j] * along) * sine[j] * cosine;
            along_V += (g2 - B2[j] * along) * sine[j] * cosine;
        }
        for (int c = 0; c < 3; c++)
            g[c] -= k->apex_weight * (along_U * U[c] + along_V * V[c]);
    }
    return k->apex_weight * energy;
}

/* Energy of a point at y as a leg, and its gradient g in R^3. */
static float as_leg(const struct landmarks *k, const struct point *p, const float y[3], float g[3])
{
    const int64_t L = k->L;
    const float *U1 = k->legs, *U2 = U1 + L, *U3 = U2 + L, *V1 = U3 + L, *V2 = V1 + L, *V3 = V2 + L;
    const float *sigma1 = V3 + L, *sigma2 = sigma1 + L, *sigma12 = sigma2 + L;
    const float *K1 = p->K1, *K2 = p->K2, softening = k->softening, y0 = y[0], y1 = y[1], y2 = y[2];
    float energy = 0, gx = 0, gy = 0, gz = 0;
#pragma omp simd reduction(+ : energy, gx, gy, gz)
    for (int64_t j = 0; j < L; j++) {
        float b1 = y0 * U1[j] + y1 * U2[j] + y2 * U3[j], b2 = y0 * V1[j] + y1 * V2[j] + y2 * V3[j];
        float inverse = 1 / sqrtf(b1 * b1 + b2 * b2 + softening);
        b1 *= inverse;
        b2 *= inverse;
        float g1 = b1 * sigma1[j] + b2 * sigma12[j] + K1[j], g2 = b2 * sigma2[j] + b1 * sigma12[j] + K2[j];
        energy += (g1 + K1[j]) * b1 + (g2 + K2[j]) * b2;
        float along = g1 * b1 + g2 * b2;
        g1 = (g1 - b1 * along) * inverse;
        g2 = (g2 - b2 * along) * inverse;
        gx += g1 * U1[j] + g2 * V1[j];
        gy += g1 * U2[j] + g2 * V2[j];
        gz += g1 * U3[j] + g2 * V3[j];
    }
    g[0] = gx;
    g[1] = gy;
    g[2] = gz;
    return energy / 2;
}

/* Energy of the distances to the legs of an apex; its gradient in R^3 is added to g unless g is NULL. */
static float by_distance(const struct landmarks *k, const struct point *point, const float y[3], float *g)
{
    const float *Y1 = k->Y, *Y2 = Y1 + k->m, *Y3 = Y2 + k->m, *seen = point->seen, p = k->p, q = k->q;
    const float y0 = y[0], y1 = y[1], y2 = y[2], least = k->least_sine * k->least_sine;
    float squares = 0, gx = 0, gy = 0, gz = 0;
    if (k->pair_weight == 0)
        return 0;
#pragma omp simd reduction(+ : squares, gx, gy, gz)
    for (int64_t j = 0; j < k->m; j++) {
        float d = seen[j] > 0 ? 1 / seen[j] : 0, cosine = y0 * Y1[j] + y1 * Y2[j] + y2 * Y3[j];
        float residual = d - p - q * arc_of(cosine), pull = residual * inverse_sine(cosine, least);
        squares += residual * residual;
        gx += pull * Y1[j];
        gy += pull * Y2[j];
        gz += pull * Y3[j];
    }
    if (g) {
        const float scale = 2 * q * k->pair_weight;
        g[0] += scale * gx;
        g[1] += scale * gy;
        g[2] += scale * gz;
    }
    return k->pair_weight * squares;
}

static float energy_at(const struct landmarks *k, const struct point *p, const float y[3], float g[3])
{
    float energy = as_leg(k, p, y, g);
    energy += as_apex(k, p, y, g);
    energy += by_distance(k, p, y, g);
    float out = dot(g, y);
    for (int c = 0; c < 3; c++)
        g[c] -= out * y[c];
    return energy;
}

/* The energy without its gradient. */
static float energy_alone(const struct landmarks *k, const struct point *p, const float y[3])
{
    float g[3];
    return as_leg(k, p, y, g) + as_apex(k, p, y, NULL) + by_distance(k, p, y, NULL);
}

static void newton_step(const float H[9], const float g[3], const float y[3], float step[3])
{
    for (int c = 0; c < 3; c++)
        step[c] = -dot(H + 3 * c, g);
    float out = dot(step, y);
    for (int c = 0; c < 3; c++)
        step[c] -= out * y[c];
}

/* Normalises y and returns its energy, with the gradient g. */
static float begin(const struct landmarks *k, const struct point *p, float y[3], float g[3])
{
    float length = sqrtf(dot(y, y));
    for (int c = 0; c < 3; c++)
        y[c] /= length;
    return energy_at(k, p, y, g);
}

/* A fixed number of BFGS steps from y, with the energy E and gradient g there, as in `bfgs`; returns whether the point
   has converged. */
static int descend(const struct landmarks *k, const struct point *p, float y[3], float *energy, float g[3],
                   int64_t steps, float first_step, const float *limits)
{
    const float longest = limits[0], rounding = limits[1], settled = limits[2];
    float H[9] = {0}, step[3], y_new[3], g_new[3], s[3], d[3], Hd[3];
    float E = *energy, steepness = sqrtf(dot(g, g));
    H[0] = H[4] = H[8] = steepness == 0 ? 0 : first_step / steepness;
    int level = 1;
    for (int64_t t = 0; t < steps; t++) {
        newton_step(H, g, y, step);
        float shorten = longest / (sqrtf(dot(step, step)) + FLT_MIN);
        shorten = shorten < 1 ? shorten : 1;
        for (int c = 0; c < 3; c++)
            y_new[c] = y[c] + step[c] * shorten;
        float length = sqrtf(dot(y_new, y_new));
        for (int c = 0; c < 3; c++)
            y_new[c] /= length;
        float E_new = energy_at(k, p, y_new, g_new);
        for (int c = 0; c < 3; c++) {
            s[c] = y_new[c] - y[c];
            d[c] = g_new[c] - g[c];
        }
        float sd = dot(s, d);
        int better = E_new <= E;
        if (sd > 1e-3f * sqrtf(dot(s, s)) * sqrtf(dot(d, d)) && sd > 1e6f * FLT_MIN) {
            for (int c = 0; c < 3; c++)
                Hd[c] = dot(H + 3 * c, d);
            float rho = 1 / sd, stretch = (1 + dot(d, Hd) * rho) * rho;
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    H[3 * a + b] += stretch * s[a] * s[b] - rho * (s[a] * Hd[b] + Hd[a] * s[b]);
        } else
            for (int c = 0; c < 9; c++)
                H[c] *= better ? 2.0f : 0.25f;
        level = E_new - E <= rounding * fabsf(E);
        if (better) {
            memcpy(y, y_new, sizeof y_new);
            memcpy(g, g_new, sizeof g_new);
            E = E_new;
        }
    }
    newton_step(H, g, y, step);
    *energy = E;
    return level && sqrtf(dot(step, step)) < settled;
}

/* The candidate with the lowest energy, among the `kept` candidates with the lowest leg energy (G numbers, overwritten)
   that are not near each other. */
static void best_candidate(const struct landmarks *k, const struct point *p, int64_t G, const float *candidates,
                           float *legs, int64_t kept, float near, float y[3])
{
    const float *x = candidates, *y2 = x + G, *z = y2 + G;
    float lowest = INFINITY;
    y[0] = y[1] = y[2] = 0;
    for (int64_t round = 0; round < kept; round++) {
        float least = INFINITY;
        int64_t at = 0;
#pragma omp simd reduction(min : least)
        for (int64_t c = 0; c < G; c++)
            least = legs[c] < least ? legs[c] : least;
        while (at < G - 1 && legs[at] > least)
            at++;
        float there[3] = {x[at], y2[at], z[at]};
        float E = legs[at] + as_apex(k, p, there, NULL) + by_distance(k, p, there, NULL);
        if (lowest > E) {
            lowest = E;
            memcpy(y, there, sizeof there);
        }
#pragma omp simd
        for (int64_t c = 0; c < G; c++)
            legs[c] = near < there[0] * x[c] + there[1] * y2[c] + there[2] * z[c] ? INFINITY : legs[c];
    }
}

/* Places b points: K is 2 x b x L, `near` and `seen` b x m, E the leg energy at the candidates (b x G), overwritten. `settings`:
   softening, alpha, beta, the weight of the apex, the cosine of the smallest distance between candidates, the longest
   step, rounding, the step length below which a point has converged, the first step of each pass (the second pass is
   for points that have not converged), the weight of distances, p and q of their line, and the smallest sine. */
KERNEL(place)(int64_t b, int64_t L, int64_t m, int64_t r, int64_t width, int64_t padded, int64_t G, int64_t kept,
              int64_t steps, int64_t more_steps, const float *settings, const float *legs, const float *Y_apex,
              const float *X_apex, const float *Xt_apex, const float *candidates, const float *X, const float *K,
              const float *near, const float *seen, float *E, float *scratch, float *Y, int8_t *settled)
{
    const struct landmarks k = {L,      m,       r,           width,       padded,      legs,       Y_apex,
                                X_apex, Xt_apex, settings[0], settings[1], settings[2], settings[3],
                                settings[10], settings[11], settings[12], settings[13]};
    memset(scratch, 0, sizeof(float) * (7 * padded + 2 * width)); /* padding is and stays 0 */
    for (int64_t i = 0; i < b; i++) {
        const struct point p = {X + i * r, K + i * L, K + (b + i) * L, near + i * m, seen + i * m, scratch};
        float *y = Y + 3 * i, g[3];
        best_candidate(&k, &p, G, candidates, E + i * G, kept, settings[4], y);
        float energy = begin(&k, &p, y, g);
        settled[i] = (int8_t)descend(&k, &p, y, &energy, g, steps, settings[8], settings + 5);
        if (!settled[i] && more_steps > 0) {
            energy = begin(&k, &p, y, g);
            settled[i] = (int8_t)descend(&k, &p, y, &energy, g, more_steps, settings[9], settings + 5);
        }
    }
}

/* Places b points, each from the best of its n starts (b x n x 3; NaN for none, except the first), and returns their
   energies E. The first and last four `settings` are as in `place`; between them are the longest step, rounding, the
   step length below which a point has converged, and the first step. */
KERNEL(place_from)(int64_t b, int64_t L, int64_t m, int64_t r, int64_t width, int64_t padded, int64_t n, int64_t steps,
                   const float *settings, const float *legs, const float *Y_apex, const float *X_apex,
                   const float *Xt_apex, const float *X, const float *K, const float *near, const float *seen,
                   const float *starts, float *scratch, float *Y, float *E)
{
    const struct landmarks k = {L,      m,       r,           width,       padded,      legs,       Y_apex,
                                X_apex, Xt_apex, settings[0], settings[1], settings[2], settings[3],
                                settings[8], settings[9], settings[10], settings[11]};
    memset(scratch, 0, sizeof(float) * (7 * padded + 2 * width));
    for (int64_t i = 0; i < b; i++) {
        const struct point p = {X + i * r, K + i * L, K + (b + i) * L, near + i * m, seen + i * m, scratch};
        const float *start = starts + 3 * n * i;
        float *y = Y + 3 * i, g[3];
        memcpy(y, start, 3 * sizeof(float));
        E[i] = begin(&k, &p, y, g);
        for (int64_t s = 1; s < n; s++) { /* mostly worse, so that their gradients are not needed */
            const float *other = start + 3 * s;
            if (isnan(other[0]) || energy_alone(&k, &p, other) >= E[i])
                continue;
            memcpy(y, other, 3 * sizeof(float));
            E[i] = begin(&k, &p, y, g);
        }
        descend(&k, &p, y, E + i, g, steps, settings[7], settings + 4);
    }
}
