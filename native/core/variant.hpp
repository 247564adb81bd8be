// The core may be compiled several times into one program, for several
// instruction sets: each time in a namespace of its own, so that the linker
// never mixes them. A program that compiles it once need not care.
#pragma once

#ifndef SF2EL_VARIANT
#define SF2EL_VARIANT base
#endif

// For the small functions inside loops: a compiler that has much else to inline must not leave these out, for
// then the loops around them are no longer done in lanes.
#if defined(__GNUC__) || defined(__clang__)
#define SF2EL_INLINE inline __attribute__((always_inline))
#define SF2EL_APART __attribute__((noinline))
#else
#define SF2EL_INLINE inline
#define SF2EL_APART
#endif
