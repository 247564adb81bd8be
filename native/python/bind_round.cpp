// Python's round: a dict row predicted or learned in one call.
#include <algorithm>

#include "bindings.hpp"

namespace sf2el_python {
namespace {

// The parts of a stage as one row meets them: scaling, the experts of the current
// space, the map to the space before and its experts, and who is followed. Parts
// stay Python's; a part that is not there is None.
class Round {
public:
    Round(const nb::tuple& names, const nb::object& scaler, const nb::object& moments, const nb::object& bank,
          const nb::object& map, const nb::object& past, const nb::object& mixer, bool raw)
        : names_(names), kept_{scaler, moments, bank, map, past, mixer}, scaler_(part<RowScaler>(scaler)),
          moments_(part<RowMoments>(moments)), bank_(part<RowBank>(bank)), map_(part<RowMap>(map)),
          past_(part<RowBank>(past)), mixer_(part<RowMixer>(mixer)), raw_(raw) {
        const std::size_t dim = nb::len(names);
        const bool fits = bank_ && mixer_ && bank_->dim() == dim && (!scaler_ || scaler_->dim() == dim) &&
                          !map_ == !past_ && (!map_ || (map_->from() <= dim && map_->to() == past_->dim())) &&
                          mixer_->experts() == bank_->outputs() + (past_ ? past_->outputs() : 0);
        if (!fits) throw nb::value_error("These parts make no round.");
        row_.resize(dim);
    }

    // The combined score, or None for a row that has other features.
    nb::object predict(const nb::dict& row) {
        const std::ptrdiff_t gaps = gather_row(row, names_, row_.data());
        if (gaps < 0) return nb::none();
        Working& w = working();
        const double* view = look(w, gaps, false);
        double* own = w.scores.data();
        if (past_) {
            past_->score_row(w.recovered.data(), own);
            own += past_->outputs();
        }
        bank_->score_row(view, own);
        return nb::float_(mixer_->mix_row(w.scores.data()));
    }

    // The names of features that the row does not have, or None where it was not learned: it has others.
    nb::object learn(const nb::dict& row, double y, double weight) {
        const std::ptrdiff_t gaps = gather_row(row, names_, row_.data());
        if (gaps < 0) return nb::none();
        bank_->check_row_label(y, weight);
        nb::tuple missing = names_of_gaps(gaps);  // before anything is learned: it may find no memory
        Working& w = working();
        const double* view = look(w, gaps, true);
        double *own = w.scores.data(), *risks = w.risks.data();
        if (past_) {
            past_->teach_row(w.recovered.data(), y, weight, own, risks);
            own += past_->outputs();
            risks += past_->size();
        }
        bank_->teach_row(view, y, weight, own, risks);
        mixer_->follow_row(w.scores.data(), w.risks.data(), y, weight);
        return missing;
    }

private:
    template <class T>
    static T* part(const nb::object& object) {
        if (object.is_none()) return nullptr;
        T* found = dynamic_cast<T*>(&nb::cast<Part&>(object));
        if (!found) throw nb::value_error("A part of a round is of another kind.");
        return found;
    }

    // What a row becomes on its way; thousands of models in a thread need one. The row itself is the round's
    // own: comparing names can run Python code, and that another round.
    struct Working {
        std::vector<double> view, recovered, scores, risks;
    };

    Working& working() const {
        thread_local Working w;
        const auto grow = [](std::vector<double>& values, std::size_t size) {
            if (values.size() < size) values.resize(size);
        };
        grow(w.view, bank_->dim());
        if (past_) grow(w.recovered, past_->dim());
        grow(w.scores, mixer_->experts());
        grow(w.risks, mixer_->experts());
        return w;
    }

    nb::tuple names_of_gaps(std::ptrdiff_t gaps) const {
        if (gaps == 0) return nb::tuple();
        nb::list found;
        for (std::size_t i = 0; i < row_.size(); ++i)
            if (row_[i] != row_[i]) found.append(names_[i]);
        return nb::tuple(found);
    }

    // The row as the experts see it, in both spaces; gaps have their expected value.
    const double* look(Working& w, std::ptrdiff_t gaps, bool keep) {
        const double* view = row_.data();
        if (scaler_ || gaps > 0) {
            if (scaler_) scaler_->scale_row(row_.data(), w.view.data(), keep);
            else std::transform(row_.begin(), row_.end(), w.view.begin(), [](double x) { return x == x ? x : 0.0; });
            view = w.view.data();
        }
        if (gaps > 0 && moments_) moments_->fill_row(row_.data(), w.view.data());
        if (keep && moments_ && 2 * static_cast<std::size_t>(gaps) <= row_.size()) moments_->observe_row(view);
        if (!map_) return view;
        if (gaps > 0 && raw_) {
            if (scaler_) scaler_->unscale_gaps_row(row_.data(), view);
            else row_.assign(view, view + row_.size());
        }
        map_->map_row(raw_ ? row_.data() : view, w.recovered.data());
        return view;
    }

    nb::tuple names_;
    std::vector<nb::object> kept_;
    RowScaler* scaler_;
    RowMoments* moments_;
    RowBank* bank_;
    RowMap* map_;
    RowBank* past_;
    RowMixer* mixer_;
    bool raw_;
    std::vector<double> row_;
};

}  // namespace

void bind_round(nb::module_& m) {
    nb::class_<Round>(m, "Round")
        .def(nb::init<const nb::tuple&, const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                      const nb::object&, const nb::object&, bool>(),
             "names"_a, "scaler"_a.none(), "moments"_a.none(), "bank"_a, "map"_a.none(), "past"_a.none(), "mixer"_a,
             "raw"_a)
        .def("predict", &Round::predict, "row"_a)
        .def("learn", &Round::learn, "row"_a, "y"_a, "weight"_a);
}

}  // namespace sf2el_python
