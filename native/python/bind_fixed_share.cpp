// Python's weights over experts that are shared anew each round.
#include "bindings.hpp"

#include <cmath>

namespace sf2el_python {
namespace {

const double* checked_prior(const Vector& prior, double share) {
    double total = 0.0;
    bool fits = prior.shape(0) > 0 && share >= 0.0 && share <= 1.0;
    for (std::size_t j = 0; j < prior.shape(0); ++j) {
        fits = fits && prior.data()[j] >= 0.0;
        total += prior.data()[j];
    }
    if (!fits || !(total > 0.0 && total <= largest_feature))
        throw nb::value_error("A prior holds weights that are not negative, one of them above 0; share is in [0, 1].");
    return prior.data();
}

class FixedShare final : public RowMixer {
public:
    FixedShare(const Vector& prior, double share, bool sure)
        : block_(sf2el::FixedShare::reals(prior.shape(0), sure)),
          share_(share),
          shared_(checked_prior(prior, share), prior.shape(0), share, sure, block_.data()) {}

    std::size_t experts() const override { return shared_.experts(); }
    double mix_row(const double* scores) const override { return shared_.mix_log_odds(scores); }
    void follow_row(const double* scores, const double*, double y, double weight) override {
        follow_one(scores, 1, y, weight);
    }
    double share() const { return share_; }
    double rounds() const { return shared_.rounds(); }
    Out<double> weights() const { return copy_out(shared_.weights(), experts()); }

    Out<double> average() const {
        std::vector<double> out(shared_.cumulative(), shared_.cumulative() + experts());
        for (double& value : out) value = rounds() > 0.0 ? value / rounds() : 0.0;
        return own(std::move(out), {experts()});
    }

    Out<double> sureness() const {
        std::vector<double> out(experts());
        for (std::size_t j = 0; j < experts(); ++j) out[j] = shared_.sureness(j);
        return own(std::move(out), {experts()});
    }

    std::size_t nbytes() const { return block_.size() * sizeof(double); }

    void update(const Vector& losses) {
        check_width(losses.shape(0), experts());
        check_known(losses.data(), experts());
        shared_.update(losses.data());
    }

    void follow(const Vector& scores, double y, double weight) {
        const std::size_t classes = std::max<std::size_t>(1, scores.shape(0) / experts());
        check_weight(weight);
        check_width(scores.shape(0), experts() * classes);
        check_known(scores.data(), scores.shape(0));
        check_class(y, classes);
        follow_one(scores.data(), classes, y, weight);
    }

    double mix_binary(const Vector& scores) const {
        check_row(scores, experts());
        return shared_.mix_binary(scores.data());
    }

    double mix_log_odds(const Vector& scores) const {
        check_row(scores, experts());
        return shared_.mix_log_odds(scores.data());
    }

    double mix_mean(const Vector& scores) const {
        check_row(scores, experts());
        return shared_.mix_mean(scores.data());
    }

    Out<double> mix_classes(const Vector& scores, std::size_t classes) const {
        check_row(scores, experts() * classes);
        std::vector<double> probabilities(classes);
        shared_.mix_classes(scores.data(), classes, probabilities.data());
        return own(std::move(probabilities), {classes});
    }

    std::pair<Out<double>, Out<double>> run_log_odds(const Matrix& scores, const Vector& y, std::optional<Vector> weights) {
        return run(scores, y, weights, 1, {scores.shape(0)},
                   [this](const double* row, double* out) { *out = shared_.mix_log_odds(row); });
    }

    std::pair<Out<double>, Out<double>> run_classes(const Matrix& scores, const Vector& y, std::size_t classes,
                                                            std::optional<Vector> weights) {
        if (classes < 1) throw nb::value_error("There must be a class.");
        return run(scores, y, weights, classes, {scores.shape(0), classes},
                   [this, classes](const double* row, double* out) { shared_.mix_classes(row, classes, out); });
    }

    Out<double> state() const { return copy_out(block_.data(), block_.size()); }

    void set_state(const Vector& in) {
        check_same_length(block_.size(), in.shape(0));
        std::copy(in.data(), in.data() + block_.size(), block_.begin());
    }

private:
    static void check_class(double y, std::size_t classes) {
        if (!sf2el::label_fits(classes > 1 ? sf2el::Task::classes : sf2el::Task::binary, classes, y))
            throw nb::value_error("A label must be one of the classes that the scores are of.");
    }

    void follow_one(const double* scores, std::size_t classes, double y, double weight) {
        thread_local std::vector<double> losses;
        if (losses.size() < experts()) losses.resize(experts());
        shared_.follow(scores, classes, y, weight, losses.data());
    }

    // Each row mixed with the weights from before it, which are returned too.
    template <class Mix>
    std::pair<Out<double>, Out<double>> run(const Matrix& scores, const Vector& y,
                                            const std::optional<Vector>& weighed, std::size_t width,
                                            std::initializer_list<std::size_t> shape, Mix mix) {
        const std::size_t n = scores.shape(0), e = experts();
        check_rows(scores, e * width);
        check_same_length(n, y.shape(0));
        if (weighed) check_same_length(n, weighed->shape(0));
        for (std::size_t i = 0; i < n; ++i) {
            check_class(y.data()[i], width);
            if (weighed) check_weight(weighed->data()[i]);
        }
        std::vector<double> mixed(n * width), weights(n * e);
        for (std::size_t i = 0; i < n; ++i) {
            std::copy(shared_.weights(), shared_.weights() + e, weights.begin() + i * e);
            mix(scores.data() + i * e * width, mixed.data() + i * width);
            follow_one(scores.data() + i * e * width, width, y.data()[i], weighed ? weighed->data()[i] : 1.0);
        }
        return {own(std::move(mixed), shape), own(std::move(weights), {n, e})};
    }

    std::vector<double> block_;
    double share_;
    sf2el::FixedShare shared_;
};

}  // namespace

void bind_fixed_share(nb::module_& m) {
    nb::class_<FixedShare, Part>(m, "FixedShare")
        .def(nb::init<const Vector&, double, bool>(), "prior"_a, "share"_a, "sure"_a = false)
        .def("update", &FixedShare::update, "losses"_a)
        .def("follow", &FixedShare::follow, "scores"_a, "y"_a, "weight"_a = 1.0)
        .def("mix_binary", &FixedShare::mix_binary, "scores"_a)
        .def("mix_log_odds", &FixedShare::mix_log_odds, "scores"_a)
        .def("run_log_odds", &FixedShare::run_log_odds, "scores"_a, "y"_a, "weights"_a = nb::none())
        .def("mix_classes", &FixedShare::mix_classes, "scores"_a, "classes"_a)
        .def("mix_mean", &FixedShare::mix_mean, "scores"_a)
        .def("run_classes", &FixedShare::run_classes, "scores"_a, "y"_a, "classes"_a, "weights"_a = nb::none())
        .def("state", &FixedShare::state)
        .def("set_state", &FixedShare::set_state, "state"_a)
        .def_prop_ro("experts", &FixedShare::experts)
        .def_prop_ro("share", &FixedShare::share)
        .def_prop_ro("rounds", &FixedShare::rounds)
        .def_prop_ro("sureness", &FixedShare::sureness, nb::rv_policy::automatic)
        .def_prop_ro("weights", &FixedShare::weights, nb::rv_policy::automatic)
        .def_prop_ro("average", &FixedShare::average, nb::rv_policy::automatic)
        .def_prop_ro("nbytes", &FixedShare::nbytes);
}

}  // namespace sf2el_python
