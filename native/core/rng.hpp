// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): 8 bytes of state. src/sf2el/core/rng.py has the same.
#pragma once

#include <cstdint>

#include "variant.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

inline std::uint64_t random_word(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// High word of the 128-bit product, in standard C++.
inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    const std::uint64_t low = a0 * b0, mid1 = a1 * b0 + (low >> 32), mid2 = a0 * b1 + (mid1 & 0xFFFFFFFFu);
    return a1 * b1 + (mid1 >> 32) + (mid2 >> 32);
}

// A whole number in [0, n), off uniform by less than n / 2^64.
inline std::uint64_t random_below(std::uint64_t& state, std::uint64_t n) {
    return high_product(random_word(state), n);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
