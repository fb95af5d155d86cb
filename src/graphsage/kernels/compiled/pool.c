#include "common.h"

/* kernels/gather.py, gathered_maximum: each column's maximum over a row's neighbors, and the first neighbor with it. */
int gathered_maximum(const float *table, int64_t num_rows, int64_t dim, const int64_t *index, int64_t count, int64_t size,
                     float *best, int16_t *winner, int64_t threads) {
    int bad = 0;
#pragma omp parallel reduction(| : bad) num_threads(threads) if (count * dim > SERIAL)
    {
        int32_t *which = malloc(MAX(dim, 1) * sizeof(int32_t));
#pragma omp for schedule(dynamic, 16)
        for (int64_t r = 0; r < count; r++) {
            const int64_t *places = index + r * size;
            if (!which) { bad = NO_MEMORY; continue; }
            if (size < 1 || size > INT16_MAX || outside(places, 1, 0, size, num_rows)) { bad |= OUTSIDE; continue; }
            float *restrict top = best + r * dim;
            memcpy(top, table + places[0] * dim, dim * sizeof(float));
            memset(which, 0, dim * sizeof(int32_t));
            for (int32_t s = 1; s < size; s++) {
                const float *row = table + places[s] * dim;
                for (int64_t c = 0; c < dim; c++) {
                    int larger = (row[c] > top[c]) | (row[c] != row[c]); /* NaN propagates */
                    top[c] = larger ? row[c] : top[c];
                    which[c] = larger ? s : which[c];
                }
            }
            for (int64_t c = 0; c < dim; c++) winner[r * dim + c] = (int16_t)which[c];
        }
        free(which);
    }
    return bad;
}

/* kernels/pool.py, winners_sum: total[c] = sum over rows r of grad[r, c] times row index[r, winner[r, c]] of x. A few
   columns of a few rows' neighbors are copied side by side: they stay in cache, and each column's sum in registers. */
#define ROWS 4
#define WIDE 8
#define PIECE (16 * WIDE)
typedef float lanes __attribute__((vector_size(64)));

static void add_winners(const float *grad, const int16_t *winner, int64_t columns, int64_t begin, int64_t end,
                        int64_t rows, int64_t size, const lanes *pieces, lanes *total) {
    for (int64_t c = begin; c < end; c++, total += WIDE) {
        lanes sum[WIDE];
        for (int i = 0; i < WIDE; i++) sum[i] = total[i];
        for (int64_t k = 0; k < rows; k++) {
            const lanes *row = pieces + (k * size + winner[k * columns + c]) * WIDE;
            for (int i = 0; i < WIDE; i++) sum[i] += grad[k * columns + c] * row[i];
        }
        for (int i = 0; i < WIDE; i++) total[i] = sum[i];
    }
}

int winners_sum(const float *grad, int64_t columns, const float *x, int64_t num_rows, int64_t dim, const int64_t *index,
                const int16_t *winner, int64_t count, int64_t size, float *total, int64_t threads) {
    int bad = outside(index, 1, 0, count * size, num_rows) ? OUTSIDE : 0;
    for (int64_t i = 0; i < count * columns; i++) bad |= winner[i] < 0 || winner[i] >= size;
    if (bad) return OUTSIDE;
    int64_t pieces = (dim + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) reduction(| : bad) num_threads(threads) if (count * columns > SERIAL)
    for (int64_t part = 0; part < threads; part++) {
        int64_t begin = part * columns / threads, end = (part + 1) * columns / threads, mine = end - begin;
        if (pieces == 0 || mine == 0) continue;
        lanes *copied = aligned_alloc(64, ROWS * size * PIECE * 4), *sums = aligned_alloc(64, pieces * mine * PIECE * 4);
        if (!copied || !sums) { bad = NO_MEMORY; goto done; }
        memset(copied, 0, ROWS * size * PIECE * 4);
        memset(sums, 0, pieces * mine * PIECE * 4);
        for (int64_t r = 0; r < count; r += ROWS) {
            int64_t rows = MIN(ROWS, count - r);
            for (int64_t p = 0; p < pieces; p++) {
                int64_t width = MIN(PIECE, dim - p * PIECE);
                for (int64_t k = 0; k < rows * size; k++)
                    memcpy(copied + k * WIDE, x + index[r * size + k] * dim + p * PIECE, width * 4);
                add_winners(grad + r * columns, winner + r * columns, columns, begin, end, rows, size, copied,
                            sums + p * mine * WIDE);
            }
        }
        for (int64_t p = 0; p < pieces; p++)
            for (int64_t c = 0; c < mine; c++)
                memcpy(total + (begin + c) * dim + p * PIECE, sums + (p * mine + c) * WIDE, MIN(PIECE, dim - p * PIECE) * 4);
    done:
        free(copied);
        free(sums);
    }
    return bad;
}
