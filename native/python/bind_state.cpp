// Python's model state: dict rows and tables in, and the transitions that a policy and a plan of bytes ask for.
#include <atomic>

#include "bindings.hpp"
#include "state/file.hpp"

namespace sf2el {

const Variant& ModelState::variant() {
    static const Variant& chosen = sf2el_python::variant([] {
        const char* name = std::getenv("SF2EL_VARIANT");
        return std::string(name ? name : "auto");
    }());
    return chosen;
}

}  // namespace sf2el

namespace sf2el_python {
namespace {

using sf2el::ExpertCode;
using sf2el::Learned;
using sf2el::ModelState;
using sf2el::Transitions;
using CodeTuple = std::tuple<int, int, int, int, std::uint32_t>;

constexpr std::size_t longest_number = 60;    // digits of a whole number that names a feature
constexpr std::size_t longest_text = 0xfffe;  // bytes of a text that does: a file counts them, and a mark, in two bytes
constexpr std::size_t most_room = 1 << 20, most_outputs = 1024;

nb::object& reader() {
    static nb::object* function = new nb::object();  // never destroyed: Python may be gone by then
    return *function;
}

CodeTuple tuple_of(const ExpertCode& code) { return {code.kind, int(code.view), code.rate, code.form, code.size}; }

ExpertCode code_of(const CodeTuple& code) {
    const auto [kind, view, rate, form, size] = code;
    const ExpertCode out{std::uint8_t(kind), sf2el::View(std::uint8_t(view)), std::uint8_t(rate), std::uint8_t(form), size};
    if (tuple_of(out) != code || !sf2el::is_known(out)) throw nb::value_error("There is no such expert.");
    return out;
}

sf2el::Map::Form form_of(int form) {
    if (form < 1 || form > int(sf2el::Map::Form::full)) throw nb::value_error("A map is kept in the form 1, 2 or 3.");
    return sf2el::Map::Form(form);
}

// A feature's name as plain text or a plain whole number: looking these up runs no code of the caller's. Null: it is
// neither, or, unless `any`, only its own code can say.
nb::object plain_name(PyObject* key, bool any) {
    PyObject* plain = nullptr;
    if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) return nb::borrow(key);
    if (PyBool_Check(key)) return {};
    if (PyUnicode_Check(key)) plain = PyUnicode_FromObject(key);
    else if (PyLong_Check(key) || (any && PyIndex_Check(key))) plain = PyNumber_Index(key);
    if (!plain) PyErr_Clear();
    return nb::steal(plain);
}

// How a plain name is kept: 's' and text, or 'i' and digits. Empty: it cannot be kept.
std::string text_of(nb::handle name) {
    const bool is_text = PyUnicode_Check(name.ptr());
    const nb::object shown = is_text ? nb::borrow(name) : nb::steal(PyObject_Str(name.ptr()));
    Py_ssize_t size = 0;
    const char* text = shown.is_valid() ? PyUnicode_AsUTF8AndSize(shown.ptr(), &size) : nullptr;
    if (!text) {
        PyErr_Clear();
        return {};
    }
    if (std::size_t(size) > (is_text ? longest_text : longest_number + (text[0] == '-'))) return {};
    return (is_text ? "s" : "i") + std::string(text, std::size_t(size));
}

// The name of such a text; None where there is none. Null, with Python's error: it is no name.
nb::object name_of(const std::string& text) {
    if (text.empty()) return nb::none();
    if (text[0] == 's') return nb::steal(PyUnicode_DecodeUTF8(text.data() + 1, Py_ssize_t(text.size() - 1), nullptr));
    return nb::steal(PyLong_FromString(text.c_str() + 1, nullptr, 10));
}

// Whole numbers in their order, then texts in theirs.
bool comes_before(const std::string& a, const std::string& b) {
    if (a[0] != b[0]) return a[0] == 'i';
    if (a[0] == 's') return a < b;
    const bool minus = a[1] == '-';
    if (minus != (b[1] == '-')) return minus;
    const bool less = a.size() != b.size() ? a.size() < b.size() : a < b;
    return minus ? (a != b && !less) : less;
}

// A feature of a row that the state does not know.
struct Stranger {
    std::string text;
    double value;
    std::size_t column;
};

// One thread at a time uses a state: sf2el.model.engine sees to that. Whatever runs without Python's lock leaves
// names_ alone.
// One thread at a time: entering a model that is in use raises an error of the caller's.
class Guard {
public:
    Guard(nb::object error, std::string text) : owner_(std::make_shared<Owner>()) {
        owner_->error = std::move(error);
        owner_->text = std::move(text);
    }

    // A thread may enter again: an interrupt can come between a call and its leaving.
    void enter() const {
        const unsigned long me = PyThread_get_thread_ident();
        unsigned long nobody_yet = 0;
        if (!owner_->thread.compare_exchange_strong(nobody_yet, me) && nobody_yet != me) refuse();
    }

    void leave(nb::handle, nb::handle, nb::handle) const { owner_->thread = 0; }

