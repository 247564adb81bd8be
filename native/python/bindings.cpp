// Python's module. Only files named bind* know Python.
#include "bindings.hpp"

#include <cstdlib>
#include <limits>
#include <stdexcept>

using namespace sf2el_python;

namespace {

using sf2el::AnyLearner;
using sf2el::LearnerParams;
using sf2el::LearnerState;

sf2el::KernelTerm kernel_term(const std::string& kind, double gamma, double offset, int degree) {
    using K = sf2el::KernelKind;
    sf2el::KernelTerm term;
    term.kind = choose<K>(kind, {{"RBF", K::rbf},
                                 {"Laplacian", K::laplacian},
                                 {"Polynomial", K::polynomial},
                                 {"Linear", K::linear},
                                 {"Constant", K::constant}});
    term.gamma = gamma;
    term.offset = offset;
    term.degree = degree;
    return term;
}

// ---- which compiled variant

bool wide_usable() {
#ifdef SF2EL_WIDE_VARIANT
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

}  // namespace

const sf2el::Variant& sf2el_python::variant(const std::string& name) {
    const bool wide = choose<bool>(name, {{"auto", wide_usable()}, {"wide", true}, {"base", false}});
#ifdef SF2EL_WIDE_VARIANT
    if (wide && wide_usable()) return sf2el::wide_variant;
#endif
    if (wide) throw nb::value_error("This processor or build has no wide variant of the core.");
    return sf2el::base_variant;
}

namespace {

// ---- Python's learner

class Learner final : public Expert {
public:
    explicit Learner(std::unique_ptr<AnyLearner> core) : core_(std::move(core)) {}

    sf2el::AnyExpert& expert() const override { return *core_; }

    double predict(const Vector& x) {
        check_row(x, dim());
        return core_->predict(x.data());
    }

    Out<double> predict_many(const Matrix& x) {
        check_rows(x, dim());
        std::vector<double> scores(x.shape(0));
        {
            nb::gil_scoped_release unlocked;
            core_->predict_many(x.data(), scores.size(), scores.data());
        }
        const std::size_t n = scores.size();
        return own(std::move(scores), {n});
    }

    std::pair<double, double> learn(const Vector& x, double y, double weight) {
        check_row(x, dim());
        check_label(y);
        check_weight(weight);
        const sf2el::Outcome outcome = core_->learn(x.data(), y, weight);
        return {outcome.score, outcome.risk};
    }

    std::pair<double, double> learn_late(const Vector& x, double y, double weight) {
        check_row(x, dim());
        check_late_label(y);
        check_weight(weight);
        const sf2el::Outcome outcome = core_->learn_late(x.data(), y, weight);
        return {outcome.score, outcome.risk};
    }

    std::pair<Out<double>, Out<double>> run(const Matrix& x, const Vector& y, bool frozen) {
        check_rows(x, dim());
        check_same_length(x.shape(0), y.shape(0));
        const std::size_t n = x.shape(0);
        for (std::size_t i = 0; i < n; ++i) check_label(y.data()[i]);
        std::vector<double> scores(n), risks(n);
        {
            nb::gil_scoped_release unlocked;
            core_->run(x.data(), y.data(), n, frozen, scores.data(), risks.data());
        }
        return {own(std::move(scores), {n}), own(std::move(risks), {n})};
    }

    void restart() { core_->restart(); }
    Learner copy() const { return Learner(core_->copy()); }

    nb::dict state() {
        LearnerState s = core_->state();
        const std::size_t n = s.counters.n;
        nb::dict out;
        out["rows"] = own(std::move(s.rows), {n, dim()});
        out["beta"] = own(std::move(s.beta), {n});
        out["weights"] = own(std::move(s.weights), {n});
        out["decay"] = nb::make_tuple(s.counters.decay[0], s.counters.decay[1]);
        if (core_->params().keep_gram) out["gram"] = own(std::move(s.gram), {n, n});
        else out["gram"] = nb::none();
        if (s.counters.inverse_ready) out["inverse"] = own(std::move(s.inverse), {n, n});
        else out["inverse"] = nb::none();
        out["kinds"] = own(std::move(s.kinds), {n});
        out["seen_by_kind"] = nb::make_tuple(s.counters.seen_by_kind[0], s.counters.seen_by_kind[1]);
        out["seen"] = s.counters.seen;
        out["labels"] = s.counters.labels;
        out["clock"] = s.counters.clock;
        out["rng"] = s.counters.rng;
        out["norm_bound"] = s.counters.norm_bound;
        out["refreshes"] = s.counters.refreshes;
        return out;
    }

