/* The kernels of angles.c in one precision, REAL. All b apices share the same m legs; arrays for the two axes of a
   tangent plane have a first axis of length 2. Legs on the map, `Y_legs`, are stored by coordinates (3 x m), so that
   SIMD lanes run along the legs. */

#define DOT3(a, x, y, z) ((a)[0] * (x) + (a)[1] * (y) + (a)[2] * (z))

/* Replaces inner products (b x m) by inverse distances, 0 for points that coincide. If the inner products cancel, the
   distance is computed from the difference instead. */
KERNEL_OF(inverse_distances)(int64_t b, int64_t m, int64_t r, const REAL *X_apex, const REAL *X_legs, int64_t stride,
                             const REAL *norms_apex, const REAL *norms_legs, double trusted_, double negligible_,
                             REAL *result)
{
    const REAL trusted = (REAL)trusted_, negligible = (REAL)negligible_;
    for (int64_t i = 0; i < b; i++) {
        REAL *row = result + i * m, own = norms_apex[i];
        int near = 0;
#pragma omp simd reduction(+ : near)
        for (int64_t j = 0; j < m; j++) {
            REAL norms = own + norms_legs[j], squared = norms - 2 * row[j];
            int close = squared <= trusted * norms;
            near += close;
            row[j] = close ? -1 : 1 / ROOT(squared); /* -1: near, recomputed below */
        }
        for (int64_t j = 0; near > 0 && j < m; j++) {
            if (!(row[j] < 0))
                continue;
            const REAL *x = X_apex + i * r, *y = X_legs + j * stride;
            REAL squared = 0;
#pragma omp simd reduction(+ : squared)
            for (int64_t k = 0; k < r; k++)
                squared += (x[k] - y[k]) * (x[k] - y[k]);
            row[j] = squared <= negligible * (own + norms_legs[j]) ? 0 : 1 / ROOT(squared);
            near--;
        }
    }
}

/* `bearings`, S, S12 and t of `apex_sums`, and the weights for M. Mask and inverse distances have one row per apex, or
   one row for all (stride 0). */
KERNEL_OF(bearings)(int64_t b, int64_t m, const REAL *Y_apex, const REAL *Y_legs, const REAL *mask, int64_t mask_stride,
                    double softening_, const REAL *inverse_distance, int64_t distance_stride, REAL *B,
                    REAL *inverse_sine, REAL *frame, REAL *S, REAL *S12, REAL *t, REAL *weights)
{
    const REAL softening = (REAL)softening_, *x = Y_legs, *y = Y_legs + m, *z = Y_legs + 2 * m;
    for (int64_t i = 0; i < b; i++) {
        REAL *U = frame + 3 * i, *V = frame + 3 * (b + i), *sine = inverse_sine + i * m;
        REAL *B1 = B + i * m, *B2 = B + (b + i) * m, *W1 = weights + i * m, *W2 = weights + (b + i) * m;
        const REAL *there = mask + i * mask_stride, *near = inverse_distance + i * distance_stride;
        REAL s1 = 0, s2 = 0, s12 = 0, t1 = 0, t2 = 0;
        JOIN(frame_at_, REAL)(Y_apex + 3 * i, U, V);
#pragma omp simd reduction(+ : s1, s2, s12, t1, t2)
        for (int64_t j = 0; j < m; j++) {
            REAL c1 = DOT3(U, x[j], y[j], z[j]), c2 = DOT3(V, x[j], y[j], z[j]);
            REAL inverse = there[j] / ROOT(c1 * c1 + c2 * c2 + softening);
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
            t1 += c1;
            t2 += c2;
        }
        S[i] = s1;
        S[b + i] = s2;
        S12[i] = s12;
        t[i] = t1;
        t[b + i] = t2;
    }
}

/* `apex_gradient`, given the inner products of M with the differences between legs and apices (2 x b x m): at the apices
   (b x 3), and at the legs by coordinates (3 x m), which is added to `to_legs`. */