    // For what only reads, and is over before another thread can run.
    void check() const {
        const unsigned long other = owner_->thread;
        if (other != 0 && other != PyThread_get_thread_ident()) refuse();
    }

private:
    struct Owner {
        std::atomic<unsigned long> thread{0};
        nb::object error;
        std::string text;
    };

    void refuse() const {
        PyErr_SetString(owner_->error.ptr(), owner_->text.c_str());
        throw nb::python_error();
    }

    std::shared_ptr<Owner> owner_;
};

class State {
public:
    State(const std::string& task, bool scaled, bool related, bool precise, double forget, std::uint64_t seed) {
        auto& s = state_.settings;
        s.task = task == "classes" ? sf2el::Task::binary : task_of_word(task);
        s.scaled = scaled;
        s.related = related;
        s.precise = precise;
        s.forget = forget;
        s.seed = seed;
    }

    State() = default;
    State(const State& other) : guard_(other.guard_), state_(other.state_), names_(nb::steal<nb::dict>(PyDict_Copy(other.names_.ptr()))) {
        if (!names_.is_valid()) throw nb::python_error();
    }
    State(State&&) = default;

    State copy() const { return State(*this); }

    void make_paper(const Expert& learner, bool restart, bool train_beside, double eta, double map_ridge, bool map_intercept) {
        if (!state_.empty()) throw nb::value_error("A state that has learned rows keeps its algorithm.");
        auto& s = state_.settings;
        s.paper = true;
        s.learner = dynamic_cast<sf2el::AnyLearner&>(learner.expert()).params();
        s.restart = restart;
        s.train_beside = train_beside;
        s.eta = eta;
        s.map_ridge = map_ridge;
        s.map_intercept = map_intercept;
    }

    // ---- rows

    void guarded_by(const Guard& guard) { guard_ = guard; }

    nb::object predict(nb::handle x) {
        if (guard_) guard_->check();
        const Cleared cleared(*this);
        read(x);
        std::vector<double> out(state_.outputs);
        if (!state_.predict(row_, out.data())) return nb::none();
        if (out.size() == 1) return nb::float_(out[0]);
        nb::list list;
        for (const double value : out) list.append(value);
        return list;
    }

    // Scores, weights and which experts are awake; None where nothing of the row is known.
    nb::object explain(nb::handle x) {
        const Cleared cleared(*this);
        read(x);
        std::vector<double> scores, weights;
        std::vector<char> awake;
        if (!state_.explain(row_, scores, weights, awake)) return nb::none();
        const std::size_t n = weights.size(), k = state_.outputs;
        scores.resize(n * k);
        std::vector<bool> up(awake.begin(), awake.begin() + std::ptrdiff_t(n));
        return nb::make_tuple(own(std::move(scores), {n, k}), own(std::move(weights), {n}), up);
    }

