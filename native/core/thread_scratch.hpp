// Scratch belongs to the thread: many learners cost no more of it than one, and
// a learner can be asked by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "variant.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// The thread's scratch, grown to what is asked for.
inline void* thread_scratch(std::size_t bytes) {
    thread_local std::vector<std::uint64_t> words;
    const std::size_t wanted = bytes / sizeof(std::uint64_t) + 1;
    if (words.size() < wanted) words.resize(wanted);
    return words.data();
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