KERNEL_OF(apex_gradient)(int64_t b, int64_t m, const REAL *Y_apex, const REAL *Y_legs, const REAL *inverse_distance,
                          const REAL *B, const REAL *inverse_sine, const REAL *frame, const REAL *S, const REAL *S12,
                          const REAL *t, const REAL *products, double alpha, double beta, REAL *to_apices, REAL *to_legs)
{
    const REAL *x = Y_legs, *y = Y_legs + m, *z = Y_legs + 2 * m;
    REAL *fx = to_legs, *fy = to_legs + m, *fz = to_legs + 2 * m;
    const REAL four = (REAL)(4 * beta), quadratic = (REAL)(4 * beta * beta);
    const REAL itself = (REAL)(4 * beta * (1 - alpha - beta / 2)); /* 4 beta gamma, see `direction_gradient` */
    for (int64_t i = 0; i < b; i++) {
        const REAL *U = frame + 3 * i, *V = frame + 3 * (b + i), *Y = Y_apex + 3 * i;
        const REAL *B1 = B + i * m, *B2 = B + (b + i) * m, *P1 = products + i * m, *P2 = products + (b + i) * m;
        const REAL *sine = inverse_sine + i * m, *near = inverse_distance + i * m;
        REAL c1 = quadratic * S[i] + itself, c2 = quadratic * S[b + i] + itself, c12 = quadratic * S12[i];
        REAL d1 = (REAL)(4 * alpha * beta) * t[i], d2 = (REAL)(4 * alpha * beta) * t[b + i], along_U = 0, along_V = 0;
#pragma omp simd reduction(+ : along_U, along_V)
        for (int64_t j = 0; j < m; j++) {
            REAL g1 = c1 * B1[j] + c12 * B2[j] + d1 - four * near[j] * P1[j];
            REAL g2 = c2 * B2[j] + c12 * B1[j] + d2 - four * near[j] * P2[j];
            REAL across = (g2 * B1[j] - g1 * B2[j]) * sine[j];
            REAL u = -B2[j] * across, v = B1[j] * across, cosine = DOT3(Y, x[j], y[j], z[j]);
            along_U += u * cosine;
            along_V += v * cosine;
            fx[j] += u * U[0] + v * V[0];
            fy[j] += u * U[1] + v * V[1];
            fz[j] += u * U[2] + v * V[2];
        }
        for (int k = 0; k < 3; k++)
            to_apices[3 * i + k] = -along_U * U[k] - along_V * V[k];
    }
}

/* Squared Frobenius norm |A'A|^2 for A (rows x width; multiples of 4 and LANES), of which only the first `used` columns
   may be nonzero. `gram` holds `width`^2 numbers. */
static double JOIN(squares_of_products_, REAL)(int64_t rows, int64_t used, int64_t width, const REAL *A, REAL *gram)
{
    memset(gram, 0, sizeof(REAL) * width * width);
    for (int64_t l = 0; l < rows; l += 4) {
        const REAL *a0 = A + l * width, *a1 = a0 + width, *a2 = a1 + width, *a3 = a2 + width;
        for (int64_t p = 0; p < used; p++) {
            const REAL s0 = a0[p], s1 = a1[p], s2 = a2[p], s3 = a3[p];
            for (int64_t v = p / LANES * LANES; v < width; v += LANES) { /* upper triangle only */
                REAL *g = gram + p * width + v;
#pragma omp simd
                for (int q = 0; q < LANES; q++)
                    g[q] += s0 * a0[v + q] + s1 * a1[v + q] + s2 * a2[v + q] + s3 * a3[v + q];
            }
        }
    }
    double all = 0, diagonal = 0;
    for (int64_t p = 0; p < used; p++) {
        const REAL *g = gram + p * width;
        double off_diagonal = 0;
        diagonal += (double)g[p] * g[p];
#pragma omp simd reduction(+ : off_diagonal)
        for (int64_t q = p + 1; q < used; q++)
            off_diagonal += (double)g[q] * g[q];
        all += off_diagonal;
    }
    return 2 * all + diagonal;
}

/* `data_moments`: number, sum and sum of squares of the cosines at each of b apices. With A the directions to the legs
   in the data (m x r), the sum of squares is |A'A|^2 = |AA'|^2; the smaller product is computed. `scratch` holds the
   rows or the columns of A, padded to `width` >= min(m, r), `width`^2 sums and r more numbers. */
KERNEL_OF(data_moments)(int64_t b, int64_t m, int64_t r, const REAL *X_apex, const REAL *X_legs, int64_t stride,
                        const REAL *inverse_distance, int64_t width, REAL *scratch, REAL *count, REAL *sum, REAL *squares)
{
    const int by_legs = r > m;
    const int64_t length = by_legs ? r : m, used = by_legs ? m : r, rows = (length + 3) / 4 * 4;
    REAL *A = scratch, *gram = A + rows * width, *total = gram + width * width;
    memset(A, 0, sizeof(REAL) * rows * width);
    for (int64_t i = 0; i < b; i++) {
        const REAL *x = X_apex + i * r, *near = inverse_distance + i * m;
        int64_t valid = 0;
        memset(total, 0, sizeof(REAL) * r);
        for (int64_t j = 0; j < m; j++) {
            const REAL *leg = X_legs + j * stride;
            const REAL scale = near[j];
            valid += scale != 0;
            for (int64_t k = 0; k < r; k++) {
                REAL a = (leg[k] - x[k]) * scale;
                A[by_legs ? k * width + j : j * width + k] = a;
                total[k] += a;
            }
        }
        double total_squared = 0;
        for (int64_t k = 0; k < r; k++)
            total_squared += (double)total[k] * total[k];
        count[i] = (REAL)(valid * (valid - 1));
        sum[i] = (REAL)(total_squared - valid);
        squares[i] = (REAL)(JOIN(squares_of_products_, REAL)(rows, used, width, A, gram) - valid);
    }
}

