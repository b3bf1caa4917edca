/* Placement of points against landmarks; defined in `_solve/placement.py`. Each point descends to a minimum of its
   energy from its best candidate. */

#include <float.h>

#include "kernels.h"

/* Landmarks as `_kernels/placement.py` packs them: arrays are padded with zeros to multiples of LANES. */
struct landmarks {
    int64_t L, m, S, G, r;                 /* landmarks, legs of an apex, screening landmarks, candidates, columns */
    int64_t wide, padded, room, width;     /* L, m, G and r, padded */
    const float *legs, *Y, *norms, *p, *T; /* rows of `wide` numbers: frames U, V and sigmas (nine), positions (three),
                                              squared norms (one), -P.x (two), T (two) */
    const float *X, *Xt;                   /* data of the legs of an apex: m x width, r x padded */
    const float *Xt_all, *Pt;              /* data (r x wide) and P (r x 2 wide) of all landmarks */
    const float *candidates, *C;           /* positions and quadratic parts (4 x room), bearings at S landmarks (two) */
    float softening, alpha, beta, apex_weight;
    float pair_weight, line_p, line_q, least_sine; /* for distances to the legs of an apex */
    float negligible, slope;                       /* see `distance_tolerances`, `half_ranks_of`; slope 0 if unused */
};

struct point {
    const float *x, *K1, *K2, *near, *seen; /* inverse distances to landmarks: for angles, and for the distance term */
    float *scratch; /* 7 padded + 2 width numbers; the padding is 0 */
};

/* Inverse distances of four points x to the landmarks (0 where they coincide), and the linear parts K of their energies
   as legs (2 x wide). */
static void compare(const struct landmarks *k, const float *const x[4], float *const near[4], float *const K[4])
{
    const int64_t wide = k->wide;
    const float *norms = k->norms, *T1 = k->T, *T2 = T1 + wide, negligible = k->negligible;
    for (int l = 0; l < 4; l++) {
        float *restrict to = near[l], own = 0;
        memset(to, 0, sizeof(float) * wide);
        for (int64_t i = 0; i < k->r; i += 4) {
            const float *a = k->Xt_all + i * wide, *b = a + wide, *c = b + wide, *d = c + wide;
            const float x0 = x[l][i], x1 = x[l][i + 1], x2 = x[l][i + 2], x3 = x[l][i + 3];
            own += x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3;
#pragma omp simd
            for (int64_t j = 0; j < wide; j++) {
                const float d0 = a[j] - x0, d1 = b[j] - x1, d2 = c[j] - x2, d3 = d[j] - x3;
                to[j] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3;
            }
        }
#pragma omp simd
        for (int64_t j = 0; j < wide; j++)
            to[j] = to[j] > negligible * (own + norms[j]) ? 1 / sqrtf(to[j]) : 0;
        memcpy(K[l], k->p, sizeof(float) * 2 * wide);
    }
    add_four_weighted_sums(k->r, 2 * wide, k->Pt, x, K);
    for (int l = 0; l < 4; l++) {
        float *restrict K1 = K[l], *restrict K2 = K1 + wide;
#pragma omp simd
        for (int64_t j = 0; j < wide; j++) {
            K1[j] = K1[j] * near[l][j] + T1[j];
            K2[j] = K2[j] * near[l][j] + T2[j];
        }
    }
}

/* Leg energies of four points at the candidates, from the screening landmarks. */
static void screen(const struct landmarks *k, float *const K[4], float *const energies[4])
{
    for (int axis = 0; axis < 2; axis++) {
        const float *w[4];
        for (int l = 0; l < 4; l++) {
            w[l] = K[l] + axis * k->wide;
            if (axis == 0)
                memcpy(energies[l], k->candidates + 3 * k->room, sizeof(float) * k->room);
        }
        add_four_weighted_sums(k->S, k->room, k->C + axis * PADDED(k->S) * k->room, w, energies);
    }
}

