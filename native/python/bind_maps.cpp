// Python's gaussian map.
#include "bindings.hpp"

namespace sf2el_python {
namespace {

void check_square(const Matrix& matrix, std::size_t n) {
    if (matrix.shape(0) != n || matrix.shape(1) != n)
        throw nb::value_error("These means and covariances do not fit together: their sizes differ.");
}

void check_length(const Vector& vector, std::size_t n) {
    if (vector.shape(0) != n)
        throw nb::value_error("These means and covariances do not fit together: their sizes differ.");
}

// What a space has shown: mean, deviation and covariance of its features, and rows beyond the overlap.
using Shown = std::tuple<Vector, Vector, Matrix, double>;
using Read = std::tuple<Vector, Vector>;  // mean and deviation of old features as they are read

std::tuple<Out<double>, Out<double>, double> gaussian_map(double rows, std::size_t new_dim, const Vector& mean,
                                                         const Matrix& covariance, const std::optional<Matrix>& old,
                                                         const std::optional<Shown>& shown, double divisor,
                                                         const std::optional<Read>& read,
                                                         const std::string& variant_name) {
    const std::size_t both = mean.shape(0);
    if (!(new_dim > 0 && new_dim < both)) throw nb::value_error("A map needs a feature of each space.");
    check_square(covariance, both);
    sf2el::MapKnown known;
    known.from = new_dim;
    known.to = both - new_dim;
    known.rows = rows;
    known.mean = mean.data();
    known.covariance = covariance.data();
    known.divisor = divisor;
    if (old) {
        check_square(*old, known.to);
        known.old_covariance = old->data();
    }
    if (shown) {
        const auto& [new_mean, deviation, together, later] = *shown;
        check_length(new_mean, new_dim);
        check_length(deviation, new_dim);
        check_square(together, new_dim);
        known.new_mean = new_mean.data();
        known.new_deviation = deviation.data();
        known.new_covariance = together.data();
        known.later = later;
    }
    if (read) {
        const auto& [read_mean, read_deviation] = *read;
        check_length(read_mean, known.to);
        check_length(read_deviation, known.to);
        known.read_mean = read_mean.data();
        known.read_deviation = read_deviation.data();
    }
    std::vector<double> matrix(known.to * (new_dim + 1)), center(new_dim);
    const double unexplained = variant(variant_name).map(known, matrix.data(), center.data());
    return {own(std::move(matrix), {known.to, new_dim + 1}), own(std::move(center), {new_dim}), unexplained};
}

}  // namespace

void bind_maps(nb::module_& m) {
    m.def("gaussian_map", &gaussian_map, "rows"_a, "new_dim"_a, "mean"_a, "covariance"_a, "old"_a.none(),
          "shown"_a.none(), "divisor"_a, "read"_a.none(), "variant"_a);
}

}  // namespace sf2el_python
