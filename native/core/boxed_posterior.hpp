// AnyPosterior and AnyLogistic on the core's, each with a block of its own for its state.
#pragma once

#include "boxed_learner.hpp"
#include "half_posterior.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// What every kind of posterior has in common, over its core and its own boxed class.
template <class Core, class Own>
class BoxedAs : public AnyPosterior {
public:
    explicit BoxedAs(const PosteriorParams& p)
        : params_(p), block_(new std::uint64_t[state_bytes() / sizeof(std::uint64_t)]) {
        Core(params_, block_.get(), scratch());
    }

    size_t dim() const override { return params_.dim; }
    size_t outputs() const override { return params_.outputs; }
    bool uses_unlabelled() const override {
        return params_.tie_noise > 0.0 && params_.size > 0 && counters().ties < params_.most_ties;
    }
    bool label_fits(double y) const override { return sf2el::label_fits(params_.task, params_.outputs, y); }
    void score(const double* x, double* scores) override { view().predict(x, scores); }

    // A late label is a label like any other: nothing was learned before it.
    double teach(const double* x, double y, double weight, bool, double* scores) override {
        return view().learn(x, y, weight, scores);
    }

    const PosteriorParams& params() const override { return params_; }

    const PosteriorCounters& counters() const override {
        return *reinterpret_cast<const PosteriorCounters*>(block_.get());
    }

    size_t state_bytes() const override { return Core::state_bytes(params_); }
    size_t scratch_bytes() const override { return Core::scratch_bytes(params_); }
    unsigned char* block() override { return reinterpret_cast<unsigned char*>(block_.get()); }
    bool is_sound() override { return Core::is_sound(params_, block_.get()); }
    double shrink(size_t size) override { return view().shrink(size); }
    std::unique_ptr<AnyExpert> clone() const override { return copy(); }

    std::unique_ptr<AnyPosterior> copy() const override {
        auto other = std::make_unique<Own>(params_);
        std::memcpy(other->block_.get(), block_.get(), state_bytes());
        return other;
    }

protected:
    Core view() { return {params_, block_.get(), scratch(), typename Core::Adopt{}}; }
    void* scratch() const { return thread_scratch(scratch_bytes()); }

    PosteriorParams params_;
    std::unique_ptr<std::uint64_t[]> block_;
};

template <class Real>
class BoxedPosterior final : public BoxedAs<Posterior<Real>, BoxedPosterior<Real>> {
    using Base = BoxedAs<Posterior<Real>, BoxedPosterior<Real>>;

public:
    using Base::Base;

    PosteriorState state() override {
        auto posterior = this->view();
        PosteriorState out;
        out.counters = posterior.counters();
        const size_t n = posterior.size(), all = posterior.linear() + n, dim = this->params_.dim;
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) out.rows.push_back(double(posterior.feature(s, j)));
        for (size_t k = 0; k < this->params_.outputs; ++k)
            out.coefficients.insert(out.coefficients.end(), posterior.mean(k), posterior.mean(k) + all);
        unpack(posterior.covariance(), all, out.covariance);
        unpack(posterior.inverse(), n, out.inverse);
        return out;
    }

    void set_state(const PosteriorState& in) override {
        auto posterior = this->view();
        posterior.counters() = in.counters;
        const size_t n = in.counters.n, all = posterior.linear() + n, dim = this->params_.dim;
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) posterior.feature(s, j) = static_cast<Real>(in.rows[s * dim + j]);
        for (size_t k = 0; k < this->params_.outputs; ++k)
            for (size_t j = 0; j < all; ++j) posterior.mean(k)[j] = static_cast<Real>(in.coefficients[k * all + j]);
        pack(in.covariance, all, posterior.covariance());
        if (this->params_.keep_inverse) pack(in.inverse, n, posterior.inverse());
    }
};

class BoxedHalfPosterior final : public BoxedAs<HalfPosterior, BoxedHalfPosterior> {
public:
    using BoxedAs::BoxedAs;