/* Energy of a point at y as an apex; its gradient in R^3 is added to g unless g is NULL. */
static float as_apex(const struct landmarks *k, const struct point *p, const float y[3], float *g)
{
    const int64_t m = k->m, r = k->r, width = k->width, padded = k->padded;
    const float *Y1 = k->Y, *Y2 = Y1 + k->wide, *Y3 = Y2 + k->wide, *near = p->near, *x = p->x;
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
    const int64_t n = k->wide;
    const float *U1 = k->legs, *U2 = U1 + n, *U3 = U2 + n, *V1 = U3 + n, *V2 = V1 + n, *V3 = V2 + n;
    const float *sigma1 = V3 + n, *sigma2 = sigma1 + n, *sigma12 = sigma2 + n;
    const float *K1 = p->K1, *K2 = p->K2, softening = k->softening, y0 = y[0], y1 = y[1], y2 = y[2];
    float energy = 0, gx = 0, gy = 0, gz = 0;
#pragma omp simd reduction(+ : energy, gx, gy, gz)
    for (int64_t j = 0; j < k->L; j++) {
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
    const float *Y1 = k->Y, *Y2 = Y1 + k->wide, *Y3 = Y2 + k->wide, *seen = point->seen, p = k->line_p, q = k->line_q;
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

/* Moves y along a step of limited length, to a unit vector. */
static void move(const float y[3], const float step[3], float longest, float moved[3])
{
    float shorten = longest / (sqrtf(dot(step, step)) + FLT_MIN);
    shorten = shorten < 1 ? shorten : 1;
    for (int c = 0; c < 3; c++)
        moved[c] = y[c] + step[c] * shorten;
    float length = sqrtf(dot(moved, moved));
    for (int c = 0; c < 3; c++)
        moved[c] /= length;
}

/* BFGS steps from y, with the energy E and gradient g there, as in `bfgs`: a fixed number of steps or, if the first
   inverse Hessian is given, at most that number, until a step is short. Returns whether the point has converged. */
static int descend(const struct landmarks *k, const struct point *p, float y[3], float *energy, float g[3],
                   int64_t steps, float first_step, const float *given, const float *limits)
{
    const float longest = limits[0], rounding = limits[1], settled = limits[2], brief = given ? limits[5] : 0;
    float H[9] = {0}, step[3], y_new[3], g_new[3], s[3], d[3], Hd[3];
    float E = *energy, steepness = sqrtf(dot(g, g));
    H[0] = H[4] = H[8] = steepness == 0 ? 0 : first_step / steepness;
    if (given)
        memcpy(H, given, sizeof H);
    int level = 1;
    newton_step(H, g, y, step);
    for (int64_t t = 0; t < steps && !(sqrtf(dot(step, step)) < brief); t++) {
        move(y, step, longest, y_new);
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
        newton_step(H, g, y, step);
    }
    *energy = E;
    const float length = sqrtf(dot(step, step));
    if (length < brief) {
        move(y, step, longest, y_new);
        memcpy(y, y_new, sizeof y_new);
    }
    return level && length < settled;
}

/* Makes energies at candidates near y infinite. */
static void leave_out(const struct landmarks *k, const float y[3], float near, float *restrict energies)
{
    const float *z0 = k->candidates, *z1 = z0 + k->room, *z2 = z1 + k->room, y0 = y[0], y1 = y[1], y2 = y[2];
#pragma omp simd
    for (int64_t c = 0; c < k->G; c++)
        energies[c] = near < y0 * z0[c] + y1 * z1[c] + y2 * z2[c] ? INFINITY : energies[c];
}

/* The candidate with the lowest energy, among the `kept` candidates with the lowest leg energy (overwritten) that are
   not near each other. */
static void best_candidate(const struct landmarks *k, const struct point *p, float *legs, int64_t kept, float near,
                           float y[3])
{
    float lowest = INFINITY;
    y[0] = y[1] = y[2] = 0;
    for (int64_t round = 0; round < kept; round++) {
        float least = INFINITY;
        int64_t at = 0;
#pragma omp simd reduction(min : least)
        for (int64_t c = 0; c < k->G; c++)
            least = legs[c] < least ? legs[c] : least;
        while (at < k->G - 1 && legs[at] > least)
            at++;
        const float *there = k->candidates + at, z[3] = {there[0], there[k->room], there[2 * k->room]};
        float E = legs[at] + as_apex(k, p, z, NULL) + by_distance(k, p, z, NULL);
        if (lowest > E) {
            lowest = E;
            memcpy(y, z, sizeof z);
        }
        leave_out(k, z, near, legs);
    }
}

/* The best of n starts (n x 3; missing ones are NaN, but never the first); returns its energy, with the gradient g. */
static float best_start(const struct landmarks *k, const struct point *p, int64_t n, const float *start, float y[3],
                        float g[3])
{
    memcpy(y, start, 3 * sizeof(float));
    float E = begin(k, p, y, g);
    for (int64_t s = 1; s < n; s++) { /* mostly worse, so their gradients are not needed */
        const float *other = start + 3 * s;
        if (isnan(other[0]) || energy_alone(k, p, other) >= E)
            continue;
        memcpy(y, other, 3 * sizeof(float));
        E = begin(k, p, y, g);
    }
    return E;
}

static struct landmarks unpack(const int64_t *sizes, const float *numbers, const float *table, const float *X_apex,
                               const float *Xt_apex, const float *Xt, const float *Pt, const float *candidates,
                               const float *C)
{
    const int64_t L = sizes[0], m = sizes[1], G = sizes[3], r = sizes[4], wide = PADDED(L);
    const struct landmarks k = {
        .L = L, .m = m, .S = sizes[2], .G = G, .r = r,
        .wide = wide, .padded = PADDED(m), .room = PADDED(G), .width = PADDED(r),
        .legs = table, .Y = table + 9 * wide, .norms = table + 12 * wide, .p = table + 13 * wide,
        .T = table + 15 * wide, .X = X_apex, .Xt = Xt_apex, .Xt_all = Xt, .Pt = Pt, .candidates = candidates, .C = C,
        .softening = numbers[0], .alpha = numbers[1], .beta = numbers[2], .apex_weight = numbers[3],
        .pair_weight = numbers[4], .line_p = numbers[5], .line_q = numbers[6], .least_sine = numbers[7],
        .negligible = numbers[8], .slope = numbers[9],
    };
    return k;
}

/* Four points that are compared with the landmarks together. */
struct group {
    float *x[4], *near[4], *K[4], *legs[4], *seen, *scratch;
};

/* Memory of a group: 6 width + 8 padded + 12 wide + 4 room zeros. */
static struct group lay_out(const struct landmarks *k, float *scratch)
{
    struct group q = {.scratch = scratch, .seen = scratch + 2 * k->width + 7 * k->padded};
    float *end = q.seen + k->padded;
    for (int l = 0; l < 4; l++) {
        q.x[l] = end;
        q.near[l] = q.x[l] + k->width;
        q.K[l] = q.near[l] + k->wide;
        q.legs[l] = q.K[l] + 2 * k->wide;
        end = q.legs[l] + k->room;
    }
    return q;
}

/* Compares up to four points, starting at `first`, with the landmarks; the last group is padded with the last point. */
static void compare_group(const struct landmarks *k, const struct group *q, const float *X, int64_t first, int64_t b)
{
    for (int l = 0; l < 4; l++)
        memcpy(q->x[l], X + (first + l < b ? first + l : b - 1) * k->r, sizeof(float) * k->r);
    compare(k, (const float *const *)q->x, q->near, q->K);
}

static struct point point_of(const struct landmarks *k, const struct group *q, int l, const float *quantiles)
{
    const struct point p = {q->x[l], q->K[l], q->K[l] + k->wide, q->near[l], k->slope > 0 ? q->seen : q->near[l], q->scratch};
    if (k->slope > 0)
        half_ranks_of(k->m, q->near[l], quantiles, quantiles + 65, k->slope, q->seen);
    return p;
}

/* Places b points X (b x r) and returns their energies E. Each descends from the best of its n starts (b x n x 3)
   or, without starts, from the best of the candidates that are not near `away` (b x 3, NaN if not used). A point
   that coincides with a landmark gets the landmark's position. `H`: inverse Hessians (b x 9) for the first pass, if
   they are `given`. `limits`: the cosine of the smallest distance between candidates, the longest step, rounding,
   the step length below which a point has converged, the first step of each pass (the second pass is for points that
   have not converged), and the step length that ends the first pass, if H are given; energies are then those before
   the last step. Four points are compared with the landmarks at a time. `scratch`: see `lay_out`. */
KERNEL(place)(int64_t b, const int64_t *sizes, const float *numbers, const float *table, const float *X_apex,
              const float *Xt_apex, const float *Xt, const float *Pt, const float *candidates, const float *C,
              const float *quantiles, int64_t n, int64_t given, int64_t kept, int64_t steps, int64_t more_steps,
              const float *limits, const float *X, const float *starts, const float *away, const float *H, float *scratch,
              float *Y, float *E, int8_t *settled)
{
    const struct landmarks k = unpack(sizes, numbers, table, X_apex, Xt_apex, Xt, Pt, candidates, C);
    const struct group q = lay_out(&k, scratch);
    for (int64_t first = 0; first < b; first += 4) {
        compare_group(&k, &q, X, first, b);
        if (n == 0)
            screen(&k, q.K, q.legs);
        for (int64_t i = first; i < b && i < first + 4; i++) {
            const int l = (int)(i - first);
            const struct point p = point_of(&k, &q, l, quantiles);
            float *y = Y + 3 * i, g[3];
            if (n == 0) {
                leave_out(&k, away + 3 * i, limits[0], q.legs[l]);
                best_candidate(&k, &p, q.legs[l], kept, limits[0], y);
                E[i] = begin(&k, &p, y, g);
            } else
                E[i] = best_start(&k, &p, n, starts + 3 * n * i, y, g);
            settled[i] = (int8_t)descend(&k, &p, y, E + i, g, steps, limits[4], given ? H + 9 * i : NULL, limits + 1);
            if (!settled[i] && more_steps > 0) {
                E[i] = begin(&k, &p, y, g);
                settled[i] = (int8_t)descend(&k, &p, y, E + i, g, more_steps, limits[5], NULL, limits + 1);
            }
            for (int64_t j = 0; j < k.L; j++)
                if (q.near[l][j] == 0) {
                    for (int c = 0; c < 3; c++)
                        y[c] = k.Y[c * k.wide + j];
                    settled[i] = 1;
                    break;
                }
        }
    }
}

/* Gradients (b x n x 3) of the energies of b points X (b x r) at n positions Y (b x n x 3) each; scratch as above. */
KERNEL(gradients)(int64_t b, const int64_t *sizes, const float *numbers, const float *table, const float *X_apex,
                  const float *Xt_apex, const float *Xt, const float *Pt, const float *candidates, const float *C,
                  const float *quantiles, int64_t n, const float *X, const float *Y, float *scratch, float *gradients)
{
    const struct landmarks k = unpack(sizes, numbers, table, X_apex, Xt_apex, Xt, Pt, candidates, C);
    const struct group q = lay_out(&k, scratch);
    for (int64_t first = 0; first < b; first += 4) {
        compare_group(&k, &q, X, first, b);
        for (int64_t i = first; i < b && i < first + 4; i++) {
            const struct point p = point_of(&k, &q, (int)(i - first), quantiles);
            for (int64_t at = n * i; at < n * (i + 1); at++)
                energy_at(&k, &p, Y + 3 * at, gradients + 3 * at);
        }
    }
}
