// What the files that know Python share: arrays in and out, and the checks of what comes in.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/core.hpp"
#include "core/dispatch.hpp"
#include "stable_abi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sf2el_python {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

constexpr double largest_feature = 1e100;

// ---- arrays out

template <class T>
Out<T> own(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto* heap = new std::vector<T>(std::move(values));
    nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(heap->data(), shape, owner);
}

inline Out<double> copy_out(const double* from, std::size_t n) {
    return own(std::vector<double>(from, from + n), {n});
}

// ---- input checks; each runs before anything is changed

inline void check_width(std::size_t width, std::size_t dim) {
    if (width != dim)
        throw nb::value_error(("This row has " + std::to_string(width) + " values, but this learner's space has " +
                               std::to_string(dim) + " features; pass rows of that width.")
                                  .c_str());
}

inline void check_finite(const double* values, std::size_t n) {
    // A sum of flags, not an early exit: the loop vectorises.
    std::size_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) bad += !(values[i] >= -largest_feature && values[i] <= largest_feature);
    if (bad)
        throw nb::value_error(
            "An array row holds NaN, infinity or a value beyond 1e100; clean or clip it before passing it on.");
}

// For rows in which NaN stands for a value that was not observed.
inline void check_known(const double* values, std::size_t n) {
    std::size_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) bad += values[i] < -largest_feature || values[i] > largest_feature;
    if (bad)
        throw nb::value_error(
            "An array row holds infinity or a value beyond 1e100; clean or clip it before passing it on.");
}

inline void check_row(const Vector& x, std::size_t dim) {
    check_width(x.shape(0), dim);
    check_finite(x.data(), dim);
}

inline void check_rows(const Matrix& x, std::size_t dim) {
    check_width(x.shape(1), dim);
    check_finite(x.data(), x.shape(0) * dim);
}

inline void check_label(double y) {
    if (!(y != y || (y >= -largest_feature && y <= largest_feature)))
        throw nb::value_error("A label is infinite or beyond 1e100; use NaN for an unlabelled row.");
}

inline void check_same_length(std::size_t a, std::size_t b) {
    if (a != b)
        throw nb::value_error(("There are " + std::to_string(a) + " rows but " + std::to_string(b) +
                               " entries beside them; pass one for each row.")
                                  .c_str());
}

// ---- words to codes

template <class T>
T choose(const std::string& word, std::initializer_list<std::pair<const char*, T>> table) {
    for (const auto& [name, value] : table)
        if (word == name) return value;
    std::string known;
    for (const auto& [name, value] : table) known += (known.empty() ? "" : ", ") + std::string(name);
    throw nb::value_error(("Unknown setting " + word + "; choose from " + known + ".").c_str());
}

inline sf2el::Task task_of_word(const std::string& word) {
    using T = sf2el::Task;
    return choose<T>(word, {{"binary", T::binary},
                            {"classes", T::classes},
                            {"regression_squared", T::squared},
                            {"regression_absolute", T::absolute}});
}

inline void check_late_label(double y) {
    check_label(y);
    if (y != y) throw nb::value_error("A late label cannot be NaN.");
}

inline void check_weight(double weight) {
    if (!(weight > 0.0 && weight <= largest_feature))
        throw nb::value_error("A weight must be above 0 and at most 1e100.");
}

// The compiled variant of the core by its name: "auto", "base" or "wide".
const sf2el::Variant& variant(const std::string& name);

// Python's side of an expert: what a bank can be made of.
class Expert {
public:
    virtual ~Expert() = default;
    virtual sf2el::AnyExpert& expert() const = 0;

    std::size_t dim() const { return expert().dim(); }
    std::size_t outputs() const { return expert().outputs(); }
    bool uses_unlabelled() const { return expert().uses_unlabelled(); }
    std::size_t nbytes() const { return expert().state_bytes(); }
    std::size_t scratch_nbytes() const { return expert().scratch_bytes(); }

    void check(double y) const {
        check_label(y);
        if (!expert().label_fits(y))
            throw nb::value_error(("A label must be a class from 0 to " + std::to_string(outputs() - 1) +
                                   ", or NaN for an unlabelled row.")
                                      .c_str());
    }
};

// Each adds a group of classes to the module.
void bind_state(nb::module_& m);
void bind_moments(nb::module_& m);
void bind_maps(nb::module_& m);
void bind_experts(nb::module_& m);
void bind_mixture(nb::module_& m);

}  // namespace sf2el_python
