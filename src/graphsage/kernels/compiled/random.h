/* kernels/random.py */

#pragma once

#include <stdint.h>

#define GOLDEN 0x9E3779B97F4A7C15ull

static inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static inline uint64_t derive(uint64_t key, uint64_t counter) { return mix(key + (counter + 1) * GOLDEN); }

static inline int64_t below(uint64_t bits, int64_t n) { return (int64_t)(((bits >> 32) * (uint64_t)n) >> 32); }
