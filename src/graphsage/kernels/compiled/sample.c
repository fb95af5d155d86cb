#include "common.h"
#include "random.h"

/* One hop of Algorithm 2 (kernels/sample.py): Floyd's method on each row. `out_keys` is null if no hop follows;
   otherwise the given rows and keys come first, then those drawn. */
int sample_hop(const int64_t *indptr, const void *indices, int64_t is_int64, int64_t num_nodes, int64_t num_edges, const int64_t *rows,
        const int64_t *keys, uint64_t step, int64_t count, int64_t size, int64_t *out_rows, int64_t *out_keys,
        uint8_t *present, int64_t *draws, int64_t threads) {
    int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad) num_threads(threads) if (count * size > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        int64_t v = rows[r], chosen[size];
        if (v < 0 || v >= num_nodes) { bad = OUTSIDE; continue; }
        uint64_t draw = mix((uint64_t)keys[r] + step);
        int64_t start = indptr[v], degree = indptr[v + 1] - start;
        if (start < 0 || degree < 0 || start + degree > num_edges) { bad = OUTSIDE; continue; }
        int64_t *out = out_rows + (out_keys ? count : 0) + r * size;
        if (degree >= size)
            for (int64_t j = 0; j < size; j++) {
                int64_t last = degree - size + j, drawn = below(derive(draw, j), last + 1), taken = 0;
                for (int64_t i = 0; i < j; i++) taken |= chosen[i] == drawn;
                chosen[j] = taken ? last : drawn;
            }
        else
            for (int64_t j = 0; j < size; j++) chosen[j] = below(derive(draw, j), MAX(degree, 1));
        for (int64_t j = 0; j < size; j++) out[j] = degree ? at(indices, is_int64, start + chosen[j]) : v;
        present[r] = degree > 0;
        draws[r] = (int64_t)draw;
        if (out_keys) {
            out_rows[r] = v;
            out_keys[r] = keys[r];
            for (int64_t j = 0; j < size; j++) out_keys[count + r * size + j] = (int64_t)derive(draw, size + j);
        }
    }
    return bad;
}
