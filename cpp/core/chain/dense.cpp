#include "dense.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "../support/checks.hpp"
#include "../support/denormals.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

namespace {

constexpr double kWorthAThread = 50'000;  // multiplications; less is done before another thread has begun
constexpr int64_t kTogether = 4;          // sequences that a thread takes at a time

const TrainingKernels<double>& in_precision(const ChainKernels& kernels, double) { return kernels; }
const TrainingKernels<float>& in_precision(const ChainKernels& kernels, float) { return *kernels.single; }

// Transitions as the kernels have them; -inf forbids.
template <class Real>
class Jumps {
public:
    Jumps(int64_t n_labels, const Real* transitions, const TrainingKernels<Real>& kernels)
        : allowed_(static_cast<size_t>(n_labels * n_labels)), tables_(field_of(n_labels, transitions), kernels) {
        tables_.set(transitions, static_cast<const Real*>(nullptr), 1.0, false);
        tables_.describe(view_);
        view_.scale = 1.0;
    }
    const ChainWeightsOf<Real>& view() const { return view_; }

private:
    FieldView field_of(int64_t n_labels, const Real* transitions) {
        FieldView field;
        field.n_labels = n_labels;
        field.n_transition = n_labels * n_labels;
        bool all = true;
        for (size_t i = 0; i < allowed_.size(); ++i) {
            allowed_[i] = transitions[i] != -std::numeric_limits<Real>::infinity();
            all &= allowed_[i] != 0;
        }
        if (!all) field.allowed = allowed_.data();
        return field;
    }
    std::vector<uint8_t> allowed_;
    JumpTables<Real> tables_;
    ChainWeightsOf<Real> view_{};
};

// Calls work(range) for a few sequences at a time, with scratch_size(longest) numbers of scratch.
template <class Real, class Given, class Size, class Work>
void over_batch(const ChainDenseOf<Given>& data, int n_threads, const Poll& poll, const Size& scratch_size,
                const Work& work) {
    int64_t longest = 1;
    double positions = 0.0;
    for (int64_t n = 0; n < data.n_sequences; ++n) {
        check_number(data.lengths[n], 0, data.n_steps, "lengths");
        const int64_t* labels = data.labels ? data.labels + n * data.n_steps : nullptr;
        if (labels) check_ids({labels, static_cast<size_t>(data.lengths[n])}, data.n_labels, "labels");
        longest = std::max(longest, data.lengths[n]);
        positions += static_cast<double>(data.lengths[n]);
    }
    const double cost = positions * 3.0 * static_cast<double>(data.n_labels * data.n_labels);
    const auto worth = static_cast<int>(std::min(cost / kWorthAThread, 1e6));
    const int64_t numbers = scratch_size(longest);
    Interrupt interrupt(poll);
    std::atomic<int64_t> next{0};
    share_threads(usable_threads(std::min(n_threads, worth), data.n_sequences), [&](int thread) {
        const FlushDenormals flush(sizeof(Real) == sizeof(float));
        const BufferOf<Real> scratch(numbers);
        for (int64_t n = next.fetch_add(kTogether); n < data.n_sequences; n = next.fetch_add(kTogether))
            work(ChainRange{thread, n, std::min(n + kTogether, data.n_sequences), scratch.data(), check_interrupt,
                            &interrupt});
    });
}

// The scratch of a sequence, by its length.
template <class Real>
auto lattice_of(const TrainingKernels<Real>& kernels, int64_t n_labels) {
    return [&kernels, n_labels](int64_t longest) { return kernels.scratch_size(longest, n_labels, 1, false, false); };
}

}  // namespace

template <class Real>
void dense_beliefs(const ChainDenseOf<Real>& data, const Real* transitions, const ChainKernels& kernels, int n_threads,
                   double* log_z, Real* node, Real* edge, const Poll& poll) {
    const TrainingKernels<Real>& precise = in_precision(kernels, Real{});
    const Jumps<Real> jumps(data.n_labels, transitions, precise);
    over_batch<Real>(data, n_threads, poll, lattice_of(precise, data.n_labels), [&](const ChainRange& range) {
        precise.dense_beliefs(data, jumps.view(), log_z, node, edge, range);
    });
}

template <class Real>
void dense_viterbi(const ChainDenseOf<Real>& data, const double* transitions, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll) {
    const TrainingKernels<double>& precise = kernels;
    const Jumps<double> jumps(data.n_labels, transitions, precise);
    over_batch<double>(data, n_threads, poll, lattice_of(precise, data.n_labels), [&](const ChainRange& range) {
        if constexpr (std::is_same_v<Real, float>)
            kernels.dense_viterbi_of_floats(data, jumps.view(), labels, scores, range);
        else
            kernels.dense_viterbi(data, jumps.view(), labels, scores, range);
    });
}

void dense_covariances(const ChainDenseOf<double>& data, const double* transitions, const ChainDenseDirection& along,
                       const ChainKernels& kernels, int n_threads, double* node, double* edge, const Poll& poll) {
    const Jumps<double> jumps(data.n_labels, transitions, kernels);
    const auto size = [&](int64_t longest) { return kernels.dense_curvature_scratch(longest, data.n_labels); };
    over_batch<double>(data, n_threads, poll, size, [&](const ChainRange& range) {
        kernels.dense_covariances(data, jumps.view(), along, node, edge, range);
    });
}

template void dense_beliefs(const ChainDenseOf<float>&, const float*, const ChainKernels&, int, double*, float*, float*,
                            const Poll&);
template void dense_beliefs(const ChainDenseOf<double>&, const double*, const ChainKernels&, int, double*, double*,
                            double*, const Poll&);
template void dense_viterbi(const ChainDenseOf<float>&, const double*, const ChainKernels&, int, int32_t*, double*,
                            const Poll&);
template void dense_viterbi(const ChainDenseOf<double>&, const double*, const ChainKernels&, int, int32_t*, double*,
                            const Poll&);

}  // namespace crfkit
