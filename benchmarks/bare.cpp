// The least that a round of one learner could cost: the distances of a new row
// to b rows, two exponentials of each (kernel and graph weight), two products
// of a b x b matrix with a vector. Nothing else: no score, no step, no buffer.
//
//   bare B [B ...]     prints, for each B, the microseconds a round
//
// Written to be fast with plain loops: the number of features is known to the
// compiler, rows lie feature by feature, matrices are full and their product
// runs down the columns, four or eight at a time (whichever is faster at that
// size is reported). Build with the flags of cmake/flags.cmake: see bare.py.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "numerics.hpp"
#include "rng.hpp"

namespace {

constexpr std::size_t dim = 10, new_rows = 256;
constexpr int repeats = 60;  // short ones, of about a millisecond: some are then undisturbed

void distances(const double* __restrict rows, std::size_t b, const double* __restrict x, double* __restrict out) {
    for (std::size_t s = 0; s < b; ++s) {
        double total = 0.0;
        for (std::size_t j = 0; j < dim; ++j) {
            const double difference = rows[j * b + s] - x[j];
            total += difference * difference;
        }
        out[s] = total;
    }
}

void exponentials(const double* __restrict squared, double width, std::size_t b, double* __restrict out) {
    for (std::size_t s = 0; s < b; ++s) out[s] = sf2el::exp_neg(-width * squared[s]);
}

// y = A x, A full and symmetric, four columns at a time.
void product_by_four(const double* __restrict a, const double* __restrict x, double* __restrict y, std::size_t b) {
    for (std::size_t i = 0; i < b; ++i) y[i] = 0.0;
    std::size_t j = 0;
    for (; j + 4 <= b; j += 4) {
        const double *a0 = a + j * b, *a1 = a0 + b, *a2 = a1 + b, *a3 = a2 + b;
        const double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        for (std::size_t i = 0; i < b; ++i) y[i] += (a0[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3);
    }
    for (; j < b; ++j)
        for (std::size_t i = 0; i < b; ++i) y[i] += a[j * b + i] * x[j];
}

// The same, eight columns at a time.
void product_by_eight(const double* __restrict a, const double* __restrict x, double* __restrict y, std::size_t b) {
    for (std::size_t i = 0; i < b; ++i) y[i] = 0.0;
    std::size_t j = 0;
    for (; j + 8 <= b; j += 8) {
        const double *a0 = a + j * b, *a1 = a0 + b, *a2 = a1 + b, *a3 = a2 + b;
        const double *a4 = a3 + b, *a5 = a4 + b, *a6 = a5 + b, *a7 = a6 + b;
        const double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        const double x4 = x[j + 4], x5 = x[j + 5], x6 = x[j + 6], x7 = x[j + 7];
        for (std::size_t i = 0; i < b; ++i)
            y[i] += ((a0[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3)) +
                    ((a4[i] * x4 + a5[i] * x5) + (a6[i] * x6 + a7[i] * x7));
    }
    for (; j < b; ++j)
        for (std::size_t i = 0; i < b; ++i) y[i] += a[j * b + i] * x[j];
}

using Product = void (*)(const double*, const double*, double*, std::size_t);

double seconds_a_round(std::size_t b, Product product, double& sink) {
    std::uint64_t random = 1;
    const auto numbers = [&random](std::size_t n) {
        std::vector<double> out(n);
        for (double& value : out) value = double(sf2el::random_word(random) >> 11) * 0x1p-53;
        return out;
    };
    const std::vector<double> rows = numbers(b * dim), gram = numbers(b * b), inverse = numbers(b * b);
    const std::vector<double> x = numbers(new_rows * dim);
    std::vector<double> squared(b), kernel(b), weights(b), first(b), second(b);
    const std::size_t rounds = std::size_t(6e6 / (double(b) * double(b) + 600.0)) + 1;
    double best = 1e9;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t r = 0; r < rounds; ++r) {
            distances(rows.data(), b, x.data() + r % new_rows * dim, squared.data());
            exponentials(squared.data(), 0.25, b, kernel.data());
            exponentials(squared.data(), 0.75, b, weights.data());
            product(gram.data(), kernel.data(), first.data(), b);
            product(inverse.data(), weights.data(), second.data(), b);
            sink += first[r % b] + second[r % b];
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (took.count() / double(rounds) < best) best = took.count() / double(rounds);
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    double sink = 0.0;  // printed, so that nothing is optimised away
    for (int i = 1; i < argc; ++i) {
        const std::size_t b = std::size_t(std::atol(argv[i]));
        const double by_four = seconds_a_round(b, product_by_four, sink);
        const double by_eight = seconds_a_round(b, product_by_eight, sink);
        std::printf("%zu %.6f\n", b, 1e6 * (by_four < by_eight ? by_four : by_eight));
    }
    std::fprintf(stderr, "checksum %g\n", sink);
    return 0;
}
