// A saved model on a device: read the file, predict rows, go on learning. No Python.
//
//   c++ -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Wno-psabi -Inative examples/read_model.cpp -o read_model
//   ./read_model model.safetensors < rows.csv
//
// Python trains and saves (`model.save("model.safetensors")`), this program reads
// what SF2EL(budget=...) or SF2EL.paper(...) saved: the current features' experts,
// those of the vanished features with the map that recovers them, and the weights
// of all. Rows come in as CSV, values in the order of the names that it prints to
// stderr, one score a row goes out (for three labels or more, a probability each).
// A row with one value more, a label or nothing, is learned after it was predicted.
//
// What it leaves to Python: features that appear or vanish, rows with gaps (a row
// here has all the current features), and fitting the default's map and views anew
// and letting go of what labels have spoken against, which Python does whenever the
// rows since the old features vanished have grown by a quarter.
//
// A file is 8 bytes of length, a JSON header, then arrays: the safetensors format.
// The header's metadata hold a JSON text of their own, with all that is no array and
// with a checksum (CRC-32) of that text and of all arrays. Of JSON and of the format
// just enough is read. A file is not trusted: the checksum tells damage, every size
// is compared with what it must be before it is used, and what a file asks for in
// memory is bounded by its own size. What does not fit is refused in one sentence.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/core.hpp"

namespace {

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s.\n", what.c_str());
    std::exit(1);
}

// ---- JSON, just enough of it

struct Json {
    enum class Kind { null, boolean, number, text, array, object } kind = Kind::null;
    bool truth = false;
    std::string text;  // a number's too: 64-bit counts do not fit a double
    std::vector<Json> items;
    std::map<std::string, Json> members;

    bool is_null() const { return kind == Kind::null; }
    bool has(const std::string& name) const { return members.count(name) > 0; }

    const Json& operator[](const std::string& name) const {
        const auto found = members.find(name);
        if (found == members.end()) fail("The file says nothing of " + name);
        return found->second;
    }

    const Json& at(size_t place) const {
        if (place >= items.size()) fail("A list in the file is too short");
        return items[place];
    }

    double real() const {
        const double value = kind == Kind::number ? std::strtod(text.c_str(), nullptr) : HUGE_VAL;
        if (!(std::fabs(value) <= 1e100)) fail("A number in the file is none");
        return value;
    }

    // A whole number from 0 to `most`.
    std::uint64_t count(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const {
        if (kind != Kind::number) fail("A count in the file is none");
        std::uint64_t value = 0;
        for (const char c : text) {
            const auto digit = std::uint64_t(c - '0');  // very large where it is no digit
            if (digit > 9 || digit > most || value > (most - digit) / 10) fail("A count in the file is none, or too large");
            value = 10 * value + digit;
        }
        return value;
    }

    bool flag() const {
        if (kind != Kind::boolean) fail("A switch in the file is none");
        return truth;
    }

    double real_or(const std::string& name, double usual) const { return has(name) ? members.at(name).real() : usual; }
    std::uint32_t count_or(const std::string& name, std::uint32_t usual, std::uint32_t most) const {
        return has(name) ? std::uint32_t(members.at(name).count(most)) : usual;
    }
    bool flag_or(const std::string& name, bool usual) const { return has(name) ? members.at(name).flag() : usual; }
};

class JsonReader {
public:
    explicit JsonReader(const std::string& text) : text_(text) {}

    // `depth`: the lists and objects that it may hold, one in the other; a model's file has fewer.
    Json value(int depth = 16) {
        const char first = next();
        if (depth == 0) fail("The file's text is nested too deeply");
        switch (first) {
            case '{': return object(depth - 1);
            case '[': return array(depth - 1);
            case '"': return made(Json::Kind::text, string());
            case 't': return word("true", Json::Kind::boolean, true);
            case 'f': return word("false", Json::Kind::boolean, false);
            case 'n': return word("null", Json::Kind::null, false);
            default: return number();
        }
    }

private:
    char next() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
        if (at_ >= text_.size()) fail("The file's text ends too early");
        return text_[at_];
    }

    void expect(char c) {
        if (next() != c) fail("The file's text is not JSON");
        ++at_;
    }

    static Json made(Json::Kind kind, std::string text) {
        Json out;
        out.kind = kind;
        out.text = std::move(text);
        return out;
    }

    Json word(const std::string& word, Json::Kind kind, bool truth) {
        if (text_.compare(at_, word.size(), word) != 0) fail("The file's text is not JSON");
        at_ += word.size();
        Json out;
        out.kind = kind;
        out.truth = truth;
        return out;
    }

    Json number() {
        const size_t start = at_;
        while (at_ < text_.size() && std::string("+-.eE0123456789").find(text_[at_]) != std::string::npos) ++at_;
        if (at_ == start) fail("The file's text is not JSON");
        return made(Json::Kind::number, text_.substr(start, at_ - start));
    }

    Json array(int depth) {
        Json out;
        out.kind = Json::Kind::array;
        expect('[');
        while (next() != ']') {
            out.items.push_back(value(depth));
            if (next() == ',') ++at_;
        }
        ++at_;
        return out;
    }

    Json object(int depth) {
        Json out;
        out.kind = Json::Kind::object;
        expect('{');
        while (next() != '}') {
            std::string name = string();
            expect(':');
            out.members[std::move(name)] = value(depth);
            if (next() == ',') ++at_;
        }
        ++at_;
        return out;
    }

