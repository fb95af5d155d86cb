#include "common.h"
#include "random.h"

/* kernels/dropout.py: an entry is kept if the upper half of its draw reaches the threshold. */
int dropout(const float *h, int64_t count, int64_t dim, int64_t threshold, float factor, const int64_t *keys, int64_t step,
            float *out, int64_t threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        uint64_t key = mix((uint64_t)keys[r] + (uint64_t)step);
        for (int64_t c = 0; c < dim; c++)
            out[r * dim + c] = (int64_t)(derive(key, c) >> 32) >= threshold ? h[r * dim + c] * factor : 0.0f;
    }
    return 0;
}
