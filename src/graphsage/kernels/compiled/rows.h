#pragma once

#include "common.h"

enum kind { FLOAT32, FLOAT16, BFLOAT16 };

#define AHEAD 4 /* rows fetched before they are needed */

/* Rows of a table of any kind, added up in float32. */

static inline float from_float32(float x) { return x; }

/* By arithmetic that compilers turn into vector instructions: they do not do so with the hardware's conversion. */
static inline float from_float16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = (uint32_t)(bits & 0x7FFF) << 13;
    float finite = as_float(rest) * 0x1p112f;
    uint32_t value;
    memcpy(&value, &finite, 4);
    return as_float(sign | (rest >= 0x0F800000 ? rest | 0x7F800000 : value));
}

static inline float from_bfloat16(uint16_t bits) { return as_float((uint32_t)bits << 16); }

/* Row i of a table whose rows begin every `pitch` bytes. It need not exist: nothing is read, and its address is computed
   in arithmetic that wraps. */
static inline void prefetch(const void *table, int64_t pitch, int64_t i, int64_t bytes) {
    uintptr_t row = (uintptr_t)table + (uintptr_t)i * (uintptr_t)pitch;
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch((const char *)(row + (uintptr_t)b), 0, 3);
}

/* For each kind: `set` writes row i into `sum`; `add_rows` adds the rows index[first .. first + size). Four rows are
   added at once while the next ones, also beyond `size` up to `ahead`, are fetched. */
#define OF_KIND(kind, type)                                                                                           \
    static inline void set_##kind(const type *x, int64_t stride, int64_t i, int64_t dim, float *restrict sum) {       \
        for (int64_t c = 0; c < dim; c++) sum[c] = from_##kind(x[i * stride + c]);                                    \
    }                                                                                                                 \
    static inline void add_rows_##kind(const type *x, int64_t stride, const void *index, int64_t wide, int64_t first,     \
                                       int64_t size, int64_t ahead, int64_t dim, float *restrict sum) {               \
        int64_t j = 0;                                                                                                \
        for (; j + 4 <= size; j += 4) {                                                                               \
            const type *row[4];                                                                                       \
            for (int64_t k = 0; k < 4; k++) {                                                                         \
                row[k] = x + at(index, wide, first + j + k) * stride;                                                 \
                if (j + k + AHEAD < ahead)                                                                            \
                    prefetch(x, stride * sizeof(type), at(index, wide, first + j + k + AHEAD), dim * sizeof(type));   \
            }                                                                                                         \
            const type *a = row[0], *b = row[1], *c = row[2], *d = row[3];                                            \
            for (int64_t i = 0; i < dim; i++)                                                                         \
                sum[i] += (from_##kind(a[i]) + from_##kind(b[i])) + (from_##kind(c[i]) + from_##kind(d[i]));          \
        }                                                                                                             \
        for (; j < size; j++) {                                                                                       \
            const type *a = x + at(index, wide, first + j) * stride;                                                  \
            for (int64_t i = 0; i < dim; i++) sum[i] += from_##kind(a[i]);                                            \
        }                                                                                                             \
    }

OF_KIND(float32, float)
OF_KIND(float16, uint16_t)
OF_KIND(bfloat16, uint16_t)

static inline void set(const void *table, int64_t kind, int64_t stride, int64_t i, int64_t dim, float *sum) {
    if (kind == FLOAT32) set_float32(table, stride, i, dim, sum);
    else if (kind == FLOAT16) set_float16(table, stride, i, dim, sum);
    else set_bfloat16(table, stride, i, dim, sum);
}

static inline void add_rows(const void *table, int64_t kind, int64_t stride, const void *index, int64_t wide, int64_t first,
                            int64_t size, int64_t ahead, int64_t dim, float *sum) {
    if (kind == FLOAT32) add_rows_float32(table, stride, index, wide, first, size, ahead, dim, sum);
    else if (kind == FLOAT16) add_rows_float16(table, stride, index, wide, first, size, ahead, dim, sum);
    else add_rows_bfloat16(table, stride, index, wide, first, size, ahead, dim, sum);
}
