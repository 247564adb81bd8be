// Python's moments.
#include "bindings.hpp"

namespace sf2el_python {
namespace {

class Moments {
public:
    Moments(std::size_t dim, const std::string& precision)
        : dim_(dim), single_(choose<bool>(precision, {{"float64", false}, {"float32", true}})) {
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

    void fill(const Vector& row, MutableVector view, bool keep) {
        check_width(row.shape(0), dim_);
        check_known(row.data(), dim_);
        check_width(view.shape(0), dim_);
        check_finite(view.data(), dim_);
        std::vector<double> scratch(sf2el::Moments<double>::fill_reals(dim_));
        with([&](auto moments) { moments.fill(row.data(), view.data(), scratch.data(), keep); });
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

    // Count, means and sums: all as doubles, whatever they are kept in.
    Out<double> state() {
        std::vector<double> out(block_.begin(), block_.begin() + 1 + dim_);
        with([&](auto moments) { out.insert(out.end(), moments.sums(), moments.sums() + sf2el::packed_size(dim_)); });
        return copy_out(out.data(), out.size());
    }

    void set_state(const Vector& in) {
        check_same_length(1 + dim_ + sf2el::packed_size(dim_), in.shape(0));
        std::copy(in.data(), in.data() + 1 + dim_, block_.begin());
        with([&](auto moments) { std::copy(in.data() + 1 + dim_, in.data() + in.shape(0), moments.sums()); });
    }

    std::size_t nbytes() const {
        return single_ ? sf2el::Moments<float>::bytes(dim_) : sf2el::Moments<double>::bytes(dim_);
    }

private:
    void observe_row(const double* x) {
        thread_local std::vector<double> scratch;
        if (scratch.size() < dim_) scratch.resize(dim_);
        with([&](auto moments) { moments.observe(x, scratch.data()); });
    }

    template <class F>
    void with(F f) {
        if (single_) f(sf2el::Moments<float>(dim_, block_.data(), sf2el::Moments<float>::Adopt{}, dim_));
        else f(sf2el::Moments<double>(dim_, block_.data(), sf2el::Moments<double>::Adopt{}, dim_));
    }

    std::size_t dim_;
    bool single_;
    std::vector<double> block_;
};

}  // namespace

void bind_moments(nb::module_& m) {
    nb::class_<Moments>(m, "Moments")
        .def(nb::init<std::size_t, const std::string&>(), "dim"_a, "precision"_a = "float64")
        .def("observe", &Moments::observe, "x"_a)
        .def("observe_many", &Moments::observe_many, "X"_a)
        .def("fill", &Moments::fill, "row"_a, "view"_a, "keep"_a = false)
        .def("matrix", &Moments::matrix)
        .def("state", &Moments::state)
        .def("set_state", &Moments::set_state, "state"_a)
        .def_prop_ro("count", &Moments::count)
        .def_prop_ro("mean", &Moments::mean, nb::rv_policy::automatic)
        .def_prop_ro("nbytes", &Moments::nbytes);
}

}  // namespace sf2el_python