    std::string string() {
        std::string out;
        expect('"');
        while (at_ < text_.size() && text_[at_] != '"') {
            char c = text_[at_++];
            if (c == '\\' && at_ < text_.size()) {
                c = text_[at_++];
                if (c == 'u') {
                    append_utf8(out, std::strtoul(text_.substr(at_, 4).c_str(), nullptr, 16));
                    at_ += 4;
                    continue;
                }
                const std::string codes = "nrtbf", means = "\n\r\t\b\f";
                const size_t code = codes.find(c);
                if (code != std::string::npos) c = means[code];
            }
            out += c;
        }
        expect('"');
        return out;
    }

    static void append_utf8(std::string& out, unsigned long code) {
        if (code < 0x80) {
            out += char(code);
        } else if (code < 0x800) {
            out += char(0xC0 | (code >> 6));
            out += char(0x80 | (code & 0x3F));
        } else {
            out += char(0xE0 | (code >> 12));
            out += char(0x80 | ((code >> 6) & 0x3F));
            out += char(0x80 | (code & 0x3F));
        }
    }

    const std::string& text_;
    size_t at_ = 0;
};

Json parsed(const std::string& text) { return JsonReader(text).value(); }

// ---- the file

// CRC-32 as zlib's, of more bytes after those of `before`.
std::uint32_t crc32(const char* bytes, size_t size, std::uint32_t before = 0) {
    std::uint32_t crc = ~before;
    for (size_t i = 0; i < size; ++i) {
        crc ^= static_cast<unsigned char>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
    }
    return ~crc;
}

std::uint32_t crc32(const std::string& text, std::uint32_t before = 0) {
    return crc32(text.data(), text.size(), before);
}

class File {
public:
    explicit File(const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        if (!in) fail(path + " cannot be read");
        bytes_.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
        if (bytes_.size() < 8) fail(path + " is no model");
        std::uint64_t length = 0;
        for (int i = 7; i >= 0; --i) length = length << 8 | std::uint64_t(static_cast<unsigned char>(bytes_[size_t(i)]));
        if (length > bytes_.size() - 8) fail(path + " is no model");
        header_ = parsed(bytes_.substr(8, size_t(length)));
        for (const auto& entry : header_.members)
            if (entry.first != "__metadata__") arrays_[entry.first] = array_of(entry.second, 8 + size_t(length));
        const std::string& text = header_["__metadata__"]["sf2el"].text;
        content_ = parsed(text);
        if (content_["format"].count() != 2) fail(path + " has another format than 2; load it in Python and save it anew");
        if (!content_.has("checksum")) fail(path + " has no checksum; load it in Python and save it anew");
        if (content_["checksum"].count() != checksum(text)) fail(path + " is damaged, says its checksum; use a copy");
        // As in Python. Experts that have just begun keep few rows, but have the room for many.
        left_ = 64.0 * double(bytes_.size()) + 64.0 * 1024 * 1024;
    }

    const Json& content() const { return content_; }
    bool has(const std::string& name) const { return arrays_.count(name) > 0; }
    size_t size() const { return bytes_.size(); }

    // To be asked before memory is: all that is asked for is bounded by the size of the file. In doubles, which
    // no number of the file makes overflow.
    void ask(double bytes) const {
        left_ -= bytes;
        if (!(left_ >= 0.0)) fail("The file asks for far more memory than it holds");
    }

    // An array of doubles or floats, as Real.
    template <class Real>
    std::vector<Real> reals(const std::string& name) const {
        const std::string& type = array(name).type;
        std::vector<Real> out;
        if (type == "F32") out = copied<float, Real>(name);
        else if (type == "F64") out = copied<double, Real>(name);
        else fail(name + " is no array of numbers");
        for (const Real value : out)
            if (!std::isfinite(value)) fail("A number in " + name + " is not finite");
        return out;
    }

    // An array of numbers of 16 bits, as they are kept. Where all bits of the exponent are set, it is no number.
    template <class Stored>
    std::vector<Stored> halves(const std::string& name, const char* type, unsigned exponent) const {
        if (array(name).type != type) fail(name + " is no array of halves");
        for (const std::uint16_t bits : copied<std::uint16_t, std::uint16_t>(name))
            if ((bits & exponent) == exponent) fail("A number in " + name + " is not finite");
        return copied<Stored, Stored>(name);
    }

    std::vector<std::int16_t> whole_numbers(const std::string& name) const {
        if (array(name).type != "I16") fail(name + " is no array of whole numbers");
        return copied<std::int16_t, std::int16_t>(name);
    }

    // Names are texts, each ended by a zero byte; a leading \x01 marks a whole number.
    std::vector<std::string> names(const std::string& name) const {
        std::vector<std::string> out;
        std::string text;
        for (const char c : copied<char, char>(name)) {
            if (c != '\0') {
                text += c;
                continue;
            }
            if (!text.empty() && text[0] == '\x01') text.erase(0, 1);
            if (!text.empty() && text[0] == '\x02') text = parsed(text.substr(1)).text;
            out.push_back(text);
            text.clear();
        }
        return out;
    }

private:
    struct Array {
        std::string type, shape;  // the shape as Python writes it: (), (5,), (2, 5)
        size_t from = 0, size = 0;  // in bytes
    };

    // Types of arrays: what they are called in the file and in Python, and bytes a number.
    struct Type {
        const char *stored, *name;
        size_t size;
    };

    static const Type& type_of(const std::string& stored) {
        static const Type types[] = {{"F64", "float64", 8}, {"F32", "float32", 4}, {"F16", "float16", 2},
                                     {"U16", "uint16", 2},  {"I16", "int16", 2},   {"U8", "uint8", 1},
                                     {"I64", "int64", 8}};
        for (const Type& type : types)
            if (stored == type.stored) return type;
        fail("An array has a type that no model has");
    }

