// A model on a device without Python: reads the file that `model.save` wrote, predicts rows, goes on learning them,
// and writes the file back for Python or for the next start.
//
//   c++ -std=c++17 -O2 -ffp-contract=off -Wno-psabi -Inative examples/read_model.cpp native/core/variant_base.cpp -o read_model
//   ./read_model model.sf2el later.sf2el < rows.csv
//
// The first line of rows.csv names the features, and a last column `label` where there is one. A value that is missing
// is an empty field; so is a label that is not known. For each row the predicted label comes out, and the model's own
// numbers: a score above 0 speaks for the first of two labels, of several each has its probability.
//
// Numbers and file are those of Python, bit for bit. What is left to Python are decisions: which features open or end a
// space, and what the budget has room for. A row that asks for one is learned with the features there are, and Python
// decides when it has the model again. Classifiers without class weights; no label more than the file knows.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "state/file.hpp"

// A program says once which build of the core it uses; a device has one.
const sf2el::Variant& sf2el::ModelState::variant() { return base_variant; }

namespace {

using namespace sf2el;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s.\n", what.c_str());
    std::exit(1);
}

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
        if (c == ',') fields.emplace_back();
        else if (c != '\r') fields.back() += c;
    }
    return fields;
}

// ---- labels: they are no part of the core's state but of its caller's own bytes, a short JSON text behind its length

class Labels {
public:
    explicit Labels(const std::string& own) : own_(own) {
        if (own.find("[\"classifier\",") != 4) fail("The file holds no classifier");
        if (own.find("\"class_weight\":null") == std::string::npos) fail("The model weighs its labels; leave that to Python");
        std::size_t at = 0;
        seen_ = list("\"seen\":[", at);
        counted_ = at;
        for (const std::string& one : list("\"counts\":[", counted_)) counts_.push_back(std::strtoull(one.c_str(), nullptr, 10));
        if (counts_.size() != seen_.size()) fail("The file does not say how often each label was seen");
    }

    // What the experts learn for a label: of two +1 and -1, of several its place. It counts as seen.
    double target(const std::string& label) {
        if (label.empty()) return unknown;
        for (std::size_t k = 0; k < seen_.size(); ++k)
            if (seen_[k] == label) {
                ++counts_[k];
                return seen_.size() > 2 ? double(k) : k == 0 ? 1.0 : -1.0;
            }
        fail("The model does not know the label " + label);
    }

    std::string decide(const std::vector<double>& said) const {
        if (seen_.size() < 2) return seen_.empty() ? "" : seen_[0];
        if (said.size() == 1) return seen_[said[0] >= 0.0 ? 0 : 1];
        return seen_.at(std::size_t(std::max_element(said.begin(), said.end()) - said.begin()));
    }

    // The caller's bytes, with labels counted.
    std::string own() const {
        std::string counts;
        for (const std::uint64_t one : counts_) counts += (counts.empty() ? "" : ",") + std::to_string(one);
        const std::size_t first = own_.rfind('[', counted_) + 1;
        std::string out = own_.substr(0, first) + counts + own_.substr(counted_);
        std::uint32_t length = 0;
        std::memcpy(&length, out.data(), 4);
        length = std::uint32_t(length + out.size() - own_.size());
        std::memcpy(&out[0], &length, 4);
        return out;
    }

private:
    // A list of texts or numbers, as texts; `at` is where to look from, and then where the list ends.
    std::vector<std::string> list(const char* name, std::size_t& at) const {
        at = own_.find(name, at);
        if (at == std::string::npos) fail("The file says nothing of labels");
        std::vector<std::string> items;
        std::string item;
        bool quoted = false;
        for (at += std::strlen(name); at < own_.size() && (quoted || own_[at] != ']'); ++at) {
            const char c = own_[at];
            if (c == '"') quoted = !quoted;
            else if (c == ',' && !quoted) items.push_back(std::move(item)), item.clear();
            else item += c == '\\' && at + 1 < own_.size() ? own_[++at] : c;
        }
        if (!item.empty()) items.push_back(item);
        return items;
    }

    std::string own_;
    std::vector<std::string> seen_;
    std::vector<std::uint64_t> counts_;
    std::size_t counted_ = 0;
};

// ---- rows

// Where each column of the table is among the model's features, which are kept as 's' and a text or 'i' and a number.
std::vector<std::uint32_t> places_of(const ModelState& state, const std::vector<std::string>& columns) {
    std::vector<std::uint32_t> places(columns.size(), nobody);
    for (std::size_t j = 0; j < columns.size(); ++j)
        for (std::size_t id = 0; id < state.names.size(); ++id)
            if (state.names[id] == "s" + columns[j] || state.names[id] == "i" + columns[j]) places[j] = std::uint32_t(id);
    return places;
}

void learn(ModelState& state, const Row& row, double y, bool& review) {
    if (state.learn(row, false, y, 1.0, nullptr) == Learned::change) {
        state.attend(row);  // no decision is made here: the row is learned with the features there are
        state.learn(row, false, y, 1.0, nullptr, true);
    }
    if (!state.candidates.empty() || !state.waiting.empty()) Transitions(state).wait(row, y, 1.0, state.candidate_room);
    if (state.review_at <= state.rows) {  // labels have spoken for or against experts: Python will look at it
        state.review_at = never;
        review = true;
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) fail("Usage: read_model MODEL MODEL_AFTERWARDS < rows.csv");
    std::ifstream in(arguments[1], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    ModelState state;
    std::string own;
    try {
        own = load(state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    } catch (const std::exception& error) {  // nothing in a file is trusted
        fail(std::string(arguments[1]) + " cannot be read: " + error.what());
    }
    Labels labels(own);

    std::string line;
    std::getline(std::cin, line);
    std::vector<std::string> columns = split(line);
    const bool labelled = columns.back() == "label";
    if (labelled) columns.pop_back();
    std::vector<std::uint32_t> places = places_of(state, columns);

    bool review = false;
    std::vector<double> said(state.outputs);
    Row row;
    while (std::getline(std::cin, line)) {
        const std::vector<std::string> fields = split(line);
        if (fields.size() != columns.size() + labelled) fail("A row has another number of fields than the first line");
        for (std::size_t j = 0; j < columns.size(); ++j)
            if (places[j] != nobody && !fields[j].empty()) row.set(places[j], std::strtod(fields[j].c_str(), nullptr));
        if (!row.present.empty() && state.predict(row, said.data())) {
            std::printf("%s", labels.decide(said).c_str());
            for (const double value : said) std::printf(",%.17g", value);
        }
        std::printf("\n");
        if (labelled && !row.present.empty()) learn(state, row, labels.target(fields.back()), review);
        row.clear();
        if (!state.released.empty()) {  // features that were seen once and never again are forgotten
            Transitions(state).forget_in_waiting(state.released);
            state.reuse_released();
            places = places_of(state, columns);
        }
    }

    if (review) state.review_at = state.rows + 1;
    const std::vector<unsigned char> out = save(state, labels.own());
    std::ofstream file(arguments[2], std::ios::binary);
    file.write(reinterpret_cast<const char*>(out.data()), std::streamsize(out.size()));
    if (!file.flush()) fail(std::string(arguments[2]) + " cannot be written");
    return 0;
}
