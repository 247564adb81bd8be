// Python's mixture over experts of which some may be asleep in a row.
#include "bindings.hpp"
#include "state/mixture.hpp"

namespace sf2el_python {
namespace {

class Mixture {
public:
    Mixture(const std::string& task, std::size_t outputs, const Vector& priors)
        : task_(task_of_word(task)), outputs_(outputs), who_(priors.shape(0)) {
        if ((task_ == sf2el::Task::classes) != (outputs > 2) || outputs < 1)
            throw nb::value_error("Several classes take three outputs or more, every other task one.");
        double total = 0.0;
        for (std::size_t j = 0; j < who_.size(); ++j) {
            const double prior = priors.data()[j];
            if (!(prior >= 0.0 && prior <= largest_feature))
                throw nb::value_error("A prior is at least 0 and at most 1e100.");
            total += prior;
        }
        if (!(total > 0.0)) throw nb::value_error("One of the priors must be above 0.");
        for (std::size_t j = 0; j < who_.size(); ++j) {
            who_[j].prior = priors.data()[j];
            who_[j].weight = priors.data()[j] / total;
        }
    }

    Out<double> mix(const Vector& scores, const Vector& awake) {
        check_row(scores, who_.size() * outputs_);
        std::vector<double> out(outputs_);
        core().mix(scores.data(), flags(awake).data(), nullptr, out.data());
        return own(std::move(out), {outputs_});
    }

    void follow(const Vector& scores, const Vector& risks, const Vector& awake, double y, double weight) {
        check_width(scores.shape(0), who_.size() * outputs_);
        check_known(scores.data(), scores.shape(0));
        check_row(risks, who_.size());
        check_label(y);
        check_weight(weight);
        if (!sf2el::label_fits(task_, outputs_, y))
            throw nb::value_error("A label must be one of the classes that the scores are of.");
        const std::vector<char> there = flags(awake);
        std::vector<double> losses(who_.size());
        core().follow(scores.data(), risks.data(), there.data(), y, weight, losses.data());
    }

    Out<double> weights() const {
        return each([](const sf2el::Standing& one) { return one.weight; });
    }
    Out<double> losses() const {
        return each([](const sf2el::Standing& one) { return one.loss; });
    }
    Out<double> factors() const { return each(&sf2el::Mixture::factor_of); }
    double rounds() const { return counters_.rounds; }

private:
    sf2el::Mixture core() { return {task_, outputs_, who_, counters_}; }

    std::vector<char> flags(const Vector& awake) const {
        check_row(awake, who_.size());
        std::vector<char> out(who_.size());
        for (std::size_t j = 0; j < out.size(); ++j) out[j] = awake.data()[j] != 0.0;
        return out;
    }

    template <class F>
    Out<double> each(F f) const {
        std::vector<double> out;
        for (const sf2el::Standing& one : who_) out.push_back(f(one));
        return own(std::move(out), {who_.size()});
    }

    sf2el::Task task_;
    std::size_t outputs_;
    std::vector<sf2el::Standing> who_;
    sf2el::MixtureCounters counters_;
};

}  // namespace

void bind_mixture(nb::module_& m) {
    nb::class_<Mixture>(m, "Mixture")
        .def(nb::init<const std::string&, std::size_t, const Vector&>(), "task"_a, "outputs"_a, "priors"_a)
        .def("mix", &Mixture::mix, "scores"_a, "awake"_a)
        .def("follow", &Mixture::follow, "scores"_a, "risks"_a, "awake"_a, "y"_a, "weight"_a = 1.0)
        .def_prop_ro("weights", &Mixture::weights, nb::rv_policy::automatic)
        .def_prop_ro("losses", &Mixture::losses, nb::rv_policy::automatic)
        .def_prop_ro("factors", &Mixture::factors, nb::rv_policy::automatic)
        .def_prop_ro("rounds", &Mixture::rounds);
}

}  // namespace sf2el_python
