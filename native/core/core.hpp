// The whole core, without Python: standard C++17, header only, no dependency,
// no allocation. See examples/embedded.cpp.
#pragma once

#include "gaussian_map.hpp"
#include "half_posterior.hpp"
#include "hedge.hpp"
#include "learner.hpp"
#include "moments.hpp"
#include "online_logistic.hpp"
#include "posterior.hpp"
#include "recovery.hpp"
#include "scaler.hpp"