    Array array_of(const Json& entry, size_t start) const {
        Array out;
        out.type = entry["dtype"].text;
        const std::uint64_t end = bytes_.size() - start, to = entry["data_offsets"].at(1).count(end),
                            from = entry["data_offsets"].at(0).count(to);
        out.from = start + size_t(from);
        out.size = size_t(to - from);
        const auto& sides = entry["shape"].items;
        std::uint64_t numbers = 1;
        for (size_t i = 0; i < sides.size(); ++i) {
            const std::uint64_t side = sides[i].count(end);
            if (side && numbers > end / side) fail("An array lies outside the file");
            numbers *= side;
            out.shape += (i ? ", " : "") + std::to_string(side);
        }
        out.shape = "(" + out.shape + (sides.size() == 1 ? ",)" : ")");
        if (numbers * type_of(out.type).size != out.size) fail("An array has another size than it says");
        return out;
    }

    // Of the text without the checksum itself, then of each array: name, type and shape, and its bytes.
    std::uint32_t checksum(std::string text) const {
        const size_t from = text.find("\"checksum\":"), to = text.find(',', from);  // the first: names are sorted
        if (to != std::string::npos) text.erase(from, to + 1 - from);
        std::uint32_t crc = crc32(text);
        for (const auto& entry : arrays_) {
            const Array& array = entry.second;
            crc = crc32(entry.first + " " + type_of(array.type).name + " " + array.shape, crc);
            crc = crc32(bytes_.data() + array.from, array.size, crc);
        }
        return crc;
    }

    const Array& array(const std::string& name) const {
        const auto found = arrays_.find(name);
        if (found == arrays_.end()) fail("The file has no array " + name);
        return found->second;
    }

    template <class Stored, class Out>
    std::vector<Out> copied(const std::string& name) const {
        const Array& from = array(name);
        std::vector<Stored> stored(from.size / sizeof(Stored));
        if (!stored.empty()) std::memcpy(stored.data(), bytes_.data() + from.from, stored.size() * sizeof(Stored));
        return std::vector<Out>(stored.begin(), stored.end());
    }

    std::string bytes_;
    Json header_, content_;
    std::map<std::string, Array> arrays_;
    mutable double left_ = 0.0;  // bytes that may still be asked for
};

template <class Numbers>
void check_size(const Numbers& numbers, size_t size) {
    if (numbers.size() != size) fail("A part of the model has another size than it says");
}

// Memory for a part of the core, aligned to 8 bytes.
using Block = std::vector<std::uint64_t>;

Block block_of(size_t bytes) { return Block((bytes + 7) / 8); }

constexpr std::uint32_t most_u32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t most_rows = 1u << 20;  // that an expert may keep

// ---- experts

class Expert {
public:
    virtual ~Expert() = default;
    virtual void predict(const double* x, double* scores) = 0;
    virtual double learn(const double* x, double y, double weight, double* scores) = 0;  // returns the risk
};

sf2el::Task task_of(const std::string& name) {
    if (name == "binary") return sf2el::Task::binary;
    if (name == "classes") return sf2el::Task::classes;
    fail("This program is for labels, not for numbers");
}

// Features of a row, and scores that an expert gives it.
struct Width {
    std::uint32_t dim, outputs;
};

template <class Params>
void set_outputs(Params& p, const Json& settings, const Width& width) {
    p.outputs = settings.count_or("outputs", p.outputs, width.outputs);
    if (settings.has("task")) p.task = task_of(settings["task"].text);
    if (p.outputs != width.outputs || (p.task == sf2el::Task::binary) != (p.outputs == 1))
        fail("The model's labels and its experts do not fit");
}

// The default's experts: only parameters that are not the usual ones are in the file.
sf2el::PosteriorParams posterior_params(const File& file, const Json& s, const Width& width) {
    // A file of a newer version may say what this reader cannot follow.
    static const std::set<std::string> known = {
        "size",    "outputs",   "task",        "gamma",     "linear_scale", "rbf_scale",    "bias",   "novelty", "forget",
        "centred", "tie_noise", "tie_novelty", "tie_power", "most_ties",    "keep_inverse", "slopes", "matched"};
    for (const auto& member : s.members)
        if (!known.count(member.first)) fail("This reader does not know the setting " + member.first);
    sf2el::PosteriorParams p;
    p.dim = width.dim;
    p.size = s.count_or("size", p.size, most_rows);
    set_outputs(p, s, width);
    p.gamma = s.real_or("gamma", p.gamma);
    p.linear_scale = s.real_or("linear_scale", p.linear_scale);
    p.rbf_scale = s.real_or("rbf_scale", p.rbf_scale);
    p.bias = s.real_or("bias", p.bias);
    p.novelty = s.real_or("novelty", p.novelty);
    p.forget = s.real_or("forget", p.forget);
    p.centred = s.real_or("centred", p.centred);
    p.tie_noise = s.real_or("tie_noise", p.tie_noise);
    p.tie_novelty = s.real_or("tie_novelty", p.tie_novelty);
    p.tie_power = s.count_or("tie_power", p.tie_power, 1000);
    p.most_ties = s.count_or("most_ties", p.most_ties, most_u32);
    p.keep_inverse = s.flag_or("keep_inverse", p.keep_inverse);
    p.slopes = s.flag_or("slopes", p.slopes);
    p.matched = s.flag_or("matched", p.matched);
    // More than any kind of it takes, state and scratch: halves are thawed into doubles.
    const double side = double(p.dim) + p.size + 2.0;
    file.ask(96.0 * side * side + 8.0 * (p.outputs + 8.0) * side);
    return p;
}

