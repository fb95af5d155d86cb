#include "common.h"

/* kernels/gather.py over neighborhoods of a whole graph: the sum, mean or maximum of each row's neighbors, zero if
   there are none. A panel is one cache line of columns of a part of the rows, copied side by side. It stays in cache
   while every neighborhood is read; whole rows would come from memory for every neighbor. */
typedef float line __attribute__((vector_size(64)));
typedef int32_t whole __attribute__((vector_size(64)));
enum { COLUMNS = sizeof(line) / sizeof(float) };

static inline line larger(line a, line b) {
    whole first = a > b;
    return (line)((first & (whole)a) | (~first & (whole)b));
}

/* Combine `so_far`, of the neighbors before j, with the neighbors up to `end`. */
static inline line together(line so_far, int64_t any, const line *panel, const void *index, int64_t is_int64, int64_t j,
                            int64_t end, int64_t mode) {
    if (j == end) return so_far;
    if (!any) so_far = panel[at(index, is_int64, j++)];
    if (mode == LARGEST) {
        for (; j < end; j++) so_far = larger(panel[at(index, is_int64, j)], so_far);
        return so_far;
    }
    line also = {0};
    for (; j + 4 <= end; j += 4) {
        so_far += panel[at(index, is_int64, j)] + panel[at(index, is_int64, j + 1)];
        also += panel[at(index, is_int64, j + 2)] + panel[at(index, is_int64, j + 3)];
    }
    for (; j < end; j++) so_far += panel[at(index, is_int64, j)];
    return so_far + also;
}

/* One part of the rows: each neighborhood's entries from `from` to `to`. */
static inline void add_part(const line *panel, const void *index, int64_t is_int64, const int64_t *offsets, const int64_t *from,
                            const int64_t *to, int64_t count, int64_t mode, line *sums, int64_t threads) {
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t r = 0; r < count; r++) {
        int64_t any = from[r] > offsets[r];
        line so_far = any ? sums[r] : (line){0};
        sums[r] = together(so_far, any, panel, index, is_int64, from[r], to[r], mode);
    }
}

/* `lines` has room for one of each row of the table and of the result, `bounds` for the begin of each part, and
   the end of the last one, in every neighborhood. Neighbors usually ascend; others are only read more slowly. */
int reduce_panels(const float *table, int64_t num_rows, int64_t dim, const void *index, int64_t is_int64, int64_t entries,
                  const int64_t *offsets, int64_t count, int64_t mode, int64_t part_rows, line *lines, int64_t *bounds,
                  float *out, int64_t threads) {
    int bad = 0;
    int64_t parts = (num_rows + part_rows - 1) / part_rows;
    line *panel = lines, *sums = lines + num_rows;
#pragma omp parallel for schedule(dynamic, 256) reduction(| : bad) num_threads(threads)
    for (int64_t r = 0; r < count; r++) {
        int64_t first = offsets[r], n = offsets[r + 1] - first, j = first;
        if (first < 0 || n < 0 || first + n > entries || outside(index, is_int64, first, n, num_rows)) { bad = 1; continue; }
        for (int64_t p = 0; p < parts; p++) {
            bounds[p * count + r] = j;
            if (p + 1 == parts) j = first + n;
            while (j < first + n && at(index, is_int64, j) < (p + 1) * part_rows) j++;
        }
        bounds[parts * count + r] = j;
    }
    if (bad) return OUTSIDE;
    for (int64_t c = 0; c < dim; c += COLUMNS) {
        int64_t columns = MIN(COLUMNS, dim - c);
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t i = 0; i < num_rows; i++) {
            panel[i] = (line){0};
            memcpy(panel + i, table + i * dim + c, columns * sizeof(float));
        }
        for (int64_t p = 0; p < parts; p++) {
            const int64_t *from = bounds + p * count, *to = from + count;
            if (is_int64) add_part(panel, index, 1, offsets, from, to, count, mode, sums, threads);
            else add_part(panel, index, 0, offsets, from, to, count, mode, sums, threads);
        }
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t r = 0; r < count; r++) {
            line sum = mode == MEAN ? sums[r] / (float)MAX(offsets[r + 1] - offsets[r], 1) : sums[r];
            memcpy(out + r * dim + c, &sum, columns * sizeof(float));
        }
    }
    return 0;
}
