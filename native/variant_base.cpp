#include "boxed_learner.hpp"

namespace sf2el {

std::unique_ptr<AnyLearner> make_learner_base(const LearnerParams& params, bool single_precision) {
    return make_boxed(params, single_precision);
}

}  // namespace sf2el