// A posterior of the core, in a block of its own, with the counters of the file.
template <class Core>
class PosteriorExpert : public Expert {
public:
    PosteriorExpert(const sf2el::PosteriorParams& p, const Json& seat)
        : p_(p),
          state_(block_of(Core::state_bytes(p_))),
          scratch_(block_of(Core::scratch_bytes(p_))),
          core_(p_, state_.data(), scratch_.data()) {
        auto& c = core_.counters();
        const Json& counts = seat["counters"];
        std::uint64_t* const kept[] = {&c.labels, &c.joined, &c.removed, &c.floored, &c.refreshed};
        for (size_t i = 0; i < 5; ++i) *kept[i] = counts.at(i).count();
        if (counts.items.size() > 5) c.ties = std::uint32_t(counts.at(5).count(most_u32));
        c.residuals = seat["residuals"].real();
        c.n = std::uint32_t(seat["rows"].count(p_.size));
    }

    void predict(const double* x, double* scores) override { core_.predict(x, scores); }

    double learn(const double* x, double y, double weight, double* scores) override {
        return core_.learn(x, y, weight, scores);
    }

protected:
    size_t coordinates() const { return core_.linear() + core_.size(); }

    sf2el::PosteriorParams p_;
    Block state_, scratch_;
    Core core_;
};

// One after the other: rows, coefficients, and the lower triangles of covariance and, if kept, inverse.
template <class Real>
class RealExpert final : public PosteriorExpert<sf2el::Posterior<Real>> {
public:
    RealExpert(const File& file, const std::string& key, const Json& seat, const Width& width)
        : PosteriorExpert<sf2el::Posterior<Real>>(posterior_params(file, seat["settings"], width), seat) {
        auto& core = this->core_;
        const auto& p = this->p_;
        const std::vector<Real> numbers = file.reals<Real>(key);
        const size_t dim = p.dim, n = core.size(), all = this->coordinates();
        const size_t inverse = p.keep_inverse ? n * (n + 1) / 2 : 0;
        check_size(numbers, n * dim + p.outputs * all + all * (all + 1) / 2 + inverse);
        const Real* from = numbers.data();
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) core.feature(s, j) = *from++;
        for (size_t k = 0; k < p.outputs; ++k)
            for (size_t j = 0; j < all; ++j) core.mean(k)[j] = *from++;
        for (size_t i = 0; i < all * (all + 1) / 2; ++i) core.covariance()[i] = *from++;
        for (size_t i = 0; i < inverse; ++i) core.inverse()[i] = *from++;
    }
};

// Halves: rows, and the lower triangle of the matrix in place of the covariance. The coefficients apart, as floats;
// and, if kept, the factor of the inverse: an exponent for each row, then its lower triangle.
class HalvedExpert final : public PosteriorExpert<sf2el::Halved> {
public:
    HalvedExpert(const File& file, const std::string& key, const Json& seat, const Width& width)
        : PosteriorExpert(posterior_params(file, seat["settings"], width), seat) {
        const std::vector<sf2el::Half> halves = file.halves<sf2el::Half>(key, "F16", 0x7C00);
        const std::vector<float> mean = file.reals<float>(key + ".mean");
        const size_t dim = p_.dim, n = core_.size(), all = coordinates();
        check_size(halves, n * dim + all * (all + 1) / 2);
        check_size(mean, p_.outputs * all);
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) core_.feature(s, j) = halves[s * dim + j];
        for (size_t i = 0; i < all * (all + 1) / 2; ++i) core_.innovations()[i] = halves[n * dim + i];
        for (size_t k = 0; k < p_.outputs; ++k)
            for (size_t j = 0; j < all; ++j) core_.mean(k)[j] = mean[k * all + j];
        if (!p_.keep_inverse || p_.size == 0) return;
        const std::vector<std::int16_t> factor = file.whole_numbers(key + ".factor");
        check_size(factor, n + n * (n + 1) / 2);
        constexpr int largest_exponent = 20;
        for (size_t r = 0; r < n; ++r) {
            if (factor[r] > largest_exponent || factor[r] < -largest_exponent) fail("An expert's factor is none");
            core_.exponents()[r] = factor[r];
        }
        std::copy(factor.begin() + std::ptrdiff_t(n), factor.end(), core_.factor());
    }
};

// Another expert, which sees rows turned: without the correlations that the features had shown, or each feature
// by how evenly it had varied. A row of factors is a diagonal.
class TurnedExpert final : public Expert {
public:
    TurnedExpert(std::unique_ptr<Expert> inner, std::vector<float> matrix, std::uint32_t dim, double limit)
        : inner_(std::move(inner)), matrix_(std::move(matrix)), turned_(dim), limit_(limit) {
        diagonal_ = matrix_.size() == dim;
        if (!diagonal_) check_size(matrix_, size_t(dim) * dim);
    }

    void predict(const double* x, double* scores) override { inner_->predict(turned(x), scores); }

    double learn(const double* x, double y, double weight, double* scores) override {
        return inner_->learn(turned(x), y, weight, scores);
    }

private:
    const double* turned(const double* x) {
        const size_t n = turned_.size();
        for (size_t j = 0; j < n; ++j) {
            double value = 0.0;
            if (diagonal_) value = double(matrix_[j]) * x[j];
            for (size_t i = 0; !diagonal_ && i < n; ++i) value += double(matrix_[j * n + i]) * x[i];  // by rows
            turned_[j] = std::max(-limit_, std::min(limit_, value));
        }
        return turned_.data();
    }

    std::unique_ptr<Expert> inner_;
    std::vector<float> matrix_;
    std::vector<double> turned_;
    double limit_;
    bool diagonal_ = false;
};

