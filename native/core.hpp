// The whole core, without Python: standard C++17, header only, no dependency,
// no allocation. See examples/embedded.cpp.
#pragma once

#include "hedge.hpp"
#include "learner.hpp"
#include "recovery.hpp"
#include "scaler.hpp"
