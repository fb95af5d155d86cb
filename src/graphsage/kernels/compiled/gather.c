#include "rows.h"

/* kernels/self_and_mean.py, gather_self_and_mean. `offsets` is null if every row has `size` neighbors. */
int gather_self_and_mean(const void *table, int64_t dtype, int64_t stride, int64_t num_rows, int64_t dim, const int64_t *rows,
                  const void *index, int64_t is_int64, int64_t entries, const int64_t *offsets, int64_t count, int64_t size,
                  const uint8_t *present, int64_t includes_self, const float *shift, const float *scale, float *out,
                  int64_t out_stride, int64_t mean_at, int64_t threads) {
    int bad = 0;
#pragma omp parallel reduction(| : bad) num_threads(threads) if (count * dim > SERIAL)
    {
        float *sum = malloc(MAX(dim, 1) * sizeof(float));
#pragma omp for schedule(dynamic, 16)
        for (int64_t r = 0; r < count; r++) {
            if (!sum) { bad = NO_MEMORY; continue; }
            int64_t first = offsets ? offsets[r] : r * size;
            int64_t n = !present[r] ? 0 : offsets ? offsets[r + 1] - first : size;
            if (rows[r] < 0 || rows[r] >= num_rows || first < 0 || n < 0 || first + n > entries ||
                outside(index, is_int64, first, n, num_rows)) { bad |= OUTSIDE; continue; }
            float *own = out + r * out_stride, *mean = own + mean_at, rows_in = (float)(n + includes_self);
            if (includes_self) set(table, dtype, stride, rows[r], dim, sum);
            else {
                set(table, dtype, stride, rows[r], dim, own);
                for (int64_t c = 0; c < dim; c++) own[c] = (own[c] - shift[c]) * scale[c];
                memset(sum, 0, dim * sizeof(float));
            }
            add_rows(table, dtype, stride, index, is_int64, first, n, entries - first, dim, sum);
            if (n + includes_self == 0) memset(mean, 0, dim * sizeof(float));
            else for (int64_t c = 0; c < dim; c++) mean[c] = (sum[c] / rows_in - shift[c]) * scale[c];
        }
        free(sum);
    }
    return bad;
}

/* kernels/rows.py, scaled_rows: rows of a table, shifted and scaled. */
int scaled_rows(const void *table, int64_t dtype, int64_t stride, int64_t num_rows, int64_t dim, const int64_t *rows,
                int64_t count, const float *shift, const float *scale, float *out, int64_t out_stride,
                int64_t threads) {
    int bad = 0;
    int64_t bytes = dim * (dtype == FLOAT32 ? 4 : 2), pitch = stride * (dtype == FLOAT32 ? 4 : 2);
#pragma omp parallel for schedule(static) reduction(| : bad) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        if (rows[r] < 0 || rows[r] >= num_rows) { bad = OUTSIDE; continue; }
        if (r + AHEAD < count) prefetch(table, pitch, rows[r + AHEAD], bytes);
        float *restrict into = out + r * out_stride;
        set(table, dtype, stride, rows[r], dim, into);
        for (int64_t c = 0; c < dim; c++) into[c] = (into[c] - shift[c]) * scale[c];
    }
    return bad;
}

/* kernels/gather.py: the sum, mean or maximum of each row's neighbors, zero if there are none. */
int reduce_rows(const float *table, int64_t num_rows, int64_t dim, const void *index, int64_t is_int64, int64_t entries,
                const int64_t *offsets, int64_t count, int64_t mode, float *out, int64_t threads) {
    int bad = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(| : bad) num_threads(threads) if (entries * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        int64_t first = offsets[r], n = offsets[r + 1] - first;
        if (first < 0 || n < 0 || first + n > entries || outside(index, is_int64, first, n, num_rows)) { bad = OUTSIDE; continue; }
        float *restrict into = out + r * dim;
        memset(into, 0, dim * sizeof(float));
        if (mode != LARGEST) add_rows_float32(table, dim, index, is_int64, first, n, entries - first, dim, into);
        else if (n) memcpy(into, table + at(index, is_int64, first) * dim, dim * sizeof(float));
        if (mode == MEAN && n)
            for (int64_t c = 0; c < dim; c++) into[c] /= (float)n;
        for (int64_t j = 1; mode == LARGEST && j < n; j++) {
            const float *row = table + at(index, is_int64, first + j) * dim;
            for (int64_t c = 0; c < dim; c++) into[c] = row[c] > into[c] ? row[c] : into[c];
        }
    }
    return bad;
}