// In place of the linear expert where there was no room for its covariance.
class LogisticExpert final : public Expert {
public:
    LogisticExpert(const File& file, const std::string& key, const Json& seat, const Width& width)
        : block_(file.reals<double>(key)) {
        const Json& s = seat["settings"];
        p_.dim = width.dim;
        set_outputs(p_, s, width);
        p_.step = s.real_or("step", p_.step);
        p_.power = s.real_or("power", p_.power);
        p_.scale = s.real_or("scale", p_.scale);
        check_size(block_, sf2el::OnlineLogistic::reals(p_));
        scratch_.resize(sf2el::OnlineLogistic::scratch_reals(p_));
        core_ = std::make_unique<sf2el::OnlineLogistic>(p_, block_.data(), scratch_.data());
    }

    void predict(const double* x, double* scores) override { core_->predict(x, scores); }

    double learn(const double* x, double y, double weight, double* scores) override {
        return core_->learn(x, y, weight, scores);
    }

private:
    sf2el::LogisticParams p_;
    std::vector<double> block_, scratch_;
    std::unique_ptr<sf2el::OnlineLogistic> core_;
};

template <class Value>
Value chosen(const std::string& name, std::initializer_list<std::pair<const char*, Value>> known) {
    for (const auto& entry : known)
        if (name == entry.first) return entry.second;
    fail("This program does not know " + name);
}

sf2el::LearnerParams learner_params(const Json& s, bool lean) {
    using namespace sf2el;
    LearnerParams p;
    p.kernel_terms = 0;
    for (const Json& term : s["kernel"].items) {
        if (p.kernel_terms == most_kernel_terms) fail("The kernel has too many terms");
        KernelTerm& t = p.kernel[p.kernel_terms++];
        t.kind = chosen<KernelKind>(term.at(0).text, {{"RBF", KernelKind::rbf},
                                                    {"Laplacian", KernelKind::laplacian},
                                                    {"Polynomial", KernelKind::polynomial},
                                                    {"Linear", KernelKind::linear},
                                                    {"Constant", KernelKind::constant}});
        const Json& given = term.at(1);
        t.gamma = given.real_or("gamma", given.real_or("value", t.gamma));
        t.offset = given.real_or("offset", t.offset);
        t.degree = std::int32_t(given.count_or("degree", std::uint32_t(t.degree), 16));
    }
    p.graph_width = s["graph_width"].real();
    p.ridge = s["ridge"].real();
    p.smoothness = s["smoothness"].real();
    p.step = s["step"].real();
    p.label_rate = s["label_rate"].is_null() ? 0.0 : s["label_rate"].real();
    p.radius = s["radius"].real();
    p.jitter = s["jitter"].real();
    p.pursuit_steps = std::uint32_t(s["pursuit_steps"].count(1000));
    p.loss = chosen<Loss>(s["loss"].text, {{"logistic", Loss::logistic},
                                           {"hinge", Loss::hinge},
                                           {"squared_hinge", Loss::squared_hinge},
                                           {"squared", Loss::squared},
                                           {"absolute", Loss::absolute}});
    p.equations = chosen<Equations>(s["equations"].text, {{"gradient", Equations::gradient},
                                                          {"printed", Equations::printed},
                                                          {"printed-weighted", Equations::printed_weighted}});
    p.projection = !lean && s["projection"].text == "exact" ? Projection::exact : Projection::pursuit;
    p.keep_gram = !lean && s["keep_gram"].flag();
    if (p.projection == Projection::exact && !p.keep_gram) fail("The learner's settings do not go together");
    p.manifold = s["manifold"].flag();
    p.cap = s["cap"].flag();
    p.project_on_skip = s["on_skip"].text == "project";
    p.stratified = s["sampling"].text == "stratified";
    return p;
}

// The same learner as one of the default's experts (PAPER in src/sf2el/experts/entries.py); the rest is as usual.
sf2el::LearnerParams bank_params(bool lean) {
    sf2el::LearnerParams p;
    p.kernel[0].gamma = 2.5;
    p.graph_width = 7.5;
    p.step = 2.0;
    p.project_on_skip = true;
    if (lean) {
        p.projection = sf2el::Projection::pursuit;
        p.keep_gram = false;
    }
    return p;
}

// The paper's learner.
template <class Real>
class PaperExpert final : public Expert {
public:
    PaperExpert(const File& file, const std::string& key, const Json& seat, const sf2el::LearnerParams& params,
                const Width& width)
        : p_(params) {
        if (width.outputs != 1) fail("The model's labels and its experts do not fit");
        p_.dim = width.dim;
        p_.capacity = std::uint32_t(seat["rows"].count(most_rows));
        // More than state and scratch take: rows, two matrices, a pursuit's columns.
        const double rows = p_.capacity, steps = std::min(rows, double(p_.pursuit_steps)) + 1.0;
        file.ask(8.0 * ((rows + 2.0) * (p_.dim + rows + steps + 16.0) + steps * steps));
        state_ = block_of(sf2el::Learner<Real>::state_bytes(p_));
        scratch_ = block_of(sf2el::Learner<Real>::scratch_bytes(p_));
        core_ = std::make_unique<sf2el::Learner<Real>>(p_, state_.data(), scratch_.data());
        fill(file, key, seat["counters"]);
    }

    void predict(const double* x, double* scores) override { *scores = core_->predict(x); }

