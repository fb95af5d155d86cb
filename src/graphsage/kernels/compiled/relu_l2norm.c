#include <float.h>

#include "common.h"

/* kernels/relu_l2norm.py: ReLU and scaling to length 1 in place, and the inverse of each row's length, NaN if that overflows. */
int relu_l2norm(float *x, int64_t count, int64_t dim, int64_t relu, int64_t normalize, float epsilon, float *inverse,
              int64_t threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        float *row = x + r * dim, square = 0;
        for (int64_t c = 0; c < dim; c++) {
            float value = relu && row[c] < 0 ? 0 : row[c];
            row[c] = value;
            square += value * value;
        }
        if (!normalize) continue;
        float length = sqrtf(square);
        inverse[r] = length > FLT_MAX ? NAN : 1 / (length < epsilon ? epsilon : length);
        for (int64_t c = 0; c < dim; c++) row[c] *= inverse[r];
    }
    return 0;
}

/* The gradient of the input of `relu_l2norm`, from that of its result y. */
int relu_l2norm_gradient(const float *grad, const float *y, const float *inverse, int64_t count, int64_t dim, int64_t relu,
                        int64_t normalize, float epsilon, float *out, int64_t threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        const float *g = grad + r * dim, *h = y + r * dim;
        float *into = out + r * dim, by = normalize ? inverse[r] : 1, along = 0;
        if (normalize && by * epsilon < 1) /* below epsilon the length is a constant */
            for (int64_t c = 0; c < dim; c++) along += g[c] * h[c];
        for (int64_t c = 0; c < dim; c++) {
            float value = normalize ? (g[c] - along * h[c]) * by : g[c];
            into[c] = relu && h[c] <= 0 ? 0 : value;
        }
    }
    return 0;
}