    // 0: learned; 1: learned, and the plan wants to look again; 2: not touched, since its features ask for a decision.
    // With a holder, holder[key] = value in the same step, so that no interrupt comes between a row and its count.
    int learn(nb::handle x, double y, double weight, nb::handle holder, nb::handle key, nb::handle value) {
        const Cleared cleared(*this);
        read(x);
        check(y);
        check_weight(weight);
        if (crowded()) return int(Learned::change);
        const Learned code = state_.learn(row_, !strangers_.empty(), y, weight, nullptr);
        if (code == Learned::change) return int(code);
        after(y, weight);
        if (!holder.is_none() && PyObject_SetItem(holder.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
        return int(code);
    }

    // What a prediction for a row rests on: weight of recovered experts, number of the space.
    std::pair<double, std::uint64_t> whose(nb::handle x) {
        const Cleared cleared(*this);
        read(x);
        const sf2el::Whose found = state_.whose(row_);
        return {found.recovered, found.space};
    }

    bool learn_late(nb::handle x, double y, double weight) {
        const Cleared cleared(*this);
        read(x);
        check_late_label(y);
        check(y);
        check_weight(weight);
        return state_.learn_late(row_, y, weight);
    }

    bool knows(nb::handle x) {
        const Cleared cleared(*this);
        read(x);
        for (const std::uint32_t id : row_.present)
            if (state_.features[id].spaces > 0) return true;
        return false;
    }

    // Bytes that a row's new features would take beyond those that there are; 0: there is room.
    std::size_t crowd_bytes(nb::handle x) {
        const Cleared cleared(*this);
        read(x);
        return crowded() ? stranger_bytes() : 0;
    }

    // A row that may change the spaces, in three steps: its features are counted, the caller decides, it is learned.
    // Returns the ids of its features.
    std::vector<std::uint32_t> begin(nb::handle x) {
        Cleared cleared(*this);
        read(x);
        state_.attend(row_);
        note_strangers();
        const std::vector<std::uint32_t> present = row_.present;
        cleared.keep();
        return present;
    }

    int finish(double y, double weight) {
        const Cleared cleared(*this);
        check(y);
        check_weight(weight);
        const Learned code = state_.learn(row_, false, y, weight, nullptr, true);
        Transitions(state_).wait(row_, y, weight, state_.candidate_room);
        return int(code);
    }

    // ---- tables

    // Learns rows until one asks for a decision. Returns how many were learned, the last code, what was predicted
    // before each, and by how much recovered experts weighed (both empty unless wanted).
    nb::tuple run(const Matrix& rows, const nb::list& names, const Vector& y, std::optional<Vector> weights, bool wanted) {
        const Cleared cleared(*this);
        std::vector<std::string> texts;
        std::vector<std::uint32_t> ids = columns(names, texts);  // first: names may run code
        const std::size_t n = rows.shape(0), width = rows.shape(1), k = state_.outputs;
        check_width(ids.size(), width);
        check_same_length(n, y.shape(0));
        if (weights) check_same_length(n, weights->shape(0));
        check_known(rows.data(), n * width);
        // A copy: a class is where a score is read, and another thread may write to the array.
        const std::vector<double> labels(y.data(), y.data() + n);
        for (std::size_t i = 0; i < n; ++i) {
            check(labels[i]);
            if (weights) check_weight(weights->data()[i]);
        }
        std::vector<double> said(wanted ? n * k : 0), shares(wanted ? n : 0);
        std::vector<std::int64_t> spaces(wanted ? n : 0);
        Learned code = Learned::yes;
        std::size_t i = 0;
        try {
            const nb::gil_scoped_release unlocked;
            for (; i < n && code == Learned::yes; ++i) {
                const double* values = rows.data() + i * width;
                strangers_.clear();
                for (std::size_t j = 0; j < width; ++j) {
                    if (values[j] != values[j]) continue;
                    if (ids[j] != sf2el::nobody) row_.set(ids[j], values[j]);
                    else strangers_.push_back({texts[j], values[j], j});
                }
                if (crowded()) {
                    code = Learned::change;
                    break;
                }
                const double weight = weights ? weights->data()[i] : 1.0;
                sf2el::Whose whose;
                code = state_.learn(row_, !strangers_.empty(), labels[i], weight, wanted ? said.data() + i * k : nullptr, false,
                                    wanted ? &whose : nullptr);
                if (code == Learned::change) break;
                if (wanted) {
                    shares[i] = whose.recovered;
                    spaces[i] = std::int64_t(whose.space);
                }
                count_strangers(ids.data());
                if (!state_.candidates.empty() || !state_.waiting.empty())
                    Transitions(state_).wait(row_, labels[i], weight, state_.candidate_room);
                row_.clear();
                if (!state_.released.empty()) {
                    Transitions(state_).forget_in_waiting(state_.released);
                    for (const std::uint32_t id : state_.released)
                        for (std::size_t j = 0; j < width; ++j)
                            if (ids[j] == id) ids[j] = sf2el::nobody;
                    state_.reuse_released();
                }
            }
        } catch (...) {
            settle_names();
            throw;
        }
        settle_names();
        said.resize(wanted ? i * k : 0);
        shares.resize(wanted ? i : 0);
        spaces.resize(wanted ? i : 0);
        const std::size_t done = wanted ? i : 0;
        return nb::make_tuple(i, int(code), own(std::move(said), {done, k}), own(std::move(shares), {done}), own(std::move(spaces), {done}));
    }

    // What is predicted for each row, NaN where nothing of it is known.
    nb::object predict_many(const Matrix& rows, const nb::list& names) {
        const Cleared cleared(*this);
        std::vector<std::string> texts;
        const std::vector<std::uint32_t> ids = columns(names, texts);
        const std::size_t n = rows.shape(0), width = rows.shape(1), k = state_.outputs;
        check_width(ids.size(), width);
        check_known(rows.data(), n * width);
        std::vector<double> said(n * k);
        {
            const nb::gil_scoped_release unlocked;
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j < width; ++j)
                    if (ids[j] != sf2el::nobody && rows.data()[i * width + j] == rows.data()[i * width + j])
                        row_.set(ids[j], rows.data()[i * width + j]);
                if (!state_.predict(row_, said.data() + i * k))
                    for (std::size_t o = 0; o < k; ++o) said[i * k + o] = std::numeric_limits<double>::quiet_NaN();
                row_.clear();
            }
        }
        return nb::cast(own(std::move(said), {n, k}));
    }

    // ---- what is there

    nb::list names(const std::vector<std::uint32_t>& ids) const {
        nb::list out;
        for (const std::uint32_t id : ids) out.append(name_of(state_.names.at(id)));
        return out;
    }

    // Of a space: its features' ids, room, features it began with, its number, rows, whether it keeps covariances.
    nb::tuple space(std::size_t s) const {
        const auto& one = state_.spaces.at(s);
        return nb::make_tuple(one.ids, one.room, one.born, one.index, one.rows, !one.moments.empty());
    }

