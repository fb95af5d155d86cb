/* The C form of the kernels; `library.py` compiles it on first use. The torch forms in kernels/ define the results. A
   kernel checks indices before it reads them. It returns OUTSIDE if one is out of range, NO_MEMORY if memory runs out,
   or both, and its caller raises an error. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OUTSIDE = 1, NO_MEMORY = 2 };
enum mode { SUM, MEAN, LARGEST };

#define SERIAL (1 << 14) /* entries; below it, starting threads costs more than it saves */
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* An entry of an index of either width. */
static inline int64_t at(const void *index, int64_t is_int64, int64_t i) {
    return is_int64 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
}

static inline int outside(const void *index, int64_t is_int64, int64_t first, int64_t size, int64_t num_rows) {
    int bad = 0;
    for (int64_t j = 0; j < size; j++) {
        int64_t i = at(index, is_int64, first + j);
        bad |= i < 0 || i >= num_rows;
    }
    return bad;
}
