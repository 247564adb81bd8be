// Python's moments and affine map.
#include "bindings.hpp"

namespace sf2el_python {
namespace {

bool is_single(const std::string& precision) {
    return choose<bool>(precision, {{"float64", false}, {"float32", true}});
}

class Moments final : public RowMoments {
public:
    Moments(std::size_t dim, const std::string& precision, bool fourths)
        : dim_(dim), single_(is_single(precision)), keeps_fourths_(fourths) {
        block_.resize(nbytes() / sizeof(double));
    }

    void observe(const Vector& x) {
        check_row(x, dim_);
        observe_row(x.data());
    }

    void observe_many(const Matrix& x) {
        check_rows(x, dim_);
        for (std::size_t i = 0; i < x.shape(0); ++i) observe_row(x.data() + i * dim_);
    }

    void observe_row(const double* x) override {
        thread_local std::vector<double> scratch;
        if (scratch.size() < dim_) scratch.resize(dim_);
        with([&](auto moments) { moments.observe(x, scratch.data()); });
    }

    void fill(const Vector& row, MutableVector view, bool keep) {
        check_width(row.shape(0), dim_);
        check_known(row.data(), dim_);
        check_width(view.shape(0), dim_);
        check_finite(view.data(), dim_);
        fill_one(row.data(), view.data(), keep);
    }

    void fill_row(const double* row, double* view) override { fill_one(row, view, false); }

    void fill_one(const double* row, double* view, bool keep) {
        thread_local std::vector<double> scratch;
        const std::size_t needed = sf2el::Moments<double>::fill_reals(dim_);
        if (scratch.size() < needed) scratch.resize(needed);
        with([&](auto moments) { moments.fill(row, view, scratch.data(), keep); });
    }

    double count() const { return block_[0]; }
    Out<double> mean() const { return copy_out(block_.data() + 1, dim_); }

    Out<double> matrix() {
        std::vector<double> dense(dim_ * dim_);
        with([&](auto moments) {
            for (std::size_t i = 0; i < dim_; ++i)
                for (std::size_t j = 0; j < dim_; ++j) dense[i * dim_ + j] = moments.covariance(i, j);
        });
        return own(std::move(dense), {dim_, dim_});
    }

    Out<double> fourths() {
        std::vector<double> out;
        if (keeps_fourths_) with([&](auto moments) { out.assign(moments.fourths(), moments.fourths() + dim_); });
        return copy_out(out.data(), out.size());
    }

    // Count, means, sums, fourth powers: all as doubles, whatever they are kept in.
    Out<double> state() {
        std::vector<double> out(block_.begin(), block_.begin() + 1 + dim_);
        with([&](auto moments) { out.insert(out.end(), moments.sums(), moments.sums() + sums()); });
        return copy_out(out.data(), out.size());
    }

    void set_state(const Vector& in) {
        check_same_length(1 + dim_ + sums(), in.shape(0));
        std::copy(in.data(), in.data() + 1 + dim_, block_.begin());
        with([&](auto moments) { std::copy(in.data() + 1 + dim_, in.data() + in.shape(0), moments.sums()); });
    }

    std::size_t nbytes() const {
        return single_ ? sf2el::Moments<float>::bytes(dim_, keeps_fourths_)
                       : sf2el::Moments<double>::bytes(dim_, keeps_fourths_);
    }

private:
    // How many Reals are kept in a row: sums, and fourth powers behind them.
    std::size_t sums() const { return sf2el::packed_size(dim_) + (keeps_fourths_ ? dim_ : 0); }

    template <class F>
    void with(F f) {
        if (single_) f(sf2el::Moments<float>(dim_, block_.data(), keeps_fourths_, sf2el::Moments<float>::Adopt{}));
        else f(sf2el::Moments<double>(dim_, block_.data(), keeps_fourths_, sf2el::Moments<double>::Adopt{}));
    }

    std::size_t dim_;
    bool single_, keeps_fourths_;
    std::vector<double> block_;
};

class AffineMap final : public RowMap {
public:
    AffineMap(std::size_t from, std::size_t to, double limit, const std::string& precision, std::size_t rank)
        : from_(from), to_(to), rank_(rank), limit_(limit), kept_(kept_in(precision)) {
        if (rank > std::min(from, to)) throw nb::value_error("A map has no higher rank than it has features.");
        block_.resize(nbytes() / sizeof(double));
    }

    void set(const Matrix& matrix, const Vector& center) {
        if (rank_ > 0 || matrix.shape(0) != to_ || matrix.shape(1) != from_ + 1 || center.shape(0) != from_)
            throw nb::value_error("This matrix does not fit this map: its sizes differ.");
        check_finite(matrix.data(), to_ * (from_ + 1));
        check_finite(center.data(), from_);
        with([&](auto map) {
            std::copy(center.data(), center.data() + from_, map.center());
            for (std::size_t j = 0; j < to_; ++j) {
                const double* row = matrix.data() + j * (from_ + 1);
                assign(map, j * from_, row, from_);
                map.offset()[j] = row[from_];
            }
        });
    }

