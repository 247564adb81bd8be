#define SF2EL_VARIANT wide
#include "boxed_maps.hpp"
#include "boxed_posterior.hpp"

namespace sf2el {

const Variant wide_variant{&make_boxed, &make_posterior, &make_logistic, &fill_row, &solve_map};

}  // namespace sf2el