    void set_state(const nb::dict& in) {
        const auto rows = nb::cast<Matrix>(in["rows"]);
        const auto beta = nb::cast<Vector>(in["beta"]);
        const auto weights = nb::cast<Vector>(in["weights"]);
        const auto kinds = nb::cast<Bytes>(in["kinds"]);
        const std::size_t n = beta.shape(0);
        if (n > core_->params().capacity || rows.shape(0) != n || rows.shape(1) != dim() || weights.shape(0) != n ||
            kinds.shape(0) != n)
            throw nb::value_error("This state does not fit this learner: its sizes differ.");
        if (!in["gram"].is_none()) {
            const auto gram = nb::cast<Matrix>(in["gram"]);
            if (gram.shape(0) != n || gram.shape(1) != n)
                throw nb::value_error("This state does not fit this learner: its sizes differ.");
        }
        LearnerState s;
        s.rows.assign(rows.data(), rows.data() + n * dim());
        s.beta.assign(beta.data(), beta.data() + n);
        s.weights.assign(weights.data(), weights.data() + n);
        s.kinds.assign(kinds.data(), kinds.data() + n);
        auto& c = s.counters;
        if (!in["inverse"].is_none()) {
            const auto inverse = nb::cast<Matrix>(in["inverse"]);
            if (inverse.shape(0) != n || inverse.shape(1) != n)
                throw nb::value_error("This state does not fit this learner: its sizes differ.");
            if (core_->params().projection == sf2el::Projection::exact) {
                s.inverse.assign(inverse.data(), inverse.data() + n * n);
                c.inverse_ready = 1;
            }
        }
        const auto by_kind = nb::cast<std::pair<std::uint64_t, std::uint64_t>>(in["seen_by_kind"]);
        c.seen_by_kind[0] = by_kind.first;
        c.seen_by_kind[1] = by_kind.second;
        c.seen = nb::cast<std::uint64_t>(in["seen"]);
        c.labels = nb::cast<std::uint64_t>(in["labels"]);
        c.clock = nb::cast<std::uint64_t>(in["clock"]);
        c.rng = nb::cast<std::uint64_t>(in["rng"]);
        const auto decay = nb::cast<std::pair<double, double>>(in["decay"]);
        c.decay[0] = decay.first;
        c.decay[1] = decay.second;
        c.n = static_cast<std::uint32_t>(n);
        for (std::size_t i = 0; i < n; ++i) {
            if (s.kinds[i] > (core_->params().stratified ? 1 : 0))
                throw nb::value_error("This state does not fit this learner: its kinds of rows differ.");
            ++c.kept[s.kinds[i]];
        }
        // Where it is not given, the next step computes the norm itself.
        c.norm_bound = in.contains("norm_bound") ? nb::cast<double>(in["norm_bound"]) : HUGE_VAL;
        if (in.contains("refreshes")) c.refreshes = nb::cast<std::uint64_t>(in["refreshes"]);
        core_->set_state(s);
    }

private:
    std::unique_ptr<AnyLearner> core_;
};

// ---- Python's recovery map, hedge and scaler

class RecoveryMap {
public:
    RecoveryMap(std::uint32_t from, std::uint32_t to, double ridge, bool intercept)
        : p_{from, to, ridge, intercept}, block_(sf2el::RecoveryMap::reals(p_)), map_(p_, block_.data()) {}

    void observe(const Matrix& z, const Matrix& x) {
        check_rows(z, p_.from);
        check_rows(x, p_.to);
        check_same_length(z.shape(0), x.shape(0));
        for (std::size_t i = 0; i < z.shape(0); ++i) map_.observe(z.data() + i * p_.from, x.data() + i * p_.to);
    }

    void solve() {
        std::vector<double> scratch(sf2el::RecoveryMap::scratch_reals(p_));
        map_.solve(scratch.data());
    }

    Out<double> recover(const Matrix& z) const {
        check_rows(z, p_.from);
        const std::size_t n = z.shape(0);
        std::vector<double> x(n * p_.to);
        for (std::size_t i = 0; i < n; ++i) map_.recover(z.data() + i * p_.from, x.data() + i * p_.to);
        return own(std::move(x), {n, p_.to});
    }

    Out<double> matrix() const {
        return own(std::vector<double>(map_.matrix(), map_.matrix() + std::size_t(p_.from) * p_.to), {p_.from, p_.to});
    }

    double rows() const { return map_.rows(); }
    Out<double> state() const { return copy_out(block_.data(), block_.size()); }