    void set_factors(const Matrix& factors, const Vector& offset, const Vector& center) {
        if (rank_ == 0 || factors.shape(0) != rank_ || factors.shape(1) != from_ + to_ || offset.shape(0) != to_ ||
            center.shape(0) != from_)
            throw nb::value_error("These factors do not fit this map: their sizes differ.");
        check_finite(factors.data(), rank_ * (from_ + to_));
        check_finite(offset.data(), to_);
        check_finite(center.data(), from_);
        with([&](auto map) {
            std::copy(center.data(), center.data() + from_, map.center());
            std::copy(offset.data(), offset.data() + to_, map.offset());
            assign(map, 0, factors.data(), rank_ * (from_ + to_));
        });
    }

    Out<double> matrix() {
        std::vector<double> out(to_ * (from_ + 1));
        with([&](auto map) {
            for (std::size_t j = 0; j < to_; ++j) {
                for (std::size_t i = 0; i < from_; ++i) out[j * (from_ + 1) + i] = map.at(j, i);
                out[j * (from_ + 1) + from_] = map.offset()[j];
            }
        });
        return own(std::move(out), {to_, from_ + 1});
    }

    std::size_t rank() const { return rank_; }

    Out<double> factors() {
        std::vector<double> out(rank_ * (from_ + to_));
        with([&](auto map) {
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = double(map.linear()[i]);
        });
        return own(std::move(out), {rank_, from_ + to_});
    }

    std::size_t from() const override { return from_; }
    std::size_t to() const override { return to_; }
    void map_row(const double* z, double* x) override {
        with([&](auto map) { map.apply(z, x); });
    }

    Out<double> center() const { return copy_out(block_.data(), from_); }

    void apply_into(const Vector& z, MutableVector x) {
        check_row(z, from_);
        check_width(x.shape(0), to_);
        with([&](auto map) { map.apply(z.data(), x.data()); });
    }

    Out<double> apply(const Matrix& z) {
        check_rows(z, from_);
        const std::size_t n = z.shape(0);
        std::vector<double> x(n * to_);
        with([&](auto map) {
            for (std::size_t i = 0; i < n; ++i) map.apply(z.data() + i * from_, x.data() + i * to_);
        });
        return own(std::move(x), {n, to_});
    }

    std::size_t nbytes() const {
        switch (kept_) {
            case Kept::brief: return sf2el::AffineMap<sf2el::Brief>::bytes(from_, to_, rank_);
            case Kept::single: return sf2el::AffineMap<float>::bytes(from_, to_, rank_);
            default: return sf2el::AffineMap<double>::bytes(from_, to_, rank_);
        }
    }

private:
    enum class Kept { brief, single, full };

    static Kept kept_in(const std::string& precision) {
        return choose<Kept>(precision,
                            {{"float64", Kept::full}, {"float32", Kept::single}, {"bfloat16", Kept::brief}});
    }

    template <class F>
    void with(F f) {
        switch (kept_) {
            case Kept::brief: return with_as<sf2el::AffineMap<sf2el::Brief>>(f);
            case Kept::single: return with_as<sf2el::AffineMap<float>>(f);
            default: return with_as<sf2el::AffineMap<double>>(f);
        }
    }

    template <class Map, class F>
    void with_as(F f) {
        f(Map(from_, to_, rank_, limit_, block_.data(), typename Map::Adopt{}));
    }

    template <class Map>
    static void assign(Map& map, std::size_t at, const double* values, std::size_t count) {
        using Real = std::remove_reference_t<decltype(*map.linear())>;
        for (std::size_t i = 0; i < count; ++i) map.linear()[at + i] = Real(values[i]);
    }

    std::size_t from_, to_, rank_;
    double limit_;
    Kept kept_;
    std::vector<double> block_;
};

}  // namespace

void bind_moments(nb::module_& m) {
    nb::class_<Moments, Part>(m, "Moments")
        .def(nb::init<std::size_t, const std::string&, bool>(), "dim"_a, "precision"_a = "float64", "fourths"_a = false)
        .def("observe", &Moments::observe, "x"_a)
        .def("observe_many", &Moments::observe_many, "X"_a)
        .def("fill", &Moments::fill, "row"_a, "view"_a, "keep"_a = false)
        .def_prop_ro("fourths", &Moments::fourths, nb::rv_policy::automatic)
        .def("matrix", &Moments::matrix)
        .def("state", &Moments::state)
        .def("set_state", &Moments::set_state, "state"_a)
        .def_prop_ro("count", &Moments::count)
        .def_prop_ro("mean", &Moments::mean, nb::rv_policy::automatic)
        .def_prop_ro("nbytes", &Moments::nbytes);

    nb::class_<AffineMap, Part>(m, "AffineMap")
        .def(nb::init<std::size_t, std::size_t, double, const std::string&, std::size_t>(), "new_dim"_a, "old_dim"_a,
             "limit"_a = 0.0, "precision"_a = "float64", "rank"_a = 0)
        .def("set", &AffineMap::set, "matrix"_a, "center"_a)
        .def("set_factors", &AffineMap::set_factors, "factors"_a, "offset"_a, "center"_a)
        .def("apply", &AffineMap::apply, "Z"_a)
        .def("apply_into", &AffineMap::apply_into, "z"_a, "x"_a)
        .def_prop_ro("matrix", &AffineMap::matrix, nb::rv_policy::automatic)
        .def_prop_ro("rank", &AffineMap::rank)
        .def_prop_ro("factors", &AffineMap::factors, nb::rv_policy::automatic)
        .def_prop_ro("center", &AffineMap::center, nb::rv_policy::automatic)
        .def_prop_ro("nbytes", &AffineMap::nbytes);
}

}  // namespace sf2el_python
