// The core may be compiled several times into one program, for several
// instruction sets: each time in a namespace of its own, so that the linker
// never mixes them. A program that compiles it once need not care.
#pragma once

#ifndef SF2EL_VARIANT
#define SF2EL_VARIANT base
#endif