    // Of each expert of a space: its code, functions held, labels learned, bytes.
    std::vector<std::tuple<CodeTuple, std::uint32_t, std::uint64_t, std::size_t>> experts(std::size_t s) const {
        std::vector<std::tuple<CodeTuple, std::uint32_t, std::uint64_t, std::size_t>> out;
        for (const auto& one : state_.spaces.at(s).experts) {
            std::uint32_t held = 0;
            std::uint64_t labels = 0;
            if (auto* p = dynamic_cast<sf2el::AnyPosterior*>(one.core.get())) {
                held = p->counters().n;
                labels = p->counters().labels;
            } else if (auto* l = dynamic_cast<sf2el::AnyLearner*>(one.core.get())) {
                const auto& c = *reinterpret_cast<const sf2el::LearnerCounters*>(l->block());
                held = c.n;
                labels = c.labels;
            } else if (auto* o = dynamic_cast<sf2el::AnyLogistic*>(one.core.get())) {
                labels = std::uint64_t(o->numbers().back());
            }
            out.emplace_back(tuple_of(one.code), held, labels, one.core->state_bytes());
        }
        return out;
    }

    // Of each expert of all spaces in turn: weight, loss, factor on its margins, prior.
    Out<double> standings() const {
        std::vector<double> out;
        for (const auto& one : state_.standings) {
            out.push_back(one.weight);
            out.push_back(one.loss);
            out.push_back(sf2el::Mixture::factor_of(one));
            out.push_back(one.prior);
        }
        const std::size_t n = state_.standings.size();
        return own(std::move(out), {n, 4});
    }

    void set_weights(const std::vector<double>& weights) {
        check_same_length(weights.size(), state_.standings.size());
        for (std::size_t j = 0; j < weights.size(); ++j) state_.standings[j].weight = weights[j];
    }

    std::vector<double> average_risks() { return state_.average_risks(); }

    // Of a map: features from and to, rows, share unexplained, form, form wanted, whether it still takes rows in, bytes.
    nb::object map(std::size_t s) const {
        const auto& map = state_.spaces.at(s).map;
        if (!map) return nb::none();
        return nb::make_tuple(map->from, map->to, map->rows, map->unexplained, int(map->form), int(map->wanted), !map->joint.empty(), map->bytes());
    }

    // Of a feature: rows since it was last there, its pace, whether it is gone, readings, of the last eight rows those
    // that had it, spaces that have it, and of these the living ones.
    nb::tuple feature(std::uint32_t id) const {
        const auto& f = state_.features.at(id);
        int lately = 0;
        for (int b = 0; b < 8; ++b) lately += (f.lately >> b) & 1;
        return nb::make_tuple(std::uint32_t(f.absent), std::uint32_t(f.pace), f.gone(), int(f.readings), lately, int(f.spaces), int(f.living));
    }

    // Which of these features are gone.
    std::vector<std::uint32_t> gone(const std::vector<std::uint32_t>& ids) const {
        std::vector<std::uint32_t> out;
        for (const std::uint32_t id : ids)
            if (state_.features.at(id).gone()) out.push_back(id);
        return out;
    }

    // Candidates of the row at hand that are there often enough to be used; `sightings`: that are enough.
    std::vector<std::uint32_t> rising(int sightings) const {
        std::vector<std::uint32_t> out;
        for (const std::uint32_t id : state_.candidates)
            if (row_.has(id) && state_.is_rising(id, sightings)) out.push_back(id);
        return out;
    }

    // How many rows ago the first of these was there, as far as the last eight rows say.
    int seen_since(const std::vector<std::uint32_t>& ids) const {
        int most = 0;
        for (const std::uint32_t id : ids)
            for (int b = 0; b < 8; ++b)
                if ((state_.features.at(id).lately >> b) & 1) most = std::max(most, b);
        return most;
    }

    std::vector<std::uint32_t> candidates() const { return state_.candidates; }

    // Bytes by part, in the order of `Part`.
    std::vector<std::size_t> bytes() {
        sf2el::Counter counter;
        sf2el::fields::state(counter, state_);
        return std::vector<std::size_t>(counter.bytes, counter.bytes + sf2el::part_count);
    }

    std::size_t settings_bytes() {
        sf2el::Counter counter;
        sf2el::fields::settings(counter, state_.settings);
        return counter.total();
    }

    std::size_t waiting_bytes() const { return state_.waiting_bytes() + state_.candidate_bytes(); }

    // ---- costs

    std::size_t expert_bytes(const CodeTuple& code, std::size_t room, std::size_t born, std::size_t outputs) const {
        return sf2el::shape_of(state_.settings, code_of(code), room, born, outputs).bytes();
    }

    std::size_t joint_bytes(std::size_t from, std::size_t to) { return Transitions(state_).joint_bytes(from, to); }

    std::size_t solution_bytes(std::size_t from, std::size_t to, int form) {
        if (state_.settings.paper) return Transitions(state_).joint_bytes(from, to);
        return sf2el::Map::solution_bytes(from, to, form_of(form));
    }

    std::size_t moments_bytes(std::size_t room) const { return sf2el::Moments<float>::bytes(room); }

    // ---- transitions

