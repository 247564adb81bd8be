// Python's gaussian map, its factors and whitening.
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
                                                         bool whole, const std::optional<Read>& read,
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
    known.whole = whole;
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

Out<double> factors(const Matrix& matrix, const Vector& deviation, const Matrix& correlation, std::size_t rank,
                    const std::string& variant_name) {
    sf2el::MapToFactor map;
    map.to = matrix.shape(0);
    map.from = matrix.shape(1);
    map.rank = rank;
    check_length(deviation, map.from);
    check_square(correlation, map.from);
    map.matrix = matrix.data();
    map.deviation = deviation.data();
    map.correlation = correlation.data();
    std::vector<double> out(rank * (map.from + map.to));
    variant(variant_name).factors(map, out.data());
    return own(std::move(out), {rank, map.from + map.to});
}

Out<double> whitening(const Matrix& covariance, double rows, double least_spread, const std::string& variant_name) {
    const std::size_t dim = covariance.shape(0);
    check_square(covariance, dim);
    std::vector<double> out(dim * dim);
    variant(variant_name).whitening(covariance.data(), dim, rows, least_spread, out.data());
    return own(std::move(out), {dim, dim});
}

}  // namespace

void bind_maps(nb::module_& m) {
    m.def("gaussian_map", &gaussian_map, "rows"_a, "new_dim"_a, "mean"_a, "covariance"_a, "old"_a.none(),
          "shown"_a.none(), "divisor"_a, "whole"_a, "read"_a.none(), "variant"_a);
    m.def("factors", &factors, "matrix"_a, "deviation"_a, "correlation"_a, "rank"_a, "variant"_a);
    m.def("whitening", &whitening, "covariance"_a, "rows"_a, "least_spread"_a, "variant"_a);
}

}  // namespace sf2el_python
