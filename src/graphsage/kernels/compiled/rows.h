#pragma once

#include "common.h"

enum dtype { FLOAT32, FLOAT16, BFLOAT16 };

#define AHEAD 4 /* rows fetched before they are needed */

/* Sums of rows of a table, in float32. */

static inline float from_float32(float x) { return x; }

/* Arithmetic that compilers vectorize; they do not vectorize the hardware's conversion. */
static inline float from_float16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = (uint32_t)(bits & 0x7FFF) << 13;
    float finite = as_float(rest) * 0x1p112f;
    uint32_t value;
    memcpy(&value, &finite, 4);
    return as_float(sign | (rest >= 0x0F800000 ? rest | 0x7F800000 : value));
}

static inline float from_bfloat16(uint16_t bits) { return as_float((uint32_t)bits << 16); }

/* Row i of a table whose rows begin every `pitch` bytes. The row need not exist: its address wraps, and nothing is read. */
static inline void prefetch(const void *table, int64_t pitch, int64_t i, int64_t bytes) {
    uintptr_t row = (uintptr_t)table + (uintptr_t)i * (uintptr_t)pitch;
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch((const char *)(row + (uintptr_t)b), 0, 3);
}

/* For each dtype: `set` writes row i into `sum`; `add_rows` adds the rows index[first .. first + size). Four rows are
   added at once while the next ones, also beyond `size` up to `ahead`, are fetched. */
#define OF_DTYPE(name, type)                                                                                          \
    static inline void set_##name(const type *x, int64_t stride, int64_t i, int64_t dim, float *restrict sum) {       \
        for (int64_t c = 0; c < dim; c++) sum[c] = from_##name(x[i * stride + c]);                                    \
    }                                                                                                                 \
    static inline void add_rows_##name(const type *x, int64_t stride, const void *index, int64_t is_int64, int64_t first,     \
                                       int64_t size, int64_t ahead, int64_t dim, float *restrict sum) {               \
        int64_t j = 0;                                                                                                \
        for (; j + 4 <= size; j += 4) {                                                                               \
            const type *row[4];                                                                                       \
            for (int64_t k = 0; k < 4; k++) {                                                                         \
                row[k] = x + at(index, is_int64, first + j + k) * stride;                                                 \
                if (j + k + AHEAD < ahead)                                                                            \
                    prefetch(x, stride * sizeof(type), at(index, is_int64, first + j + k + AHEAD), dim * sizeof(type));   \
            }                                                                                                         \
            const type *a = row[0], *b = row[1], *c = row[2], *d = row[3];                                            \
            for (int64_t i = 0; i < dim; i++)                                                                         \
                sum[i] += (from_##name(a[i]) + from_##name(b[i])) + (from_##name(c[i]) + from_##name(d[i]));          \
        }                                                                                                             \
        for (; j < size; j++) {                                                                                       \
            const type *a = x + at(index, is_int64, first + j) * stride;                                                  \
            for (int64_t i = 0; i < dim; i++) sum[i] += from_##name(a[i]);                                            \
        }                                                                                                             \
    }

OF_DTYPE(float32, float)
OF_DTYPE(float16, uint16_t)
OF_DTYPE(bfloat16, uint16_t)

static inline void set(const void *table, int64_t dtype, int64_t stride, int64_t i, int64_t dim, float *sum) {
    if (dtype == FLOAT32) set_float32(table, stride, i, dim, sum);
    else if (dtype == FLOAT16) set_float16(table, stride, i, dim, sum);
    else set_bfloat16(table, stride, i, dim, sum);
}

static inline void add_rows(const void *table, int64_t dtype, int64_t stride, const void *index, int64_t is_int64, int64_t first,
                            int64_t size, int64_t ahead, int64_t dim, float *sum) {
    if (dtype == FLOAT32) add_rows_float32(table, stride, index, is_int64, first, size, ahead, dim, sum);
    else if (dtype == FLOAT16) add_rows_float16(table, stride, index, is_int64, first, size, ahead, dim, sum);
    else add_rows_bfloat16(table, stride, index, is_int64, first, size, ahead, dim, sum);
}