    void open(const std::vector<std::uint32_t>& ids, std::size_t room, bool related, bool mapped) {
        check_features(ids, nullptr, room);
        Transitions(state_).open(ids, room, related, mapped);
    }
    void close(const std::vector<std::uint32_t>& stay) {
        Transitions(state_).close(stay);
        forget_released();
    }
    void advance(const std::vector<std::uint32_t>& shared) { Transitions(state_).advance(shared); }
    void come_back(std::size_t s, bool mapped) { Transitions(state_).come_back(older(s), mapped); }
    void forget(std::size_t s) {
        if (state_.incoming && s == state_.current()) throw nb::index_error("There is no such space to forget.");
        Transitions(state_).forget(older(s));
        forget_released();
    }
    void widen(std::size_t s, const std::vector<std::uint32_t>& ids, std::size_t room) {
        const auto& space = state_.spaces[at(s)];
        check_features(ids, &space, room > space.room ? room : space.room);
        Transitions(state_).widen(s, ids, room);
    }
    void begin_again(std::size_t s, std::size_t born) { Transitions(state_).begin_again(at(s), born); }
    void take_scaling(std::size_t to, std::size_t from) { Transitions(state_).take_scaling(to, from); }
    void begin_gaps() { Transitions(state_).begin_gaps(); }
    void begin_map(std::size_t s) { Transitions(state_).begin_map(older(s)); }
    void replay() { state_.replay(); }

    void add(std::size_t s, const CodeTuple& code, double prior, double weight, const std::vector<double>& odds) {
        Transitions(state_).add(s, code_of(code), prior, weight, odds);
    }
    void fork(std::size_t s, std::size_t from, const CodeTuple& code, double prior, double weight) {
        Transitions(state_).fork(s, from, code_of(code), prior, weight);
    }
    void remove(std::size_t s, std::size_t i) { Transitions(state_).remove(at(s), i); }
    double reshape(std::size_t s, std::size_t i, const CodeTuple& code) { return Transitions(state_).reshape(s, i, code_of(code)); }
    void grow(std::size_t outputs) {
        const auto& s = state_.settings;
        if (s.paper || s.task != sf2el::Task::binary || outputs < 3 || outputs < state_.outputs || outputs > most_outputs)
            throw nb::value_error("There is no growing to so many outputs.");
        Transitions(state_).grow(outputs);
    }
    void settle(std::size_t s) { Transitions(state_).settle(at(s)); }
    void drop_map(std::size_t s) { Transitions(state_).drop_map(at(s)); }
    void keep_map_as(std::size_t s, int form) { Transitions(state_).keep_map_as(at(s), form_of(form)); }
    void drop_moments(std::size_t s) { Transitions(state_).drop_moments(at(s)); }
    void keep_moments(std::size_t s) { Transitions(state_).keep_moments(at(s)); }
    void shrink_waiting() {
        forget_released();
        Transitions(state_).shrink_waiting();
        forget_released();
        compact();
    }

    // No place is kept for nobody.
    void compact() {
        forget_released();
        if (!state_.has_free_places()) return;
        const std::vector<std::uint32_t> now = Transitions(state_).compact();
        names_ = nb::dict();
        remember_names();
        std::vector<std::pair<std::uint32_t, double>> row;
        for (const std::uint32_t id : row_.present) row.emplace_back(now[id], row_.x[id]);
        row_.clear();
        for (const auto& [id, value] : row) row_.set(id, value);
    }

    // ---- files

    nb::bytes save(const nb::bytes& own_bytes) {
        const std::vector<unsigned char> out = sf2el::save(state_, std::string(own_bytes.c_str(), own_bytes.size()));
        return nb::bytes(reinterpret_cast<const char*>(out.data()), out.size());
    }

    // A state and the caller's own bytes.
    static nb::tuple load(const nb::bytes& data) {
        auto made = std::make_unique<State>();
        std::string text;
        try {
            text = sf2el::load(made->state_, reinterpret_cast<const unsigned char*>(data.c_str()), data.size());
        } catch (const std::bad_alloc&) {
            throw std::invalid_argument("it says that more follows than there is");
        }
        made->remember_names();
        return nb::make_tuple(nb::cast(made.release(), nb::rv_policy::take_ownership), nb::bytes(text.data(), text.size()));
    }

    ModelState& state() { return state_; }

private:
    // Leaves nothing of a row behind, however a call ends.
    class Cleared {
    public:
        explicit Cleared(State& own) : own_(&own) {}
        Cleared(const Cleared&) = delete;
        Cleared& operator=(const Cleared&) = delete;
        ~Cleared() {
            if (!own_) return;
            own_->row_.clear();
            own_->strangers_.clear();
        }
        void keep() { own_ = nullptr; }

    private:
        State* own_;
    };

    void check(double y) const {
        check_label(y);
        if (!sf2el::label_fits(state_.task(), state_.outputs, y))
            throw nb::value_error(("A label must be a class from 0 to " + std::to_string(state_.outputs - 1) +
                                   ", or NaN for an unlabelled row.")
                                      .c_str());
    }

    std::size_t at(std::size_t s) const {
        if (s >= state_.spaces.size()) throw nb::index_error("There is no such space.");
        return s;
    }

    // A space that has another after it.
    std::size_t older(std::size_t s) const {
        if (at(s) + 1 == state_.spaces.size()) throw nb::index_error("There is no such space before another.");
        return s;
    }