    void set_state(const Vector& in) {
        check_same_length(block_.size(), in.shape(0));
        std::copy(in.data(), in.data() + block_.size(), block_.begin());
    }

private:
    sf2el::RecoveryParams p_;
    std::vector<double> block_;
    sf2el::RecoveryMap map_;
};

class Hedge {
public:
    Hedge(std::size_t experts, double eta)
        : block_(sf2el::Hedge::reals(experts)), hedge_(experts, eta, block_.data()) {}

    Out<double> weights() const { return copy_out(hedge_.weights(), hedge_.experts()); }
    Out<double> cumulative() const { return copy_out(hedge_.cumulative(), hedge_.experts()); }
    double mixture() const { return hedge_.mixture(); }
    double gaps() const { return hedge_.gaps(); }
    double largest() const { return hedge_.largest(); }
    double rounds() const { return hedge_.rounds(); }
    double rate() const { return hedge_.rate(); }

    double combine(const Vector& scores) const {
        check_row(scores, hedge_.experts());
        return hedge_.combine(scores.data());
    }

    double update(const Vector& risks) {
        check_row(risks, hedge_.experts());
        return hedge_.update(risks.data());
    }

    // Combined scores, combined risks, and the weights each round was combined with.
    std::tuple<Out<double>, Out<double>, Out<double>> run(const Matrix& scores, const Matrix& risks) {
        const std::size_t n = scores.shape(0), experts = hedge_.experts();
        check_rows(scores, experts);
        check_rows(risks, experts);
        check_same_length(n, risks.shape(0));
        std::vector<double> combined(n), mixed(n), weights(n * experts);
        for (std::size_t i = 0; i < n; ++i) {
            std::copy(hedge_.weights(), hedge_.weights() + experts, weights.begin() + i * experts);
            combined[i] = hedge_.combine(scores.data() + i * experts);
            mixed[i] = hedge_.update(risks.data() + i * experts);
        }
        return {own(std::move(combined), {n}), own(std::move(mixed), {n}), own(std::move(weights), {n, experts})};
    }

    Out<double> state() const { return copy_out(block_.data(), block_.size()); }

    void set_state(const Vector& in) {
        check_same_length(block_.size(), in.shape(0));
        std::copy(in.data(), in.data() + block_.size(), block_.begin());
    }

private:
    std::vector<double> block_;
    sf2el::Hedge hedge_;
};

class Scaler {
public:
    explicit Scaler(std::size_t dim) : dim_(dim) {}
    virtual ~Scaler() = default;

    void scale_into(const Vector& x, MutableVector out, bool keep) {
        check_width(x.shape(0), dim_);
        check_known(x.data(), dim_);
        check_width(out.shape(0), dim_);
        scale_row(x.data(), out.data(), keep);
    }

    Out<double> scale_many(const Matrix& x, bool keep) {
        check_width(x.shape(1), dim_);
        check_known(x.data(), x.shape(0) * dim_);
        const std::size_t n = x.shape(0);
        std::vector<double> out(n * dim_);
        for (std::size_t i = 0; i < n; ++i) scale_row(x.data() + i * dim_, out.data() + i * dim_, keep);
        return own(std::move(out), {n, dim_});
    }

    void unscale_gaps(MutableVector row, const Vector& scaled) const {
        check_width(row.shape(0), dim_);
        check_row(scaled, dim_);
        unscale_gaps_row(row.data(), scaled.data());
    }

    // Rows read with 0 for what is absent, and flags of what is there; neither changes anything.
    Out<double> scale_with_zeros(const Vector& x, double rows, bool kept, std::optional<Vector> recovered) const {
        check_view(x, rows);
        if (recovered) check_row(*recovered, dim_);
        std::vector<double> out(dim_);
        zeros_row(x.data(), out.data(), recovered ? recovered->data() : nullptr, rows, kept);
        return own(std::move(out), {dim_});
    }

    Out<double> presence(const Vector& x, double rows, bool kept) const {
        check_view(x, rows);
        std::vector<double> out(dim_);
        presence_row(x.data(), out.data(), rows, kept);
        return own(std::move(out), {dim_});
    }

    virtual Out<double> state() const = 0;
    virtual void set_state(const Vector& in) = 0;
    virtual std::size_t nbytes() const = 0;

protected:
    virtual void scale_row(const double* x, double* out, bool keep) = 0;
    virtual void unscale_gaps_row(double* row, const double* scaled) const = 0;
    virtual void zeros_row(const double* x, double* out, const double* recovered, double rows, bool kept) const = 0;
    virtual void presence_row(const double* x, double* out, double rows, bool kept) const = 0;