    PosteriorState state() override {
        auto expert = view();
        PosteriorState out;
        out.counters = expert.counters();
        const size_t n = expert.size(), all = expert.linear() + n, dim = params_.dim;
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) out.rows.push_back(double(float_of(expert.feature(s, j))));
        for (size_t k = 0; k < params_.outputs; ++k)
            out.coefficients.insert(out.coefficients.end(), expert.mean(k), expert.mean(k) + all);
        out.covariance.resize(all * all);
        out.inverse.resize(n * n);
        expert.matrices(out.covariance.data(), out.inverse.data());
        out.innovations.resize(all * all);
        for (size_t i = 0; i < all; ++i)
            for (size_t j = 0; j <= i; ++j)
                out.innovations[i * all + j] = out.innovations[j * all + i] =
                    double(float_of(expert.innovations()[packed_row(i) + j]));
        out.factor.resize(n * n);
        const float* factor = expert.factor_floats();
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j) out.factor[i * n + j] = double(factor[packed_row(i) + j]);
        return out;
    }

    void set_state(const PosteriorState& in) override {
        auto expert = view();
        expert.counters() = in.counters;
        const size_t n = in.counters.n, all = expert.linear() + n, dim = params_.dim;
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) expert.feature(s, j) = half_of(static_cast<float>(in.rows[s * dim + j]));
        for (size_t k = 0; k < params_.outputs; ++k)
            for (size_t j = 0; j < all; ++j) expert.mean(k)[j] = static_cast<float>(in.coefficients[k * all + j]);
        if (in.innovations.empty() || in.factor.empty()) expert.set_factor();
        else expert.set_factor(in.factor.data());
        if (in.innovations.empty()) {
            expert.keep([&](size_t i, size_t j) { return in.covariance[i * all + j]; });
            return;
        }
        for (size_t i = 0; i < all; ++i)
            for (size_t j = 0; j <= i; ++j)
                expert.innovations()[packed_row(i) + j] = half_of(static_cast<float>(in.innovations[i * all + j]));
    }
};

class BoxedLogistic final : public AnyLogistic {
public:
    explicit BoxedLogistic(const LogisticParams& p) : params_(p), block_(OnlineLogistic::reals(p)) {}

    size_t dim() const override { return params_.dim; }
    size_t outputs() const override { return params_.outputs; }
    bool uses_unlabelled() const override { return false; }
    bool label_fits(double y) const override { return sf2el::label_fits(params_.task, params_.outputs, y); }
    void score(const double* x, double* scores) override { view().predict(x, scores); }

    double teach(const double* x, double y, double weight, bool, double* scores) override {
        return view().learn(x, y, weight, scores);
    }

    const LogisticParams& params() const override { return params_; }
    std::vector<double>& numbers() override { return block_; }
    unsigned char* block() override { return reinterpret_cast<unsigned char*>(block_.data()); }

    bool is_sound() override {
        bool sound = block_.back() >= 0.0;
        for (const double value : block_) sound = sound && value >= -Limits<double>::huge && value <= Limits<double>::huge;
        return sound;
    }

    std::unique_ptr<AnyExpert> clone() const override { return copy(); }
    size_t state_bytes() const override { return block_.size() * sizeof(double); }
    size_t scratch_bytes() const override { return OnlineLogistic::scratch_reals(params_) * sizeof(double); }
    std::unique_ptr<AnyLogistic> copy() const override { return std::make_unique<BoxedLogistic>(*this); }

private:
    OnlineLogistic view() {
        return {params_, block_.data(), static_cast<double*>(thread_scratch(scratch_bytes()))};
    }

    LogisticParams params_;
    std::vector<double> block_;
};

inline std::unique_ptr<AnyPosterior> make_posterior(const PosteriorParams& p, Precision precision) {
    switch (precision) {
        case Precision::half: return std::make_unique<BoxedHalfPosterior>(p);
        case Precision::single: return std::make_unique<BoxedPosterior<float>>(p);
        default: return std::make_unique<BoxedPosterior<double>>(p);
    }
}

inline std::unique_ptr<AnyLogistic> make_logistic(const LogisticParams& p) {
    return std::make_unique<BoxedLogistic>(p);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