    // Features that a space begins with, or that join `own`.
    void check_features(const std::vector<std::uint32_t>& ids, const sf2el::Space* own, std::size_t room) const {
        std::vector<char> met(state_.names.size(), 0);
        std::size_t count = ids.size();
        if (own) {
            count += own->dim();
            for (const std::uint32_t id : own->ids) met[id] = 1;
        }
        for (const std::uint32_t id : ids) {
            if (id >= met.size() || met[id] || state_.names[id].empty())
                throw nb::value_error("A space takes features that are known, each of them once.");
            met[id] = 1;
        }
        if (count == 0 || count > room || room > most_room) throw nb::value_error("A space has no room for its features.");
    }

    // Puts a dict row into row_ and strangers_.
    void read(nb::handle x) {
        if (read_plain(x.ptr())) return;
        if (!reader().is_valid()) throw nb::value_error("A row must be a dict of features, each a plain number.");
        const nb::object found = reader()(x);  // says what is wrong, or gives plain numbers
        nb::dict clean;
        for (const auto& [key, value] : nb::cast<nb::dict>(found)) {
            const nb::object name = plain_name(key.ptr(), true);
            if (!name.is_valid() || clean.contains(name))
                throw nb::value_error("Two features of this row have the same name, or one has none; rename it.");
            clean[name] = value;
        }
        if (!read_plain(clean.ptr())) throw nb::value_error("This row has a name that is too long to be kept; rename it.");
    }

    // Runs no code of the caller's. False, with any part of the row read: it is not of plain numbers by plain names.
    bool read_plain(PyObject* x) {
        row_.clear();
        strangers_.clear();
        if (!PyDict_CheckExact(x)) return false;
        PyObject *key = nullptr, *value = nullptr;
        Py_ssize_t position = 0;
        bool odd = false;  // whether a name is plain only as a copy: then two may be the same
        while (PyDict_Next(x, &position, &key, &value)) {
            double number = 0.0;
            if (PyFloat_CheckExact(value)) {
                number = PyFloat_AsDouble(value);
                if (number != number) continue;
            } else if (value == Py_None) {
                continue;
            } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
                number = PyLong_AsDouble(value);
                if (number == -1.0 && PyErr_Occurred()) {
                    PyErr_Clear();
                    return false;
                }
            } else {
                return false;
            }
            if (!(number >= -largest_feature && number <= largest_feature)) return false;
            const nb::object name = plain_name(key, false);
            if (!name.is_valid()) return false;
            odd = odd || name.ptr() != key;
            const std::uint32_t id = id_of(name);
            if (id != sf2el::nobody) {
                if (row_.has(id)) return false;
                row_.set(id, number);
                continue;
            }
            std::string text = text_of(name);
            if (text.empty()) return false;
            strangers_.push_back({std::move(text), number, 0});
        }
        if (odd && !are_apart(strangers_)) return false;
        return !row_.present.empty() || !strangers_.empty();
    }

    // The number of the feature of a plain name.
    std::uint32_t id_of(const nb::object& name) const {
        PyObject* id = PyDict_GetItemWithError(names_.ptr(), name.ptr());
        if (!id && PyErr_Occurred()) throw nb::python_error();
        return id ? static_cast<std::uint32_t>(PyLong_AsUnsignedLong(id)) : sf2el::nobody;
    }

    // Whether no two have the same name.
    static bool are_apart(const std::vector<Stranger>& strangers) {
        std::vector<const std::string*> texts;
        for (const Stranger& one : strangers) texts.push_back(&one.text);
        return are_apart(texts);
    }

    static bool are_apart(std::vector<const std::string*>& texts) {
        std::sort(texts.begin(), texts.end(), [](const auto* a, const auto* b) { return *a < *b; });
        return std::adjacent_find(texts.begin(), texts.end(), [](const auto* a, const auto* b) { return *a == *b; }) == texts.end();
    }

    // Bytes for the names of the row's strangers, and for the row to wait.
    std::size_t stranger_bytes() const {
        std::size_t sum = 12 * (row_.present.size() + strangers_.size()) + 20;
        for (const Stranger& one : strangers_) sum += ModelState::place_bytes + ModelState::candidate_mark + one.text.size();
        return sum;
    }

    // Whether many features come together that there is no room to look at: a space may be about to open.
    bool crowded() const {
        if (state_.spaces.empty() || state_.rows < state_.deaf_until || strangers_.size() <= state_.few_new()) return false;
        return stranger_bytes() + state_.waiting_bytes() + state_.candidate_bytes() > state_.candidate_room;
    }

    // After a row was learned: its new features are looked at from now on, and it waits with them.
    void after(double y, double weight) {
        if (!strangers_.empty()) note_strangers();
        if (!state_.candidates.empty() || !state_.waiting.empty())
            Transitions(state_).wait(row_, y, weight, state_.candidate_room);
        forget_released();
    }

