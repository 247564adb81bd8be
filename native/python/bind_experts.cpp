// Python's posterior and online logistic experts.
#include "bindings.hpp"

#include <stdexcept>

namespace sf2el_python {
namespace {

sf2el::Task task_of(const std::string& word, std::uint32_t outputs) {
    const sf2el::Task task = task_of_word(word);
    if ((task == sf2el::Task::classes) != (outputs > 2) || outputs < 1)
        throw nb::value_error("Several classes take three outputs or more, every other task one.");
    return task;
}

// The calls that every expert has, over its core.
template <class Core>
class ExpertOf : public Expert {
public:
    explicit ExpertOf(std::unique_ptr<Core> core) : core_(std::move(core)) {}

    sf2el::AnyExpert& expert() const override { return *core_; }

    Out<double> predict(const Vector& x) {
        check_row(x, dim());
        std::vector<double> scores(outputs());
        core_->score(x.data(), scores.data());
        return own(std::move(scores), {outputs()});
    }

    Out<double> predict_many(const Matrix& x) {
        check_rows(x, dim());
        const std::size_t n = x.shape(0), k = outputs(), d = dim();
        std::vector<double> scores(n * k);
        {
            nb::gil_scoped_release unlocked;
            for (std::size_t i = 0; i < n; ++i) core_->score(x.data() + i * d, scores.data() + i * k);
        }
        return own(std::move(scores), {n, k});
    }

    std::pair<Out<double>, double> learn(const Vector& x, double y, double weight) {
        check_row(x, dim());
        check(y);
        check_weight(weight);
        std::vector<double> scores(outputs());
        const double risk = core_->teach(x.data(), y, weight, false, scores.data());
        return {own(std::move(scores), {outputs()}), risk};
    }

    std::pair<Out<double>, double> learn_late(const Vector& x, double y, double weight) {
        check_late_label(y);
        return learn(x, y, weight);
    }

    std::pair<Out<double>, Out<double>> run(const Matrix& x, const Vector& y, std::optional<Vector> weights) {
        check_rows(x, dim());
        const std::size_t n = x.shape(0), k = outputs(), d = dim();
        check_same_length(n, y.shape(0));
        if (weights) check_same_length(n, weights->shape(0));
        for (std::size_t i = 0; i < n; ++i) {
            check(y.data()[i]);
            if (weights) check_weight(weights->data()[i]);
        }
        std::vector<double> scores(n * k), risks(n);
        const double* by = weights ? weights->data() : nullptr;
        {
            nb::gil_scoped_release unlocked;
            for (std::size_t i = 0; i < n; ++i)
                risks[i] = core_->teach(x.data() + i * d, y.data()[i], by ? by[i] : 1.0, false, scores.data() + i * k);
        }
        return {own(std::move(scores), {n, k}), own(std::move(risks), {n})};
    }

protected:
    std::unique_ptr<Core> core_;
};

class Posterior final : public ExpertOf<sf2el::AnyPosterior> {
public:
    using ExpertOf::ExpertOf;

    Posterior copy() const { return Posterior(core_->copy()); }
    std::size_t size() const { return core_->counters().n; }
    std::uint64_t labels() const { return core_->counters().labels; }
    std::uint64_t joined() const { return core_->counters().joined; }
    std::uint64_t removed() const { return core_->counters().removed; }
    std::uint64_t floored() const { return core_->counters().floored; }
    std::uint64_t refreshed() const { return core_->counters().refreshed; }
    std::uint32_t ties() const { return core_->counters().ties; }

    nb::dict state() {
        sf2el::PosteriorState s = core_->state();
        const std::size_t n = s.counters.n, all = core_->params().linear() + n;
        nb::dict out;
        out["rows"] = own(std::move(s.rows), {n, dim()});
        out["coefficients"] = own(std::move(s.coefficients), {outputs(), all});
        out["covariance"] = own(std::move(s.covariance), {all, all});
        out["inverse"] = own(std::move(s.inverse), {n, n});
        if (!s.innovations.empty()) {
            out["innovations"] = own(std::move(s.innovations), {all, all});
            out["factor"] = own(std::move(s.factor), {n, n});
        }
        out["labels"] = s.counters.labels;
        out["joined"] = s.counters.joined;
        out["removed"] = s.counters.removed;
        out["floored"] = s.counters.floored;
        out["refreshed"] = s.counters.refreshed;
        out["ties"] = s.counters.ties;
        out["residuals"] = s.counters.residuals;
        return out;
    }

