#include "pseudo_table.hpp"

#include <algorithm>

#include "../support/parallel.hpp"

namespace crfkit {

namespace {

constexpr int64_t kChunk = 128;        // samples whose scores are computed together
constexpr double kWorkOfThread = 4e6;  // multiplications that are worth a thread
constexpr double kWorkOfCheck = 1e7;   // between looks for Ctrl-C

}  // namespace

PseudoTable::PseudoTable(int64_t n_samples, int64_t n_nodes, int64_t K, const int32_t* states, const int32_t* labels,
                         const double* weights, const double* bank, int64_t n_bank, const Part& nodes,
                         const Part& edges)
    : n_samples_(n_samples),
      n_nodes_(n_nodes),
      K_(K),
      stride_((n_samples + 7) / 8 * 8),
      states_(states, states + n_nodes),
      weights_(stride_),
      bank_(n_bank * stride_),
      one_hot_(n_nodes * K * stride_) {
    for (Buffer* buffer : {&weights_, &bank_, &one_hot_}) buffer->zero();
    std::copy_n(weights, n_samples, weights_.data());
    for (int64_t c = 0; c < n_bank; ++c) std::copy_n(bank + c * n_samples, n_samples, bank_.data() + c * stride_);
    for (int64_t s = 0; s < n_samples; ++s)
        for (int64_t i = 0; i < n_nodes; ++i) one_hot_.data()[(i * K + labels[s * n_nodes + i]) * stride_ + s] = 1.0;
    starts_.reserve(static_cast<size_t>(nodes.n * (nodes.B + 1) + edges.n * (edges.B + 1)));  // factors point into it
    add(nodes);
    add(edges);
}

void PseudoTable::add(const Part& part) {
    const bool single = part.ends == nullptr;
    const int64_t n_pairs = single ? K_ : K_ * K_;
    columns_.push_back(std::make_unique<int32_t[]>(static_cast<size_t>(part.n * part.n_columns)));
    std::copy_n(part.columns, part.n * part.n_columns, columns_.back().get());
    // the terms of T_b, once for each b
    std::vector<int64_t> first(static_cast<size_t>(part.B) + 1);
    std::vector<PseudoTerm> found;
    for (int64_t b = 0; b < part.B; ++b) {
        if (!part.basis) found.push_back({static_cast<int32_t>(b / K_), static_cast<int32_t>(b % K_), 1.0});
        for (int64_t pair = 0; pair < n_pairs && part.basis; ++pair)
            if (const double value = part.basis[b * n_pairs + pair]; value != 0.0)
                found.push_back({static_cast<int32_t>(single ? pair : pair / K_),
                                 static_cast<int32_t>(single ? 0 : pair % K_), value});
        first[b + 1] = static_cast<int64_t>(found.size());
    }
    // rows of a factor follow one another, so each factor has its own copies
    int64_t n_terms = 0;
    for (int64_t e = 0; e < part.n; ++e)
        for (int64_t b = 0; b < part.B; ++b) n_terms += part.active[e * part.B + b] ? first[b + 1] - first[b] : 0;
    terms_.push_back(std::make_unique<PseudoTerm[]>(static_cast<size_t>(n_terms)));
    PseudoTerm* term = terms_.back().get();
    for (int64_t e = 0; e < part.n; ++e) {
        const PseudoTerm* const* rows = starts_.data() + starts_.size();
        int64_t n_rows = 0;
        starts_.push_back(term);
        for (int64_t b = 0; b < part.B; ++b) {
            if (!part.active[e * part.B + b]) continue;
            term = std::copy(found.begin() + first[b], found.begin() + first[b + 1], term);
            starts_.push_back(term);
            ++n_rows;
        }
        factors_.push_back({single ? static_cast<int32_t>(e) : part.ends[2 * e], single ? -1 : part.ends[2 * e + 1],
                            columns_.back().get() + e * part.n_columns, part.n_columns, size_, rows, n_rows});
        size_ += n_rows * part.n_columns;
        work_ += 2.0 * static_cast<double>(n_rows * (part.n_columns + 4) * n_samples_);
    }
}

double PseudoTable::value(const double* w, double* gradient, const PseudoKernels& kernels, int n_threads,
                          const std::function<bool()>& poll) const {
    Interrupt interrupt(poll);
    const Buffer residuals(n_nodes_ * K_ * stride_);
    const PseudoTask whole{factors_.data(),
                           factors_.data() + factors_.size(),
                           w,
                           bank_.data(),
                           one_hot_.data(),
                           weights_.data(),
                           states_.data(),
                           residuals.data(),
                           gradient,
                           0,
                           stride_,
                           stride_,
                           n_nodes_,
                           K_};
    const int64_t n_chunks = (stride_ + kChunk - 1) / kChunk, n_factors = static_cast<int64_t>(factors_.size());
    const int threads = static_cast<int>(std::clamp(work_ / kWorkOfThread, 1.0, std::max(1.0, double(n_threads))));
    std::vector<double> parts(static_cast<size_t>(n_chunks));
    const int64_t of_chunks = std::min<int64_t>(threads, n_chunks), of_factors = std::min<int64_t>(threads, n_factors);
    run_threads(static_cast<int>(of_chunks), [&](int thread) {
        for (int64_t c = n_chunks * thread / of_chunks; c < n_chunks * (thread + 1) / of_chunks; ++c) {
            interrupt.check(thread);
            PseudoTask task = whole;
            task.first = c * kChunk;
            task.last = std::min(stride_, (c + 1) * kChunk);
            parts[static_cast<size_t>(c)] = kernels.value(task);
        }
    });
    const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(n_factors * kWorkOfCheck / (work_ + 1.0)));
    run_threads(static_cast<int>(of_factors), [&](int thread) {
        const int64_t end = n_factors * (thread + 1) / of_factors;
        for (int64_t f = n_factors * thread / of_factors; f < end; f += step) {
            interrupt.check(thread);
            PseudoTask task = whole;
            task.begin = whole.begin + f;
            task.end = whole.begin + std::min(f + step, end);
            kernels.gradient(task);
        }
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

}  // namespace crfkit