    // Strangers become candidates in an order of their own.
    void count_strangers(std::uint32_t* ids = nullptr) {
        if (strangers_.size() > 1)
            std::sort(strangers_.begin(), strangers_.end(), [](const Stranger& a, const Stranger& b) { return comes_before(a.text, b.text); });
        for (const Stranger& one : strangers_) {
            if (!state_.make_room(one.text.size())) continue;
            const std::uint32_t id = state_.note(one.text);
            state_.begin_candidate(id);
            row_.set(id, one.value);
            fresh_.push_back(id);
            if (ids) ids[one.column] = id;
        }
        strangers_.clear();
    }

    void note_strangers() {
        count_strangers();
        settle_names();
    }

    // The dict of names follows what has come and gone.
    void settle_names() {
        forget_released();
        for (const std::uint32_t id : fresh_)
            if (!state_.names[id].empty()) names_[name_of(state_.names[id])] = id;
        fresh_.clear();
    }

    void forget_released() {
        if (!state_.released.empty()) Transitions(state_).forget_in_waiting(state_.released);
        for (const std::uint32_t id : state_.released) row_.drop(id);  // between begin and finish
        for (const auto& text : state_.released_names) {
            const nb::object name = name_of(text);
            if (PyDict_DelItem(names_.ptr(), name.ptr()) != 0) PyErr_Clear();
        }
        state_.released_names.clear();
        state_.reuse_released();
    }

    // The names of a file: each as it would have been kept, and once.
    void remember_names() {
        for (std::size_t id = 0; id < state_.names.size(); ++id) {
            const std::string& text = state_.names[id];
            if (text.empty()) continue;
            const nb::object name = name_of(text);
            if (!name.is_valid()) PyErr_Clear();
            if (!name.is_valid() || text_of(name) != text || names_.contains(name))
                throw std::invalid_argument("a feature's name is none");
            names_[name] = id;
        }
    }

    std::vector<std::uint32_t> columns(const nb::list& names, std::vector<std::string>& texts) const {
        // All names are plain before the first is looked up: becoming so may run code that uses this very state.
        std::vector<nb::object> plain;
        for (const nb::handle name : nb::tuple(names)) plain.push_back(plain_name(name.ptr(), true));
        std::vector<std::uint32_t> ids;
        for (const nb::object& name : plain) {
            texts.push_back(name.is_valid() ? text_of(name) : std::string());
            if (texts.back().empty()) throw nb::value_error("A column's name is no text that can be kept; rename it.");
            ids.push_back(id_of(name));
        }
        std::vector<const std::string*> all;
        for (const std::string& text : texts) all.push_back(&text);
        if (!are_apart(all)) throw nb::value_error("Two columns have the same name; rename one.");
        return ids;
    }

    std::optional<Guard> guard_;
    ModelState state_;
    nb::dict names_;
    sf2el::Row row_;
    std::vector<Stranger> strangers_;
    std::vector<std::uint32_t> fresh_;  // noted while Python's dict could not be touched
};

}  // namespace

