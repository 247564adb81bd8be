#define SF2EL_VARIANT wide
#include "boxed_learner.hpp"

namespace sf2el {

std::unique_ptr<AnyLearner> make_learner_wide(const LearnerParams& params, bool single_precision) {
    return make_boxed(params, single_precision);
}

}  // namespace sf2el
