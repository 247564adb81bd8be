// The symmetric matrix that takes the correlations out of features: see whitening in src/sf2el/model/bank.py.
#pragma once

#include "dense.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

class Whitening {
public:
    static size_t scratch_reals(size_t n) { return 2 * Dense::reals(n, n) + n; }

    // `scratch`: scratch_reals(n) doubles.
    Whitening(size_t n, double* scratch) : n_(n), root_(n, n, scratch), turn_(n, n, scratch), length_(scratch) {}

    // `out`: a full matrix.
    void solve(const double* covariance, double rows, double least_spread, double* out) {
        const double n = double(n_);
        correlation(root_, covariance, length_);
        for (size_t i = 0; i < n_; ++i) {
            for (size_t j = 0; j < n_; ++j) root_[i][j] = rows * root_[i][j] / (rows + n);
            root_[i][i] += n / (rows + n);
        }
        factor(root_, [=](size_t) { return least_spread; });
        for (int sweep = 0; sweep < most_sweeps && orthogonalise(); ++sweep) {
        }
        // Each row is an eigenvector by now, as long as the root of its variance and the least spread together.
        double left = 0.0;
        for (size_t k = 0; k < n_; ++k) left += (length_[k] - least_spread) / length_[k];
        const double scale = std::sqrt(n / (left > 1e-12 ? left : 1e-12));
        for (size_t k = 0; k < n_; ++k) {
            const double grow = std::sqrt(scale / (length_[k] * std::sqrt(length_[k])));
            for (size_t j = 0; j < n_; ++j) root_[k][j] *= grow;
        }
        add_transposed_product(turn_, 1.0, root_, root_);
        for (size_t i = 0; i < n_; ++i) std::memcpy(out + i * n_, turn_[i], n_ * sizeof(double));
    }

private:
    static constexpr int most_sweeps = 30;
    static constexpr double orthogonal = 1e-14;

    // One sweep of Jacobi's rotations over all pairs of rows, after Hestenes; whether there was any to turn.
    bool orthogonalise() {
        bool turned = false;
        for (size_t i = 0; i < n_; ++i) length_[i] = dot(root_[i], root_[i], n_);
        for (size_t i = 0; i < n_; ++i) {
            for (size_t j = i + 1; j < n_; ++j) {
                const double along = dot(root_[i], root_[j], n_);
                if (!(along * along > orthogonal * orthogonal * (length_[i] * length_[j]))) continue;
                turned = true;
                const double zeta = (length_[j] - length_[i]) / (2.0 * along);
                const double size = 1.0 / (std::fabs(zeta) + std::sqrt(1.0 + zeta * zeta));
                const double tangent = zeta < 0.0 ? -size : size;
                const double cosine = 1.0 / std::sqrt(1.0 + tangent * tangent), sine = cosine * tangent;
                double *a = root_[i], *b = root_[j];
                for (size_t k = 0; k < n_; ++k) {
                    const double ak = a[k];
                    a[k] = cosine * ak - sine * b[k];
                    b[k] = sine * ak + cosine * b[k];
                }
                length_[i] -= tangent * along;
                length_[j] += tangent * along;
            }
        }
        return turned;
    }

    size_t n_;
    Dense root_, turn_;
    double* length_;  // of each row, squared
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