void bind_state(nb::module_& m) {
    nb::class_<Guard>(m, "Guard")
        .def(nb::init<nb::object, std::string>(), "error"_a, "text"_a)
        .def("__enter__", &Guard::enter)
        .def("__exit__", &Guard::leave, "kind"_a.none(), "value"_a.none(), "trace"_a.none());
    m.def("set_row_reader", [](nb::object function) { reader() = std::move(function); }, "function"_a);
    auto c = nb::class_<State>(m, "State");
    c.def(nb::init<const std::string&, bool, bool, bool, double, std::uint64_t>(), "task"_a, "scaled"_a = true,
          "related"_a = true, "precise"_a = false, "forget"_a = 0.0, "seed"_a = 0)
        .def("make_paper", &State::make_paper, "learner"_a, "restart"_a, "train_beside"_a, "eta"_a, "map_ridge"_a, "map_intercept"_a)
        .def("copy", &State::copy)
        .def("guarded_by", &State::guarded_by, "guard"_a)
        .def("predict", &State::predict, "x"_a.none())
        .def("explain", &State::explain, "x"_a.none())
        .def("learn", &State::learn, "x"_a.none(), "y"_a, "weight"_a, "holder"_a.none() = nb::none(), "key"_a.none() = nb::none(),
             "value"_a.none() = nb::none())
        .def("whose", &State::whose, "x"_a.none())
        .def("learn_late", &State::learn_late, "x"_a.none(), "y"_a, "weight"_a)
        .def("knows", &State::knows, "x"_a.none())
        .def("crowd_bytes", &State::crowd_bytes, "x"_a.none())
        .def("begin", &State::begin, "x"_a.none())
        .def("finish", &State::finish, "y"_a, "weight"_a)
        .def("run", &State::run, "rows"_a, "names"_a, "y"_a, "weights"_a.none(), "wanted"_a)
        .def("predict_many", &State::predict_many, "rows"_a, "names"_a)
        .def("names", &State::names, "ids"_a)
        .def("space", &State::space, "s"_a)
        .def("experts", &State::experts, "s"_a)
        .def("standings", &State::standings)
        .def("set_weights", &State::set_weights, "weights"_a)
        .def("average_risks", &State::average_risks)
        .def("map", &State::map, "s"_a)
        .def("feature", &State::feature, "id"_a)
        .def("gone", &State::gone, "ids"_a)
        .def("rising", &State::rising, "sightings"_a)
        .def("seen_since", &State::seen_since, "ids"_a)
        .def("candidates", &State::candidates)
        .def("bytes", &State::bytes)
        .def("settings_bytes", &State::settings_bytes)
        .def("waiting_bytes", &State::waiting_bytes)
        .def("expert_bytes", &State::expert_bytes, "code"_a, "room"_a, "born"_a, "outputs"_a)
        .def("joint_bytes", &State::joint_bytes, "new"_a, "old"_a)
        .def("solution_bytes", &State::solution_bytes, "new"_a, "old"_a, "form"_a)
        .def("moments_bytes", &State::moments_bytes, "room"_a)
        .def("open", &State::open, "ids"_a, "room"_a, "related"_a, "mapped"_a)
        .def("close", &State::close, "stay"_a = std::vector<std::uint32_t>{})
        .def("advance", &State::advance, "shared"_a = std::vector<std::uint32_t>{})
        .def("come_back", &State::come_back, "s"_a, "mapped"_a)
        .def("forget", &State::forget, "s"_a)
        .def("widen", &State::widen, "s"_a, "ids"_a, "room"_a)
        .def("begin_again", &State::begin_again, "s"_a, "born"_a)
        .def("take_scaling", &State::take_scaling, "to"_a, "source"_a)
        .def("begin_gaps", &State::begin_gaps)
        .def("begin_map", &State::begin_map, "s"_a)
        .def("replay", &State::replay)
        .def("add", &State::add, "s"_a, "code"_a, "prior"_a, "weight"_a, "odds"_a)
        .def("fork", &State::fork, "s"_a, "like"_a, "code"_a, "prior"_a, "weight"_a)
        .def("remove", &State::remove, "s"_a, "i"_a)
        .def("reshape", &State::reshape, "s"_a, "i"_a, "code"_a)
        .def("grow", &State::grow, "outputs"_a)
        .def("settle", &State::settle, "s"_a)
        .def("drop_map", &State::drop_map, "s"_a)
        .def("keep_map_as", &State::keep_map_as, "s"_a, "form"_a)
        .def("drop_moments", &State::drop_moments, "s"_a)
        .def("keep_moments", &State::keep_moments, "s"_a)
        .def("compact", &State::compact)
        .def("shrink_waiting", &State::shrink_waiting)
        .def("save", &State::save, "own"_a)
        .def_static("load", &State::load, "data"_a);
    const auto number = [&c](const char* name, auto get, auto set) { c.def_prop_rw(name, get, set); };
    number("rows", [](State& s) { return s.state().rows; }, [](State& s, std::uint64_t v) { s.state().rows = v; });
    number("review_at", [](State& s) { return s.state().review_at; }, [](State& s, std::uint64_t v) { s.state().review_at = v; });
    number("wake_at", [](State& s) { return s.state().wake_at; }, [](State& s, std::uint64_t v) { s.state().wake_at = v; });
    number("young_until", [](State& s) { return s.state().young_until; }, [](State& s, std::uint64_t v) { s.state().young_until = v; });
    number("lost_at", [](State& s) { return s.state().lost_at; }, [](State& s, std::uint64_t v) { s.state().lost_at = v; });
    number("opened_at", [](State& s) { return s.state().opened_at; }, [](State& s, std::uint64_t v) { s.state().opened_at = v; });
    number("current_since", [](State& s) { return s.state().current_since; }, [](State& s, std::uint64_t v) { s.state().current_since = v; });
    number("forgotten_after", [](State& s) { return s.state().forgotten_after; }, [](State& s, std::uint32_t v) { s.state().forgotten_after = v; });
    number("candidate_room", [](State& s) { return s.state().candidate_room; }, [](State& s, std::uint32_t v) { s.state().candidate_room = v; });
    number("deaf_until", [](State& s) { return s.state().deaf_until; }, [](State& s, std::uint64_t v) { s.state().deaf_until = v; });
    number("exact", [](State& s) { return s.state().exact; }, [](State& s, bool v) { s.state().exact = v; });
    c.def_prop_ro("paper", [](State& s) { return s.state().settings.paper; })
        .def_prop_ro("numbers", [](State& s) { return !sf2el::is_classification(s.state().settings.task); })
        .def_prop_ro("outputs", [](State& s) { return s.state().outputs; })
        .def_prop_ro("spaces", [](State& s) { return s.state().spaces.size(); })
        .def_prop_ro("incoming", [](State& s) { return s.state().incoming; })
        .def_prop_ro("vanished", [](State& s) { return s.state().dealt; })
        .def_prop_ro("began", [](State& s) { return s.state().began; })
        .def_prop_ro("gapped", [](State& s) { return s.state().gapped; })
        .def_prop_ro("rounds", [](State& s) { return s.state().mixture.rounds; });
}

}  // namespace sf2el_python
