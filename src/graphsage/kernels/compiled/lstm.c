#include "common.h"

/* e^x in float32's precision, in arithmetic that compilers vectorize. */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float n = rintf(x * 1.44269504f), r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (4.16666667e-2f + r * (8.3333333e-3f + r * 1.3888889e-3f)))));
    return p * as_float((uint32_t)((int32_t)n + 127) << 23);
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

/* Near zero by its series: a difference of two numbers near 1 loses digits. */
static inline float tangent(float x) {
    float square = x * x, far = 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f;
    float near = x * (1.0f + square * (-0.333333333f + square * (0.133333333f - square * 5.3968254e-2f)));
    return square < 0.04f ? near : far;
}

/* One row of `lstm_step`. Callers pass a constant `first`: a loop with a branch inside is not vectorized. */
static inline void row_step(float *restrict gate, const float *restrict row, const float *restrict bias,
                            const float *restrict before, float *restrict cell, float *restrict state, int64_t dim,
                            int first) {
    for (int64_t c = 0; c < 4 * dim; c++) gate[c] = (first ? 0.0f : gate[c]) + row[c] + bias[c];
    for (int64_t c = 0; c < 2 * dim; c++) gate[c] = sigmoid(gate[c]);
    for (int64_t c = 2 * dim; c < 3 * dim; c++) gate[c] = tangent(gate[c]);
    for (int64_t c = 3 * dim; c < 4 * dim; c++) gate[c] = sigmoid(gate[c]);
    for (int64_t c = 0; c < dim; c++) {
        cell[c] = gate[c] * gate[2 * dim + c] + (first ? 0.0f : gate[dim + c] * before[c]);
        state[c] = tangent(cell[c]) * gate[3 * dim + c];
    }
}

static inline void row_gradient(const float *restrict gate, const float *restrict before, const float *restrict cell,
                                const float *restrict d_state, float *restrict d_cell, float *restrict out, int64_t dim,
                                int first) {
    const float *enters = gate, *forgets = enters + dim, *fresh = forgets + dim, *leaves = fresh + dim;
    for (int64_t c = 0; c < dim; c++) {
        float bent = tangent(cell[c]), total = d_cell[c] + d_state[c] * leaves[c] * (1 - bent * bent);
        out[c] = total * fresh[c] * enters[c] * (1 - enters[c]);
        out[dim + c] = first ? 0.0f : total * before[c] * forgets[c] * (1 - forgets[c]);
        out[2 * dim + c] = total * enters[c] * (1 - fresh[c] * fresh[c]);
        out[3 * dim + c] = d_state[c] * bent * leaves[c] * (1 - leaves[c]);
        d_cell[c] = total * forgets[c];
    }
}

/* kernels/lstm.py, one step of the sequences: to `gates` (count, 4 * dim), which hold the hidden state's part (or
   nothing, at first), add the rows' part and the bias; then activate them, and make the cells and the hidden state. */
int lstm_step(float *gates, const float *table, int64_t num_rows, const int64_t *places, const float *bias,
              const float *before, float *cells, float *state, int64_t count, int64_t dim, int64_t threads) {
    int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        if (places[r] < 0 || places[r] >= num_rows) { bad = OUTSIDE; continue; }
        const float *row = table + places[r] * 4 * dim;
        float *gate = gates + r * 4 * dim, *cell = cells + r * dim, *out = state + r * dim;
        if (before) row_step(gate, row, bias, before + r * dim, cell, out, dim, 0);
        else row_step(gate, row, bias, NULL, cell, out, dim, 1);
    }
    return bad;
}

/* The same step backwards: the gradient of every gate before its activation, from those of the hidden state and the
   cells; the latter becomes that of the cells before. */
int lstm_step_gradient(const float *gates, const float *before, const float *cells, const float *d_state, float *d_cells,
                       float *d_gates, int64_t count, int64_t dim, int64_t threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (count * dim > SERIAL)
    for (int64_t r = 0; r < count; r++) {
        const float *gate = gates + r * 4 * dim, *cell = cells + r * dim, *d = d_state + r * dim;
        float *d_cell = d_cells + r * dim, *out = d_gates + r * 4 * dim;
        if (before) row_gradient(gate, before + r * dim, cell, d, d_cell, out, dim, 0);
        else row_gradient(gate, NULL, cell, d, d_cell, out, dim, 1);
    }
    return 0;
}