    double learn(const double* x, double y, double weight, double* scores) override {
        const sf2el::Outcome outcome = core_->learn(x, y, weight);
        *scores = outcome.score;
        return outcome.risk;
    }

private:
    void fill(const File& file, const std::string& key, const Json& counters) {
        const auto rows = file.reals<Real>(key + ".rows"), beta = file.reals<Real>(key + ".beta"),
                   weights = file.reals<Real>(key + ".weights");
        const size_t n = beta.size();
        if (n > p_.capacity) fail("A learner has more rows than it can");
        check_size(rows, n * p_.dim);
        check_size(weights, n);
        auto& c = core_->counters();
        c.seen = counters["seen"].count();
        c.labels = counters["labels"].count();
        c.clock = counters["clock"].count();
        c.rng = counters["rng"].count();
        for (size_t i = 0; i < 2; ++i) {
            c.seen_by_kind[i] = counters["seen_by_kind"].at(i).count();
            c.decay[i] = counters["decay"].at(i).real();
        }
        c.norm_bound = counters.real_or("norm_bound", HUGE_VAL);
        if (counters.has("refreshes")) c.refreshes = counters["refreshes"].count();
        c.n = std::uint32_t(n);
        for (size_t s = 0; s < n; ++s) {
            for (size_t j = 0; j < p_.dim; ++j) core_->feature(s, j) = rows[s * p_.dim + j];
            core_->beta()[s] = beta[s];
            core_->weights()[s] = weights[s];
        }
        if (core_->kinds()) fail("This program does not read stratified buffers");
        c.kept[0] = c.n;
        if (core_->inverse() && file.has(key + ".inverse")) {
            const auto inverse = file.reals<Real>(key + ".inverse");
            check_size(inverse, n * (n + 1) / 2);
            std::copy(inverse.begin(), inverse.end(), core_->inverse());
            c.inverse_ready = 1;
        }
        core_->fill_gram();
    }

    sf2el::LearnerParams p_;
    Block state_, scratch_;
    std::unique_ptr<sf2el::Learner<Real>> core_;
};

// ---- a space: names, scaling, experts

constexpr double most_scaled = 5.0;  // standard deviations beyond which a feature is clipped

class Scaling {
public:
    virtual ~Scaling() = default;
    virtual void scale(const double* row, double* out, bool keep) = 0;
};

template <class Real>
class ScalingOf final : public Scaling {
public:
    // `state`: means, sums of squared deviations, counts.
    ScalingOf(const std::vector<double>& state, std::uint32_t dim, double divisor)
        : block_(block_of(sf2el::Scaler<Real>::bytes(dim))), scaler_(dim, block_.data(), divisor) {
        check_size(state, 3 * size_t(dim));
        scaler_.set_state(state.data());
    }

    void scale(const double* row, double* out, bool keep) override { scaler_.scale(row, out, keep); }

private:
    Block block_;
    sf2el::Scaler<Real> scaler_;
};

// In single precision deviations and counts are apart from the means.
std::unique_ptr<Scaling> scaling(const File& file, const std::string& key, std::uint32_t dim, double divisor) {
    auto state = file.reals<double>(key);
    if (!file.has(key + ".spread")) return std::make_unique<ScalingOf<double>>(state, dim, divisor);
    const auto spread = file.reals<float>(key + ".spread");
    check_size(spread, 2 * size_t(dim));
    for (const float value : spread)
        if (value < 0.0f) fail("A feature's spread is none");
    for (size_t j = 0; j < dim; ++j) state.push_back(double(spread[j]) * double(spread[j]) * double(spread[dim + j]));
    for (size_t j = 0; j < dim; ++j) state.push_back(double(spread[dim + j]));
    return std::make_unique<ScalingOf<float>>(state, dim, divisor);
}

struct Space {
    std::vector<std::string> names;
    std::uint32_t dim = 0;
    double divisor = 1.0;
    std::unique_ptr<Scaling> scaler;
    std::vector<std::unique_ptr<Expert>> experts;

    Space(const File& file, const std::string& key, const Json& space, const Json& recipe, std::uint32_t outputs) {
        names = file.names(key + ".names");
        dim = std::uint32_t(space["dim"].count(file.size()));
        const bool nameless = names.empty() && key == "past";  // of a model that an early version had saved
        if (dim == 0 || (names.size() != dim && !nameless)) fail("The file does not name all features");
        divisor = std::sqrt(std::max(1.0, double(space["born"].count(dim))));
        if (file.has(key + ".scaler")) scaler = scaling(file, key + ".scaler", dim, divisor);
        const auto& seats = space["seats"].items;
        for (size_t i = 0; i < seats.size(); ++i)
            experts.push_back(expert(file, key + "." + std::to_string(i), seats[i], recipe, {dim, outputs}));
    }

    std::unique_ptr<Expert> expert(const File& file, const std::string& key, const Json& seat, const Json& recipe,
                                   const Width& width) const {
        const std::string& kind = seat["kind"].text;
        const std::string precision = seat.has("precision") ? seat["precision"].text : "float64";
        if (kind == "logistic") return std::make_unique<LogisticExpert>(file, key, seat, width);
        if (kind == "posterior") {
            std::unique_ptr<Expert> own;
            if (precision == "float16") own = std::make_unique<HalvedExpert>(file, key, seat, width);
            else if (precision == "float32") own = std::make_unique<RealExpert<float>>(file, key, seat, width);
            else own = std::make_unique<RealExpert<double>>(file, key, seat, width);
            const std::string turn = key + ".turn";
            if (!file.has(turn)) return own;
            return std::make_unique<TurnedExpert>(std::move(own), file.reals<float>(turn), dim, most_scaled / divisor);
        }
        if (kind != "learner") fail("This program does not know experts of kind " + kind);
        const bool lean = seat["lean"].flag();
        const auto params = recipe.has("settings") ? learner_params(recipe["settings"], lean) : bank_params(lean);
        if (precision == "float32") return std::make_unique<PaperExpert<float>>(file, key, seat, params, width);
        return std::make_unique<PaperExpert<double>>(file, key, seat, params, width);
    }

    // A row as the experts see it; with `keep` it enters the running statistics.
    std::vector<double> view(const std::vector<double>& row, bool keep) {
        if (!scaler) return row;
        std::vector<double> out(dim);
        scaler->scale(row.data(), out.data(), keep);
        return out;
    }
};

