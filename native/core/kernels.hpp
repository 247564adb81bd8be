// Kernels of one row against a buffer. The buffer is stored feature by feature
// (feature j of row s at rows[j * stride + s]), so that four rows are compared
// at a time and no sum runs across lanes.
#pragma once

#include "numerics.hpp"
#include "params.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// out[s] = sum over features of term(x_j, rows[s]_j), for one of three terms.
template <class Real, class Term>
inline void reduce_features(const Real* rows, size_t stride, size_t n, const Real* x, size_t dim, Real* out,
                            Term term) {
    size_t s = 0;
    for (; s + 8 <= n; s += 8) {
        Lanes<Real> low = spread(Real(0)), high = low;
        const Real* from = rows + s;
        for (size_t j = 0; j < dim; ++j, from += stride) {
            const Lanes<Real> xj = spread(x[j]);
            low = low + term(load(from), xj);
            high = high + term(load(from + 4), xj);
        }
        store<Real>(out + s, low);
        store<Real>(out + s + 4, high);
    }
    for (; s + 4 <= n; s += 4) {
        Lanes<Real> total = spread(Real(0));
        for (size_t j = 0; j < dim; ++j) total = total + term(load(rows + j * stride + s), spread(x[j]));
        store<Real>(out + s, total);
    }
    for (; s < n; ++s) {
        Lanes<Real> total = spread(Real(0));
        for (size_t j = 0; j < dim; ++j) total = total + term(spread(rows[j * stride + s]), spread(x[j]));
        out[s] = total[0];
    }
}

template <class Real>
inline void squared_distances(const Real* rows, size_t stride, size_t n, const Real* x, size_t dim, Real* out) {
    reduce_features(rows, stride, n, x, dim, out, [](const Lanes<Real>& a, const Lanes<Real>& b) {
        const Lanes<Real> difference = a - b;
        return difference * difference;
    });
}

template <class Real>
inline void absolute_distances(const Real* rows, size_t stride, size_t n, const Real* x, size_t dim, Real* out) {
    reduce_features(rows, stride, n, x, dim, out, [](const Lanes<Real>& a, const Lanes<Real>& b) {
        Lanes<Real> difference = a - b;
        for (int i = 0; i < 4; ++i) difference[i] = difference[i] < 0 ? -difference[i] : difference[i];
        return difference;
    });
}

template <class Real>
inline void inner_products(const Real* rows, size_t stride, size_t n, const Real* x, size_t dim, Real* out) {
    reduce_features(rows, stride, n, x, dim, out,
                    [](const Lanes<Real>& a, const Lanes<Real>& b) { return a * b; });
}

// A parameter brought into the range of Real.
template <class Real>
inline double within(double value) {
    return value < double(Limits<Real>::huge) ? value : double(Limits<Real>::huge);
}

// out[s] = exp(-width * distances[s])
template <class Real>
inline void gaussian(const Real* distances, double width, size_t n, Real* out) {
    const Real minus = static_cast<Real>(-within<Real>(width));
    for (size_t s = 0; s < n; ++s) out[s] = exp_neg(minus * distances[s]);
}

template <class Real>
inline Real polynomial(const KernelTerm& term, Real product) {
    const Real gamma = static_cast<Real>(within<Real>(term.gamma)), offset = static_cast<Real>(within<Real>(term.offset));
    const Real base = saturate<Real>(gamma * saturate<Real>(product) + offset);
    Real value = base;
    for (std::int32_t i = 1; i < term.degree; ++i) value = saturate<Real>(value * base);
    return value;
}

inline bool needs_squared_distances(const LearnerParams& p) {
    if (p.manifold) return true;
    for (std::uint32_t t = 0; t < p.kernel_terms; ++t)
        if (p.kernel[t].kind == KernelKind::rbf) return true;
    return false;
}

inline bool constant_diagonal(const LearnerParams& p) {
    for (std::uint32_t t = 0; t < p.kernel_terms; ++t)
        if (p.kernel[t].kind == KernelKind::polynomial || p.kernel[t].kind == KernelKind::linear) return false;
    return true;
}

// One term of the kernel between x and every row of the buffer.
template <class Real>
inline void kernel_term(const KernelTerm& term, const Real* rows, size_t stride, size_t n, const Real* x,
                        size_t dim, const Real* squared, Real* out) {
    switch (term.kind) {
        case KernelKind::rbf: gaussian(squared, term.gamma, n, out); break;
        case KernelKind::laplacian:
            absolute_distances(rows, stride, n, x, dim, out);
            gaussian(out, term.gamma, n, out);
            break;
        case KernelKind::polynomial:
            inner_products(rows, stride, n, x, dim, out);
            for (size_t s = 0; s < n; ++s) out[s] = polynomial(term, out[s]);
            break;
        case KernelKind::linear: inner_products(rows, stride, n, x, dim, out); break;
        case KernelKind::constant:
            for (size_t s = 0; s < n; ++s) out[s] = static_cast<Real>(within<Real>(term.gamma));
            break;
    }
}

// K(x, x)
template <class Real>
inline Real self_kernel(const LearnerParams& p, const Real* x) {
    Real total = Real(0);
    for (std::uint32_t t = 0; t < p.kernel_terms; ++t) {
        const KernelTerm& term = p.kernel[t];
        Real value = Real(1);
        if (term.kind == KernelKind::constant) {
            value = static_cast<Real>(within<Real>(term.gamma));
        } else if (term.kind == KernelKind::polynomial || term.kind == KernelKind::linear) {
            Real product;
            inner_products(x, 1, 1, x, p.dim, &product);
            value = term.kind == KernelKind::linear ? product : polynomial(term, product);
        }
        total += saturate(value);
    }
    return saturate(total);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
