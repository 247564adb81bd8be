// Python's bank: several experts of one space, asked and taught together.
#include "bindings.hpp"

#include <cmath>

namespace sf2el_python {
namespace {

class Bank final : public RowBank {
public:
    // The experts stay Python's, and stay alive with the bank.
    // With a task, every expert's risk is that of its scores: experts of different kinds compare.
    Bank(const nb::list& experts, const std::string& task) {
        if (!task.empty()) task_ = task_of_word(task);
        for (nb::handle one : experts) objects_.push_back(nb::borrow(one));
        if (objects_.empty()) throw nb::value_error("A bank needs an expert.");
        for (const nb::object& object : objects_) {
            const Expert& one = nb::cast<const Expert&>(object);
            experts_.push_back(&one);
            if (one.dim() != dim()) throw nb::value_error("The experts of a bank share one space: their dim differs.");
            const bool several = one.outputs() > 1;
            if (task_ && several != (*task_ == sf2el::Task::classes))
                throw nb::value_error("The experts of a bank and its task differ in their outputs.");
            if (one.outputs() != experts_.front()->outputs())
                throw nb::value_error("The experts of a bank differ in their outputs.");
            outputs_ += one.outputs();
        }
    }

    std::size_t dim() const override { return experts_.front()->dim(); }
    std::size_t outputs() const override { return outputs_; }
    std::size_t size() const override { return experts_.size(); }

    void score_row(const double* x, double* scores) override { score(x, scores); }
    void check_row_label(double y, double weight) const override { check(y, weight); }
    void teach_row(const double* x, double y, double weight, double* scores, double* risks) override {
        teach(x, y, weight, false, false, scores, risks);
    }

    nb::list experts() const {
        nb::list out;
        for (const nb::object& object : objects_) out.append(object);
        return out;
    }

    std::size_t nbytes() const {
        std::size_t total = 0;
        for (const Expert* one : experts_) total += one->nbytes();
        return total;
    }

    void predict_into(const Vector& x, MutableVector scores) const {
        check_row(x, dim());
        check_same_length(outputs_, scores.shape(0));
        score(x.data(), scores.data());
    }

    Out<double> predict_many(const Matrix& x) const {
        check_rows(x, dim());
        const std::size_t n = x.shape(0), d = dim();
        std::vector<double> scores(n * outputs_);
        {
            nb::gil_scoped_release unlocked;
            for (std::size_t i = 0; i < n; ++i) score(x.data() + i * d, scores.data() + i * outputs_);
        }
        return own(std::move(scores), {n, outputs_});
    }

    void learn_into(const Vector& x, double y, double weight, bool late, MutableVector scores, MutableVector risks) {
        check_row(x, dim());
        check(y, weight);
        if (late) check_late_label(y);
        check_same_length(outputs_, scores.shape(0));
        check_same_length(experts_.size(), risks.shape(0));
        teach(x.data(), y, weight, late, false, scores.data(), risks.data());
    }

    std::pair<Out<double>, Out<double>> run(const Matrix& x, const Vector& y, std::optional<Vector> weights) {
        check_rows(x, dim());
        const std::size_t n = x.shape(0), d = dim(), e = experts_.size();
        check_same_length(n, y.shape(0));
        if (weights) check_same_length(n, weights->shape(0));
        const double* by = weights ? weights->data() : nullptr;
        for (std::size_t i = 0; i < n; ++i) check(y.data()[i], by ? by[i] : 1.0);
        std::vector<double> scores(n * outputs_), risks(n * e);
        {
            nb::gil_scoped_release unlocked;
            for (std::size_t i = 0; i < n; ++i)
                teach(x.data() + i * d, y.data()[i], by ? by[i] : 1.0, false, true, scores.data() + i * outputs_,
                      risks.data() + i * e);
        }
        return {own(std::move(scores), {n, outputs_}), own(std::move(risks), {n, e})};
    }

private:
    void check(double y, double weight) const {
        for (const Expert* one : experts_) one->check(y);
        check_weight(weight);
    }

    void score(const double* x, double* scores) const {
        for (const Expert* one : experts_) {
            one->expert().score(x, scores);
            scores += one->outputs();
        }
    }

    // An expert that learns nothing from the row is not asked for its scores either, unless `all`.
    void teach(const double* x, double y, double weight, bool late, bool all, double* scores, double* risks) {
        const bool labelled = y == y;
        for (const Expert* one : experts_) {
            sf2el::AnyExpert& expert = one->expert();
            const std::size_t k = expert.outputs();
            if (labelled || expert.uses_unlabelled()) {
                *risks = expert.teach(x, y, weight, late, scores);
                if (task_) *risks = labelled ? sf2el::risk_of(*task_, k, scores, y) : NAN;
            } else {
                *risks = NAN;
                if (all) expert.score(x, scores);
                else std::fill(scores, scores + k, NAN);
            }
            scores += k;
            ++risks;
        }
    }

    std::vector<nb::object> objects_;
    std::vector<const Expert*> experts_;
    std::size_t outputs_ = 0;
    std::optional<sf2el::Task> task_;
};

}  // namespace

void bind_bank(nb::module_& m) {
    nb::class_<Bank, Part>(m, "Bank")
        .def(nb::init<const nb::list&, const std::string&>(), "experts"_a, "task"_a = "")
        .def("predict_into", &Bank::predict_into, "x"_a, "scores"_a)
        .def("predict_many", &Bank::predict_many, "X"_a)
        .def("learn_into", &Bank::learn_into, "x"_a, "y"_a, "weight"_a, "late"_a, "scores"_a, "risks"_a)
        .def("run", &Bank::run, "X"_a, "y"_a, "weights"_a = nb::none())
        .def_prop_ro("dim", &Bank::dim)
        .def_prop_ro("outputs", &Bank::outputs)
        .def_prop_ro("experts", &Bank::experts)
        .def_prop_ro("nbytes", &Bank::nbytes);
}

}  // namespace sf2el_python
