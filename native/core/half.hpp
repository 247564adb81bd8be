// Numbers of 16 bits: kept, never computed with. In integer arithmetic, so that every compiled variant and
// every processor gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "variant.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

using Half = std::uint16_t;  // IEEE binary16

constexpr float largest_half = 65504.0f;

// The nearest half, ties to even; what is too large becomes the largest. Without branches: loops do it in lanes.
SF2EL_INLINE Half half_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    float size = value < 0.0f ? -value : value;
    size = size < largest_half ? size : largest_half;
    // Below 2^-14 halves are evenly spaced, as singles are from one half on: adding that rounds.
    const float shifted = size + 0.5f;
    std::uint32_t small, normal;
    std::memcpy(&small, &shifted, sizeof small);
    std::memcpy(&normal, &size, sizeof normal);
    small -= 0x3f000000u;
    normal = (normal - 0x38000000u + 0xfffu + ((normal >> 13) & 1u)) >> 13;
    return static_cast<Half>(sign | (size < 6.103515625e-05f ? small : normal));
}

SF2EL_INLINE float float_of(Half half) {
    const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16, size = half & 0x7fffu;
    const float small = static_cast<float>(static_cast<std::int32_t>(size)) * 5.9604644775390625e-08f;
    std::uint32_t evenly;
    std::memcpy(&evenly, &small, sizeof evenly);
    const std::uint32_t bits = (size < 0x400u ? evenly : (size << 13) + 0x38000000u) | sign;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

inline void floats_of(const Half* from, float* to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = float_of(from[i]);
}

inline void halves_of(const float* from, Half* to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = half_of(from[i]);
}

// bfloat16, the front half of a float: its range, with two digits or three.
class BFloat16 {
public:
    BFloat16() = default;

    // The nearest, ties to even; what is too large becomes the largest.
    explicit BFloat16(double value) {
        constexpr double largest = 3.3895313892515355e38;
        const float single = static_cast<float>(value < largest ? (value > -largest ? value : -largest) : largest);
        std::uint32_t bits;
        std::memcpy(&bits, &single, sizeof bits);
        bits_ = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }

    explicit operator double() const {
        const std::uint32_t bits = std::uint32_t(bits_) << 16;
        float out;
        std::memcpy(&out, &bits, sizeof out);
        return double(out);
    }

private:
    std::uint16_t bits_ = 0;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