    void set_state(const nb::dict& in) {
        const auto rows = nb::cast<Matrix>(in["rows"]), coefficients = nb::cast<Matrix>(in["coefficients"]),
                   covariance = nb::cast<Matrix>(in["covariance"]), inverse = nb::cast<Matrix>(in["inverse"]);
        const std::size_t n = rows.shape(0), all = core_->params().linear() + n;
        if (n > core_->params().size || rows.shape(1) != dim() || coefficients.shape(0) != outputs() ||
            coefficients.shape(1) != all || covariance.shape(0) != all || covariance.shape(1) != all ||
            inverse.shape(0) != n || inverse.shape(1) != n)
            throw nb::value_error("This state does not fit this expert: its sizes differ.");
        sf2el::PosteriorState s;
        s.rows.assign(rows.data(), rows.data() + rows.size());
        s.coefficients.assign(coefficients.data(), coefficients.data() + coefficients.size());
        s.covariance.assign(covariance.data(), covariance.data() + covariance.size());
        s.inverse.assign(inverse.data(), inverse.data() + inverse.size());
        if (in.contains("innovations")) {
            const auto innovations = nb::cast<Matrix>(in["innovations"]);
            if (innovations.shape(0) != all || innovations.shape(1) != all)
                throw nb::value_error("This state does not fit this expert: its sizes differ.");
            s.innovations.assign(innovations.data(), innovations.data() + innovations.size());
        }
        if (in.contains("factor")) {
            const auto factor = nb::cast<Matrix>(in["factor"]);
            if (factor.shape(0) != n || factor.shape(1) != n)
                throw nb::value_error("This state does not fit this expert: its sizes differ.");
            s.factor.assign(factor.data(), factor.data() + factor.size());
        }
        auto& c = s.counters;
        c.labels = nb::cast<std::uint64_t>(in["labels"]);
        c.joined = nb::cast<std::uint64_t>(in["joined"]);
        c.removed = nb::cast<std::uint64_t>(in["removed"]);
        c.floored = nb::cast<std::uint64_t>(in["floored"]);
        c.refreshed = nb::cast<std::uint64_t>(in["refreshed"]);
        c.ties = nb::cast<std::uint32_t>(in["ties"]);
        c.residuals = nb::cast<double>(in["residuals"]);
        c.n = static_cast<std::uint32_t>(n);
        core_->set_state(s);
    }
};

class OnlineLogistic final : public ExpertOf<sf2el::AnyLogistic> {
public:
    using ExpertOf::ExpertOf;

    OnlineLogistic copy() const { return OnlineLogistic(core_->copy()); }
    Out<double> state() const { return copy_out(core_->numbers().data(), core_->numbers().size()); }

    void set_state(const Vector& in) {
        check_same_length(core_->numbers().size(), in.shape(0));
        std::copy(in.data(), in.data() + in.shape(0), core_->numbers().begin());
    }
};

Posterior build_posterior(std::uint32_t dim, std::uint32_t size, std::uint32_t outputs, const std::string& task,
                          double gamma, double linear_scale, double rbf_scale, double bias, double novelty,
                          double forget, double centred, double tie_noise, double tie_novelty,
                          std::uint32_t tie_power, std::uint32_t most_ties, bool keep_inverse, bool slopes,
                          const std::string& precision, const std::string& variant_name) {
    sf2el::PosteriorParams p;
    p.dim = dim;
    p.size = size;
    p.outputs = outputs;
    p.task = task_of(task, outputs);
    p.gamma = gamma;
    p.linear_scale = linear_scale;
    p.rbf_scale = rbf_scale;
    p.bias = bias;
    p.novelty = novelty;
    p.forget = forget;
    p.centred = centred;
    p.tie_noise = tie_noise;
    p.tie_novelty = tie_novelty;
    p.tie_power = tie_power;
    p.most_ties = most_ties;
    p.keep_inverse = keep_inverse;
    p.slopes = slopes;
    using sf2el::Precision;
    const auto kept = choose<Precision>(
        precision, {{"float64", Precision::full}, {"float32", Precision::single}, {"float16", Precision::half}});
    return Posterior(variant(variant_name).posterior(p, kept));
}

OnlineLogistic build_logistic(std::uint32_t dim, std::uint32_t outputs, const std::string& task, double step,
                              double power, double scale, const std::string& variant_name) {
    sf2el::LogisticParams p;
    p.dim = dim;
    p.outputs = outputs;
    p.task = task_of(task, outputs);
    p.step = step;
    p.power = power;
    p.scale = scale;
    return OnlineLogistic(variant(variant_name).logistic(p));
}

template <class T>
nb::class_<T, Expert> bind_expert(nb::module_& m, const char* name) {
    return nb::class_<T, Expert>(m, name)
        .def("predict", &T::predict, "x"_a)
        .def("predict_many", &T::predict_many, "X"_a)
        .def("learn", &T::learn, "x"_a, "y"_a, "weight"_a = 1.0)
        .def("learn_late", &T::learn_late, "x"_a, "y"_a, "weight"_a = 1.0)
        .def("run", &T::run, "X"_a, "y"_a, "weights"_a = nb::none())
        .def("copy", &T::copy)
        .def("state", &T::state)
        .def("set_state", &T::set_state, "state"_a);
}

}  // namespace

void bind_experts(nb::module_& m) {
    m.def("posterior", &build_posterior, "dim"_a, "size"_a, "outputs"_a, "task"_a, "gamma"_a, "linear_scale"_a,
          "rbf_scale"_a, "bias"_a, "novelty"_a, "forget"_a, "centred"_a, "tie_noise"_a, "tie_novelty"_a, "tie_power"_a,
          "most_ties"_a, "keep_inverse"_a, "slopes"_a, "precision"_a, "variant"_a);
    m.def("logistic", &build_logistic, "dim"_a, "outputs"_a, "task"_a, "step"_a, "power"_a, "scale"_a, "variant"_a);

    bind_expert<Posterior>(m, "Posterior")
        .def_prop_ro("size", &Posterior::size)
        .def_prop_ro("labels", &Posterior::labels)
        .def_prop_ro("joined", &Posterior::joined)
        .def_prop_ro("removed", &Posterior::removed)
        .def_prop_ro("floored", &Posterior::floored)
        .def_prop_ro("refreshed", &Posterior::refreshed)
        .def_prop_ro("ties", &Posterior::ties);
    bind_expert<OnlineLogistic>(m, "OnlineLogistic");
}

}  // namespace sf2el_python