/* All `Moments` (6 x b) of b apices, the first of which has the index `start`: the apices of a tile share m of the n
   points X at Y as legs; the legs of the next tile start `step` points later, cyclically. `scratch` holds the directions
   A of one apex by columns (padded as in `data_moments` for r > m) and by rows (padded as for r <= m), the sums of
   `squares_of_products` and (r + 8) m numbers. */
KERNEL_OF(moments)(int64_t b, int64_t start, int64_t tile, int64_t step, int64_t n, int64_t m, int64_t r,
                   const REAL *X_apex, const REAL *Y_apex, const REAL *X, const REAL *Y, double negligible,
                   double softening_, REAL *scratch, double *found)
{
    const int64_t m_width = PADDED(m), r_width = PADDED(r);
    const int64_t r_rows = (r + 3) / 4 * 4, m_rows = (m + 3) / 4 * 4;
    const REAL softening = (REAL)softening_;
    REAL *At = scratch, *A = At + r_rows * m_width, *squared = A + (r > m ? 0 : m_rows * r_width);
    REAL *norms = squared + m, *near = norms + m, *B1 = near + m, *B2 = B1 + m, *gram = B2 + m;
    REAL *X_legs = gram + (r > m ? m_width * m_width : r_width * r_width), *y0 = X_legs + r * m, *y1 = y0 + m, *y2 = y1 + m;
    for (int64_t i = 0; i < b; i++) {
        if (i == 0 || (start + i) % tile == 0) /* the legs of a new tile, by columns */
            for (int64_t j = 0; j < m; j++) {
                const int64_t leg = ((start + i) / tile * step + j) % n;
                norms[j] = 0;
                for (int64_t k = 0; k < r; k++) {
                    X_legs[k * m + j] = X[leg * r + k];
                    norms[j] += X[leg * r + k] * X[leg * r + k];
                }
                y0[j] = Y[3 * leg];
                y1[j] = Y[3 * leg + 1];
                y2[j] = Y[3 * leg + 2];
            }
        const REAL *x = X_apex + i * r;
        REAL U[3], V[3], own = 0, s1 = 0, s2 = 0, s12 = 0, t1 = 0, t2 = 0, valid = 0;
        double a = 0, ab = 0, aa;
        memset(squared, 0, sizeof(REAL) * m);
        for (int64_t k = 0; k < r; k++) {
            const REAL *leg = X_legs + k * m, here = x[k];
            REAL *restrict row = At + k * m_width;
            own += here * here;
#pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                row[j] = leg[j] - here;
                squared[j] += row[j] * row[j];
            }
        }
        JOIN(frame_at_, REAL)(Y_apex + 3 * i, U, V);
#pragma omp simd reduction(+ : s1, s2, s12, t1, t2, valid)
        for (int64_t j = 0; j < m; j++) {
            const REAL there = squared[j] > (REAL)negligible * (own + norms[j]) ? 1 : 0;
            REAL c1 = DOT3(U, y0[j], y1[j], y2[j]), c2 = DOT3(V, y0[j], y1[j], y2[j]);
            const REAL inverse = there / ROOT(c1 * c1 + c2 * c2 + softening);
            near[j] = there > 0 ? 1 / ROOT(squared[j]) : 0;
            B1[j] = c1 *= inverse;
            B2[j] = c2 *= inverse;
            s1 += c1 * c1;
            s2 += c2 * c2;
            s12 += c1 * c2;
            t1 += c1;
            t2 += c2;
            valid += there;
        }
        for (int64_t k = 0; k < r; k++) {
            REAL *restrict row = At + k * m_width, total = 0, M1 = 0, M2 = 0;
#pragma omp simd reduction(+ : total, M1, M2)
            for (int64_t j = 0; j < m; j++) {
                row[j] *= near[j];
                total += row[j];
                M1 += row[j] * B1[j];
                M2 += row[j] * B2[j];
            }
            a += (double)total * total;
            ab += (double)M1 * M1 + (double)M2 * M2;
        }
        if (r <= m)
            for (int64_t k = 0; k < r; k++)
                for (int64_t j = 0; j < m; j++)
                    A[j * r_width + k] = At[k * m_width + j];
        aa = r > m ? JOIN(squares_of_products_, REAL)(r_rows, m, m_width, At, gram)
                   : JOIN(squares_of_products_, REAL)(m_rows, r, r_width, A, gram);
        const double one = valid, s = (double)s1 + s2;
        found[i] = one * (one - 1);
        found[b + i] = a - one;
        found[2 * b + i] = aa - one;
        found[3 * b + i] = (double)t1 * t1 + (double)t2 * t2 - s;
        found[4 * b + i] = (double)s1 * s1 + (double)s2 * s2 + 2 * (double)s12 * s12 - s;
        found[5 * b + i] = ab - s;
    }
}

#undef DOT3