// ---- the map that recovers the vanished features

class Recovery {
public:
    virtual ~Recovery() = default;
    virtual void apply(const double* z, double* x) const = 0;
};

// The paper's; it takes rows as the experts see them.
class RidgeRecovery final : public Recovery {
public:
    RidgeRecovery(const File& file, std::uint32_t from, std::uint32_t to, const Json& recipe)
        : block_(file.reals<double>("psi")) {
        const auto kept = block_;
        sf2el::RecoveryParams p{from, to, recipe["map_ridge"].real(), recipe["map_intercept"].truth};
        check_size(kept, sf2el::RecoveryMap::reals(p));
        map_ = std::make_unique<sf2el::RecoveryMap>(p, block_.data());
        std::copy(kept.begin(), kept.end(), block_.begin());
    }

    void apply(const double* z, double* x) const override { map_->recover(z, x); }

private:
    std::vector<double> block_;
    std::unique_ptr<sf2el::RecoveryMap> map_;
};

struct MapShape {
    std::uint32_t from, to, rank;
    double limit;
};

// The default's; it takes rows as they were read. With a rank it is kept as so many factors.
template <class Real>
class AffineRecovery final : public Recovery {
public:
    AffineRecovery(const File& file, const std::vector<Real>& linear, const MapShape& shape)
        : block_(asked(file, shape)), map_(shape.from, shape.to, shape.rank, shape.limit, block_.data()) {
        const auto head = file.reals<double>("psi");  // center, offset
        check_size(head, size_t(shape.from) + shape.to);
        check_size(linear, sf2el::AffineMap<Real>::numbers(shape.from, shape.to, shape.rank));
        std::copy(head.begin(), head.begin() + shape.from, map_.center());
        std::copy(head.begin() + shape.from, head.end(), map_.offset());
        std::copy(linear.begin(), linear.end(), map_.linear());
    }

    void apply(const double* z, double* x) const override { map_.apply(z, x); }

private:
    static Block asked(const File& file, const MapShape& shape) {
        file.ask(8.0 * (shape.from + 2.0) * (shape.to + 2.0));
        return block_of(sf2el::AffineMap<Real>::bytes(shape.from, shape.to, shape.rank));
    }

    Block block_;
    sf2el::AffineMap<Real> map_;
};

std::unique_ptr<Recovery> affine_recovery(const File& file, const Json& psi, const std::string& precision,
                                          std::uint32_t from, const Space& past) {
    const std::uint32_t rank = psi.count_or("rank", 0, std::min(from, past.dim));
    const MapShape shape{from, past.dim, rank, most_scaled / past.divisor};
    const std::string kept = rank > 0 ? "psi.factors" : "psi.matrix";
    if (psi.has("brief")) {
        const auto linear = file.halves<sf2el::Brief>(kept, "U16", 0x7F80);
        return std::make_unique<AffineRecovery<sf2el::Brief>>(file, linear, shape);
    }
    if (precision == "float32")
        return std::make_unique<AffineRecovery<float>>(file, file.reals<float>(kept), shape);
    return std::make_unique<AffineRecovery<double>>(file, file.reals<double>(kept), shape);
}

// ---- the model

class Model {
public:
    explicit Model(const File& file) : content_(file.content()) {
        if (content_["kind"].text != "classifier") fail("This program is for classifiers");
        const Json &stage = content_["stage"], &recipe = content_["recipe"];
        if (stage.is_null()) fail("This model has not seen a row yet");
        bank_ = recipe["kind"].text == "bank";
        const auto outputs = std::uint32_t(stage["outputs"].count(file.size()));
        if (outputs == 0 || (outputs > 1 && !bank_)) fail("The model's labels are none");
        outputs_ = outputs;
        current_ = std::make_unique<Space>(file, "current", stage["current"], recipe, outputs);
        if (current_->experts.empty()) fail("The model has no expert");
        if (!stage["psi"].is_null()) {
            past_ = std::make_unique<Space>(file, "past", stage["past"], recipe, outputs);
            const auto from = std::uint32_t(stage["psi"]["new_dim"].count(current_->dim));
            if (!bank_) map_ = std::make_unique<RidgeRecovery>(file, from, past_->dim, recipe);
            else map_ = affine_recovery(file, stage["psi"], recipe["precision"].text, from, *past_);
        }
        changing_ = !stage["upcoming"].is_null();
        weights_ = file.reals<double>("weights");
        const size_t experts = (past_ ? past_->experts.size() : 0) + current_->experts.size();
        bool sure = false;
        if (bank_) {
            // After the bank's weights and losses come two numbers that only Python needs, when features change;
            // after those how sure each expert may be, where older files end.
            const size_t before = sf2el::FixedShare::reals(experts, false);
            sure = weights_.size() != before + 2;
            check_size(weights_, sf2el::FixedShare::reals(experts, sure) + 2);
            weights_.erase(weights_.begin() + before, weights_.begin() + before + 2);
            for (size_t i = before; i < weights_.size(); ++i) {
                const bool logarithm = i < before + experts;
                if (logarithm ? std::fabs(weights_[i]) > sf2el::most_sureness : weights_[i] < 0.0)
                    fail("An expert's sureness is none");
            }
        } else {
            check_size(weights_, sf2el::Hedge::reals(experts));
        }
        const auto kept = weights_;
        file.ask(8.0 * double(experts) * (outputs + 1.0));
        if (bank_) {
            const std::vector<double> prior(experts, 1.0);
            share_ = std::make_unique<sf2el::FixedShare>(prior.data(), experts, stage["share"].real(), sure,
                                                         weights_.data());
        } else {
            const double eta = past_ && !recipe["eta"].is_null() ? recipe["eta"].real() : 0.0;
            hedge_ = std::make_unique<sf2el::Hedge>(experts, eta, weights_.data());
        }
        std::copy(kept.begin(), kept.end(), weights_.begin());
        scores_.resize(experts * outputs_);
        risks_.resize(experts);
    }