    std::size_t dim_;

private:
    void check_view(const Vector& x, double rows) const {
        check_width(x.shape(0), dim_);
        check_known(x.data(), dim_);
        if (!(rows >= 1.0 && rows <= largest_feature)) throw nb::value_error("There is one row at least, this one.");
    }
};

template <class Real>
class ScalerOf final : public Scaler {
public:
    ScalerOf(std::size_t dim, double divisor)
        : Scaler(dim), block_(sf2el::Scaler<Real>::bytes(dim) / sizeof(double)), scaler_(dim, block_.data(), divisor) {}

    Out<double> state() const override {
        std::vector<double> out(3 * dim_);
        scaler_.state(out.data());
        return own(std::move(out), {3 * dim_});
    }

    void set_state(const Vector& in) override {
        check_same_length(3 * dim_, in.shape(0));
        scaler_.set_state(in.data());
    }

    std::size_t nbytes() const override { return block_.size() * sizeof(double); }

protected:
    void scale_row(const double* x, double* out, bool keep) override { scaler_.scale(x, out, keep); }
    void unscale_gaps_row(double* row, const double* scaled) const override { scaler_.unscale_gaps(row, scaled); }
    void zeros_row(const double* x, double* out, const double* recovered, double rows, bool kept) const override {
        scaler_.scale_with_zeros(x, out, recovered, rows, kept);
    }
    void presence_row(const double* x, double* out, double rows, bool kept) const override {
        scaler_.presence(x, out, rows, kept);
    }

private:
    std::vector<double> block_;
    sf2el::Scaler<Real> scaler_;
};

std::unique_ptr<Scaler> build_scaler(std::size_t dim, std::optional<double> divisor, const std::string& precision) {
    if (divisor && !(*divisor > 0.0 && *divisor <= largest_feature))
        throw nb::value_error("divisor must be above 0 and at most 1e100, or None for the root of dim.");
    const double by = divisor.value_or(0.0);
    if (choose<bool>(precision, {{"float32", true}, {"float64", false}}))
        return std::make_unique<ScalerOf<float>>(dim, by);
    return std::make_unique<ScalerOf<double>>(dim, by);
}

}  // namespace

namespace {

Learner build_learner(std::uint32_t dim, std::uint32_t capacity, std::uint64_t seed,
                      const std::vector<std::tuple<std::string, double, double, int>>& kernel, const std::string& loss,
                      double graph_width, double ridge, double smoothness, double step, double label_rate,
                      double radius, double jitter, bool manifold, const std::string& equations, bool cap,
                      const std::string& projection, std::uint32_t pursuit_steps, bool keep_gram,
                      const std::string& on_skip,
                      const std::string& sampling, const std::string& precision, const std::string& variant) {
    LearnerParams p;
    p.dim = dim;
    p.capacity = capacity;
    p.seed = seed;
    if (kernel.empty() || kernel.size() > sf2el::most_kernel_terms)
        throw nb::value_error("A kernel takes 1 to 4 terms.");
    p.kernel_terms = static_cast<std::uint32_t>(kernel.size());
    for (std::size_t t = 0; t < kernel.size(); ++t) {
        const auto& [kind, gamma, offset, degree] = kernel[t];
        p.kernel[t] = kernel_term(kind, gamma, offset, degree);
    }
    using L = sf2el::Loss;
    p.loss = choose<L>(loss, {{"logistic", L::logistic},
                              {"hinge", L::hinge},
                              {"squared_hinge", L::squared_hinge},
                              {"squared", L::squared},
                              {"absolute", L::absolute}});
    p.graph_width = graph_width;
    p.ridge = ridge;
    p.smoothness = smoothness;
    p.step = step;
    p.label_rate = label_rate;
    p.radius = radius;
    p.jitter = jitter;
    p.manifold = manifold;
    using E = sf2el::Equations;
    p.equations = choose<E>(equations, {{"gradient", E::gradient},
                                        {"printed", E::printed},
                                        {"printed-weighted", E::printed_weighted}});
    p.cap = cap;
    using P = sf2el::Projection;
    p.projection = choose<P>(projection, {{"exact", P::exact}, {"pursuit", P::pursuit}});
    p.pursuit_steps = pursuit_steps;
    if (!keep_gram && p.projection == P::exact)
        throw nb::value_error("The exact projection needs the Gram matrix kept.");
    p.keep_gram = keep_gram;
    p.project_on_skip = choose<bool>(on_skip, {{"drop", false}, {"project", true}});
    p.stratified = choose<bool>(sampling, {{"reservoir", false}, {"stratified", true}});
    const bool single = choose<bool>(precision, {{"float64", false}, {"float32", true}});
    return Learner(sf2el_python::variant(variant).learner(p, single));
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled core of sf2el.";
    // An interpreter that exits with models alive (in a REPL, in a test) is no leak worth a report.
    nb::set_leak_warnings(false);
    m.def("wide_usable", &wide_usable);
    m.def("exp_neg", [](double x) { return sf2el::exp_neg(x); }, "x"_a);
    m.def("exp_neg32", [](float x) { return sf2el::exp_neg(x); }, "x"_a);
    m.def("log_positive", [](double x) { return sf2el::log_positive(x); }, "x"_a);
    m.def("learner", &build_learner, "dim"_a, "capacity"_a, "seed"_a, "kernel"_a, "loss"_a, "graph_width"_a, "ridge"_a,
          "smoothness"_a, "step"_a, "label_rate"_a, "radius"_a, "jitter"_a, "manifold"_a, "equations"_a, "cap"_a,
          "projection"_a, "pursuit_steps"_a, "keep_gram"_a, "on_skip"_a, "sampling"_a, "precision"_a, "variant"_a);

    nb::class_<Expert>(m, "Expert")
        .def_prop_ro("dim", &Expert::dim)
        .def_prop_ro("outputs", &Expert::outputs)
        .def_prop_ro("uses_unlabelled", &Expert::uses_unlabelled)
        .def_prop_ro("nbytes", &Expert::nbytes)
        .def_prop_ro("scratch_nbytes", &Expert::scratch_nbytes);

    nb::class_<Learner, Expert>(m, "Learner")
        .def("predict", &Learner::predict, "x"_a)
        .def("predict_many", &Learner::predict_many, "X"_a)
        .def("learn", &Learner::learn, "x"_a, "y"_a, "weight"_a = 1.0)
        .def("learn_late", &Learner::learn_late, "x"_a, "y"_a, "weight"_a = 1.0)
        .def("run", &Learner::run, "X"_a, "y"_a, "frozen"_a = false)
        .def("restart", &Learner::restart)
        .def("copy", &Learner::copy)
        .def("state", &Learner::state)
        .def("set_state", &Learner::set_state, "state"_a);

    nb::class_<RecoveryMap>(m, "RecoveryMap")
        .def(nb::init<std::uint32_t, std::uint32_t, double, bool>(), "new_dim"_a, "old_dim"_a, "ridge"_a,
             "intercept"_a)
        .def("observe", &RecoveryMap::observe, "Z"_a, "X"_a)
        .def("solve", &RecoveryMap::solve)
        .def("recover", &RecoveryMap::recover, "Z"_a)
        .def("state", &RecoveryMap::state)
        .def("set_state", &RecoveryMap::set_state, "state"_a)
        .def_prop_ro("matrix", &RecoveryMap::matrix, nb::rv_policy::automatic)
        .def_prop_ro("rows", &RecoveryMap::rows);

    nb::class_<Hedge>(m, "Hedge")
        .def(nb::init<std::size_t, double>(), "experts"_a, "eta"_a)
        .def("combine", &Hedge::combine, "scores"_a)
        .def("update", &Hedge::update, "risks"_a)
        .def("run", &Hedge::run, "scores"_a, "risks"_a)
        .def("state", &Hedge::state)
        .def("set_state", &Hedge::set_state, "state"_a)
        .def_prop_ro("weights", &Hedge::weights, nb::rv_policy::automatic)
        .def_prop_ro("cumulative", &Hedge::cumulative, nb::rv_policy::automatic)
        .def_prop_ro("mixture", &Hedge::mixture)
        .def_prop_ro("gaps", &Hedge::gaps)
        .def_prop_ro("largest", &Hedge::largest)
        .def_prop_ro("rounds", &Hedge::rounds)
        .def_prop_ro("rate", &Hedge::rate);

    nb::class_<Scaler>(m, "Scaler")
        .def(nb::new_(&build_scaler), "dim"_a, "divisor"_a = nb::none(), "precision"_a = "float64")
        .def("scale_into", &Scaler::scale_into, "x"_a, "out"_a, "keep"_a)
        .def("scale_many", &Scaler::scale_many, "X"_a, "keep"_a)
        .def("unscale_gaps", &Scaler::unscale_gaps, "row"_a, "scaled"_a)
        .def("scale_with_zeros", &Scaler::scale_with_zeros, "x"_a, "rows"_a, "kept"_a = false,
             "recovered"_a = nb::none())
        .def("presence", &Scaler::presence, "x"_a, "rows"_a, "kept"_a = false)
        .def("state", &Scaler::state)
        .def("set_state", &Scaler::set_state, "state"_a)
        .def_prop_ro("nbytes", &Scaler::nbytes);

    bind_moments(m);
    bind_maps(m);
    bind_experts(m);
    bind_mixture(m);
    bind_state(m);
}
