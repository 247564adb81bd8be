#include "boxed_posterior.hpp"

namespace sf2el {

const Variant base_variant{&make_boxed, &make_posterior, &make_logistic};

}  // namespace sf2el