    const std::vector<std::string>& names() const { return current_->names; }
    bool changing() const { return changing_; }

    // The score of the first label against the second, or the probability of each of several labels.
    std::vector<double> predict(const std::vector<double>& row) {
        const auto view = current_->view(row, false);
        double* scores = scores_.data();
        if (past_) {
            const auto recovered = past_view(row, view, false);
            for (auto& expert : past_->experts) scores = predicted(*expert, recovered, scores);
        }
        for (auto& expert : current_->experts) scores = predicted(*expert, view, scores);
        return mixed();
    }

    // `y`: the label's text; "" for an unlabelled row.
    void learn(const std::vector<double>& row, const std::string& y) {
        const double target = target_of(y);
        const auto view = current_->view(row, true);
        size_t place = 0;
        if (past_) {
            const auto recovered = past_view(row, view, true);
            for (auto& expert : past_->experts) learned(*expert, recovered, target, place++);
        }
        for (auto& expert : current_->experts) learned(*expert, view, target, place++);
        if (hedge_) hedge_->update(risks_.data());
        else share_->follow(scores_.data(), outputs_, target, 1.0, risks_.data());
    }

private:
    double* predicted(Expert& expert, const std::vector<double>& view, double* scores) {
        expert.predict(view.data(), scores);
        return scores + outputs_;
    }

    void learned(Expert& expert, const std::vector<double>& view, double target, size_t place) {
        double* scores = scores_.data() + place * outputs_;
        risks_[place] = expert.learn(view.data(), target, 1.0, scores);
    }

    // What the vanished features would have read; those that are still there, as they read.
    std::vector<double> past_view(const std::vector<double>& row, const std::vector<double>& view, bool keep) {
        std::vector<double> out(past_->dim);
        map_->apply(bank_ ? row.data() : view.data(), out.data());
        std::vector<double> seen(past_->dim, std::numeric_limits<double>::quiet_NaN());
        bool any = false;
        for (size_t i = 0; i < past_->names.size(); ++i)
            for (size_t j = 0; j < current_->names.size(); ++j)
                if (past_->names[i] == current_->names[j]) {
                    seen[i] = row[j];
                    any = true;
                }
        if (!any) return out;
        const auto scaled = past_->view(seen, keep);
        for (size_t i = 0; i < seen.size(); ++i)
            if (seen[i] == seen[i]) out[i] = scaled[i];
        return out;
    }

    std::vector<double> mixed() const {
        if (hedge_) return {risks_.size() == 1 ? scores_[0] : hedge_->combine(scores_.data())};
        if (outputs_ == 1) return {share_->mix_log_odds(scores_.data())};
        std::vector<double> out(outputs_);
        share_->mix_classes(scores_.data(), outputs_, out.data());
        return out;
    }

    // True and 1 are the same label, and so are false and 0.
    static bool means(const std::string& label, const Json& known) {
        if (known.kind != Json::Kind::boolean) return known.text == label;
        if (known.truth) return label == "true" || label == "True" || label == "1";
        return label == "false" || label == "False" || label == "0";
    }

    double target_of(const std::string& label) const {
        if (label.empty()) return std::numeric_limits<double>::quiet_NaN();
        if (!content_["labels"]["class_weight"].is_null()) fail("This program does not weigh labels");
        const auto& seen = content_["labels"]["seen"].items;
        for (size_t i = 0; i < seen.size(); ++i)
            if (means(label, seen[i]) && i < std::max(size_t(2), outputs_))
                return outputs_ > 1 ? double(i) : (i == 0 ? 1.0 : -1.0);
        fail("The model has not seen the label " + label);
    }

    const Json& content_;
    bool bank_ = false, changing_ = false;
    size_t outputs_ = 1;
    std::unique_ptr<Space> current_, past_;
    std::unique_ptr<Recovery> map_;
    std::vector<double> weights_, scores_, risks_;
    std::unique_ptr<sf2el::FixedShare> share_;
    std::unique_ptr<sf2el::Hedge> hedge_;
};

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> out(1);
    for (const char c : line) {
        if (c == ',') out.emplace_back();
        else if (c != '\r') out.back() += c;
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) fail("Usage: read_model MODEL.safetensors < rows.csv");
    const File file(argv[1]);
    Model model(file);
    std::string listed;
    for (const auto& name : model.names()) listed += (listed.empty() ? "" : ",") + name;
    std::fprintf(stderr, "%s\n", listed.c_str());
    if (model.changing()) std::fprintf(stderr, "Features are changing in this model; it is asked as if they stayed.\n");
    const size_t dim = model.names().size();
    for (std::string line; std::getline(std::cin, line);) {
        const auto fields = fields_of(line);
        if (fields.size() != dim && fields.size() != dim + 1) fail("A row has " + std::to_string(fields.size()) + " values");
        std::vector<double> row;
        for (size_t j = 0; j < dim; ++j) {
            char* end = nullptr;
            row.push_back(std::strtod(fields[j].c_str(), &end));
            if (end == fields[j].c_str() || !(std::fabs(row.back()) <= 1e100)) fail("A value is no number: " + fields[j]);
        }
        const auto scores = model.predict(row);
        for (size_t k = 0; k < scores.size(); ++k) std::printf(k ? ",%.17g" : "%.17g", scores[k]);
        std::printf("\n");
        if (fields.size() > dim) model.learn(row, fields[dim]);
    }
    return 0;
}
