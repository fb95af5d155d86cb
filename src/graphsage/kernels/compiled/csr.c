#include "common.h"

/* kernels/csr.py: edges sorted by counting, first by column, then by row, which leaves each row's columns ascending;
   repeated ones are dropped. Threads divide the output, not the edges; each reads all edges, so there are at most
   CROWD of them. `starts` has room for n + 1, `between` and `lists` for an entry of each edge. */
enum { CROWD = 8 };

static void begin(int64_t *counts, int64_t n) { /* counts[i + 1] of i -> first position of i */
    for (int64_t i = 0; i < n; i++) counts[i + 1] += counts[i];
}

int neighbor_lists(const int64_t *rows, const int64_t *columns, int64_t stride, int64_t entries, int64_t n, int64_t *starts,
                   int32_t *between, int64_t *indptr, int32_t *lists, int64_t threads) {
    int bad = 0;
    int64_t parts = MIN(MAX(threads, 1), CROWD);
    int64_t *next = calloc(MAX(2 * n, 1), sizeof(int64_t));
    if (!next) return NO_MEMORY;
    memset(starts, 0, (n + 1) * sizeof(int64_t));
    memset(indptr, 0, (n + 1) * sizeof(int64_t));
#pragma omp parallel for schedule(static, 1) reduction(| : bad) num_threads(parts)
    for (int side = 0; side < 2; side++) {
        const int64_t *of = side ? rows : columns;
        int64_t *counts = side ? indptr : starts;
        for (int64_t i = 0; i < entries; i++) {
            int64_t place = of[i * stride];
            if (place < 0 || place >= n) bad = OUTSIDE;
            else counts[place + 1]++;
        }
        begin(counts, n);
    }
    if (bad) { free(next); return OUTSIDE; }
    int64_t *of_column = next, *of_row = next + n;
    memcpy(of_column, starts, n * sizeof(int64_t));
    memcpy(of_row, indptr, n * sizeof(int64_t));
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int64_t part = 0; part < parts; part++) {
        int64_t first = n * part / parts, last = n * (part + 1) / parts;
        for (int64_t i = 0; i < entries; i++) {
            int64_t column = columns[i * stride];
            if (column >= first && column < last) between[of_column[column]++] = (int32_t)rows[i * stride];
        }
    }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int64_t part = 0; part < parts; part++) {
        int64_t first = n * part / parts, last = n * (part + 1) / parts;
        for (int64_t column = 0; column < n; column++)
            for (int64_t i = starts[column]; i < starts[column + 1]; i++)
                if (between[i] >= first && between[i] < last) lists[of_row[between[i]]++] = (int32_t)column;
    }
    int64_t end = 0;
    for (int64_t row = 0, i = 0; row < n; row++) {
        int64_t last = indptr[row + 1], first = end;
        for (; i < last; i++)
            if (end == first || lists[end - 1] != lists[i]) lists[end++] = lists[i];
        indptr[row + 1] = end;
    }
    free(next);
    return 0;
}
