#include "engine.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "../support/denormals.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

int64_t longest_sequence(const ChainPlan& data, int64_t begin, int64_t end) {
    int64_t longest = 1;
    for (int64_t n = begin; n < end; ++n) longest = std::max(longest, data.starts[n + 1] - data.starts[n]);
    return longest;
}

void check_interrupt(void* interrupt, int thread) { static_cast<Interrupt*>(interrupt)->check(thread); }

int usable_threads(int n_threads, int64_t n_sequences) {
    return static_cast<int>(std::clamp<int64_t>(n_sequences, 1, std::max(n_threads, 1)));
}

namespace {

constexpr int kPartsPerThread = 4;                // where sums of their own cost little
constexpr int64_t kCheapSums = int64_t{1} << 18;  // numbers
constexpr int64_t kBlock = int64_t{1} << 15;      // weights that a thread takes at a time
constexpr int64_t kTogether = 64;                 // sequences whose jumps are added up in one table
constexpr double kLargestSingle = 1e4;            // weight; single floats next to it are 0.001 apart

// Work of a position: its attributes' rows plus three products of a row with an L x L matrix.
std::vector<int64_t> split_sequences(const ChainPlan& data, int64_t n_labels, int n_parts) {
    const double square = 3.0 * static_cast<double>(n_labels);
    return split_by_cost(data.n_sequences, n_parts, [&](int64_t n) {
        const int64_t t = data.starts[n];
        const int64_t entries = data.entry_offsets ? data.entry_offsets[t] : 0;
        return static_cast<double>(data.row_offsets[t] + entries) + square * static_cast<double>(t);
    });
}

ChainParts divide(const SequenceView& data, const FieldView& field, const PlannedData& planned, int n_threads) {
    ChainParts parts;
    std::vector<int64_t> counts(static_cast<size_t>(field.n_attributes), 0);
    for (int64_t k = 0; k < data.offsets[data.n_positions]; ++k) ++counts[static_cast<size_t>(data.attributes[k])];
    int64_t once = field.n_attributes;
    while (once > 0 && counts[static_cast<size_t>(once) - 1] == 1) --once;
    parts.once_row = field.state_offsets ? planned.rows().size() : once;
    // Weights of classes and of wide attributes get several terms, or are reached through rows: none is stored
    // directly.
    parts.once_weight = field.n_class;
    if (field.state_offsets) parts.once_weight += field.state_offsets[std::max(once, count_wide(field))];

    const ChainPlan& plan = planned.view();
    parts.n_threads = usable_threads(n_threads, data.n_sequences);
    const int64_t sums = parts.once_row * padded(field.n_labels) + parts.once_weight + field.n_pair + field.n_triple;
    const int n_parts = parts.n_threads > 1 && sums <= kCheapSums ? kPartsPerThread * parts.n_threads : parts.n_threads;
    parts.bounds = split_sequences(plan, field.n_labels, usable_threads(n_parts, data.n_sequences));
    parts.longest = longest_sequence(plan, 0, data.n_sequences);
    return parts;
}

}  // namespace

template <class Real>
ChainPass<Real>::ChainPass(const FieldView& field, const TrainingKernels<Real>& kernels, const PlannedData& data,
                           const ChainParts& parts)
    : weights(field, kernels, data.rows()), field_(field), kernels_(kernels), rows_(data.rows()), division_(parts) {
    const ChainWeightsOf<Real>& w = weights.view();
    const int64_t jumps = weights.jumps().jump_size();
    for (int k = 0; k < parts.count(); ++k) {
        Part part;
        part.rows = BufferOf<Real>(parts.once_row * w.row_stride + w.width);
        part.single = BufferOf<Real>(parts.once_weight);
        part.outer = BufferOf<Real>(jumps);
        part.jumps = BufferOf<Real>(jumps);
        part.point_outer = BufferOf<Real>(jumps);
        part.outer_sum = Buffer(jumps);
        part.jumps_sum = Buffer(jumps);
        part.point_outer_sum = Buffer(jumps);
        part.transitions = BufferOf<Real>(field.order == 2 ? field.n_labels * w.width : 0);
        part.pair = BufferOf<Real>(field.n_pair);
        parts_.push_back(std::move(part));
    }
    scratch_.resize(static_cast<size_t>(parts.n_threads));
}

template <class Real>
template <class Work>
void ChainPass<Real>::accumulate(double* out, const ChainPlan& plan, bool further, const Poll& poll, const Work& work) {
    Interrupt interrupt(poll);
    std::atomic<int> next{0};
    const int64_t numbers = kernels_.scratch_size(division_.longest, field_.n_labels, field_.order,
                                                  plan.pair_offsets != nullptr, further || is_weak(plan));
    share_threads(division_.n_threads, [&](int thread) {
        const FlushDenormals flush(sizeof(Real) == sizeof(float));
        BufferOf<Real>& scratch = scratch_[static_cast<size_t>(thread)];
        scratch.reserve(numbers);
        for (int k = next++; k < division_.count(); k = next++) {
            Part& part = parts_[static_cast<size_t>(k)];
            for (BufferOf<Real>* buffer :
                 {&part.rows, &part.single, &part.outer, &part.jumps, &part.point_outer, &part.transitions, &part.pair})
                buffer->zero();
            for (Buffer* buffer : {&part.outer_sum, &part.jumps_sum, &part.point_outer_sum}) buffer->zero();
            part.value = 0.0;
            const ChainGradientOf<Real> gradient{part.rows.data(),
                                                 part.single.data(),
                                                 out,
                                                 out - field_.n_class,
                                                 division_.once_row,
                                                 division_.once_weight,
                                                 part.outer.data(),
                                                 part.jumps.data(),
                                                 part.transitions.data(),
                                                 part.pair.data(),
                                                 nullptr,
                                                 0};
            const int64_t last = division_.bounds[static_cast<size_t>(k) + 1];
            for (int64_t n = division_.bounds[static_cast<size_t>(k)]; n < last; n += kTogether) {
                work(part, gradient,
                     ChainRange{thread, n, std::min(n + kTogether, last), scratch.data(), check_interrupt, &interrupt});
                add_tables(part);
            }
            distribute(part);
        }
    });
    add_up(out);
}

// Moves the tables of jumps to their sums.
template <class Real>
void ChainPass<Real>::add_tables(Part& part) const {
    const auto move = [](BufferOf<Real>& from, Buffer& to) {
        for (int64_t i = 0; i < from.size(); ++i) to.data()[i] += from.data()[i];
        from.zero();
    };
    move(part.outer, part.outer_sum);
    move(part.jumps, part.jumps_sum);
    move(part.point_outer, part.point_outer_sum);
}

// Adds the gradient of each row of the observed set to the weights that it scores.
template <class Real>
void ChainPass<Real>::distribute(Part& part) const {
    Real* single = part.single.data() + field_.n_class;
    const int64_t width = weights.view().width;
    for (int64_t g = 0; g < rows_.n_groups; ++g) {
        const Real* row = part.rows.data() + g * width;
        rows_.for_each_member(g, [&](int64_t r) {
            Real* member = part.rows.data() + r * width;
            for (int64_t j = 0; j < width; ++j) member[j] += row[j];
        });
    }
    for (int64_t r = rows_.n_groups; r < rows_.size(); ++r) {
        const Real* row = part.rows.data() + r * width;
        rows_.for_each_weight(r, field_, [&](int64_t f, int32_t label) { single[f] = row[label]; });
    }
}

template <class Real>
template <class Sums>
double ChainPass<Real>::total(Sums Part::* sums, int64_t i) const {
    double sum = (parts_[0].*sums).data()[i];
    for (size_t k = 1; k < parts_.size(); ++k) sum += (parts_[k].*sums).data()[i];
    return sum;
}

template <class Real>
double ChainPass<Real>::value() const {
    double sum = 0.0;
    for (const Part& part : parts_) sum += part.value;
    return sum;
}

// The jump i has the potential exp_jumps exp(shift) in log Z and jumps in the score of the labels.
template <class Real>
double ChainPass<Real>::rounding_of_jumps(const double* w) const {
    const ChainWeightsOf<Real>& view = weights.view();
    const double* transitions = w + field_.transition_at();
    double sum = 0.0;
    weights.jumps().each_jump([&](int64_t at, int64_t k) {
        const double e = view.exp_jumps[at];
        if (e > 0.0) sum += total(&Part::outer_sum, at) * e * (std::log(e) + view.shift - transitions[k]);
        sum += total(&Part::jumps_sum, at) * (static_cast<double>(view.jumps[at]) - transitions[k]);
    });
    return sum;
}

// gradient = sum of the parts, in their order.
template <class Real>
void ChainPass<Real>::add_up(double* gradient) const {
    const JumpTables<Real>& jumps = weights.jumps();
    const ChainWeightsOf<Real>& w = weights.view();
    const int64_t n_class = field_.n_class, n_labels = field_.n_labels;
    const int n_threads = division_.n_threads;
    const auto add = [&](int64_t size, double* out, BufferOf<Real> Part::* part, int64_t from) {
        share_range(n_threads, size, kBlock, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) out[i] = total(part, from + i);
        });
    };
    if (field_.state_offsets)
        add(division_.once_weight - n_class, gradient, &Part::single, n_class);
    else
        share_range(n_threads, division_.once_row, std::max<int64_t>(kBlock / n_labels, 1),
                    [&](int64_t begin, int64_t end) {
                        for (int64_t a = begin; a < end; ++a)
                            for (int64_t j = 0; j < n_labels; ++j)
                                gradient[a * n_labels + j] = total(&Part::rows, a * w.row_stride + j);
                    });
    add(n_class, gradient + field_.class_at(), &Part::single, 0);
    add(field_.n_pair, gradient + field_.pair_at(), &Part::pair, 0);
    double* target = gradient + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        target[k] = total(&Part::outer_sum, at) * w.exp_jumps[at] + total(&Part::jumps_sum, at);
    });
    if (field_.order == 2)
        jumps.each_transition(
            [&](int64_t at, int64_t k) { gradient[field_.transition_at() + k] = total(&Part::transitions, at); });
}

ChainObjective::ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels,
                               int n_threads, const double* cost, bool hinge, const PlanArrays* kept)
    : field_(field),
      kernels_(kernels),
      data_(kept ? PlannedData(data, field, *kept) : PlannedData(data, field, true, true, cost, n_threads)),
      plan_(data_.view()),
      hinge_(hinge),
      parts_(divide(data, field, data_, n_threads)) {}

// Where there are many weights, what one precision needs is much memory: it is freed for the other.
ChainPass<double>& ChainObjective::in_double() {
    single_.reset();
    if (!double_) double_ = std::make_unique<ChainPass<double>>(field_, kernels_, data_, parts_);
    return *double_;
}

ChainPass<float>& ChainObjective::in_single() {
    double_.reset();
    kept_ = false;
    if (!single_) single_ = std::make_unique<ChainPass<float>>(field_, *kernels_.single, data_, parts_);
    return *single_;
}

double ChainObjective::value_gradient(const double* w, double* gradient, bool keep, const Poll& poll) {
    using Part = ChainPass<double>::Part;
    ChainPass<double>& pass = in_double();
    const ChainWeights& view = pass.weights.view();
    pass.weights.set(w, parts_.n_threads);
    kept_ = false;
    if (hinge_) std::fill(gradient, gradient + field_.size(), 0.0);  // positions without a mistake are not visited
    ChainCache cache{nullptr, nullptr};
    if (keep) {
        cache_.reserve(cache_bytes() / static_cast<int64_t>(sizeof(double)));
        filled_.resize(static_cast<size_t>(plan_.n_sequences));
        cache = {cache_.data(), filled_.data()};
    }
    pass.accumulate(
        gradient, plan_, false, poll, [&](Part& part, const ChainGradient& target, const ChainRange& range) {
            part.value += hinge_ ? kernels_.hinge(plan_, view, target, range)
                                 : kernels_.value_gradient(plan_, view, target, keep ? &cache : nullptr, range);
        });
    if (keep) {
        kept_outer_.reserve(pass.weights.jumps().jump_size());
        for (int64_t i = 0; i < kept_outer_.size(); ++i) kept_outer_.data()[i] = pass.total(&Part::outer_sum, i);
        kept_ = true;
    }
    return pass.value();
}

bool ChainObjective::single_value_gradient(const double* w, double* gradient, double& value, const Poll& poll) {
    using Part = ChainPass<float>::Part;
    ChainPass<float>& pass = in_single();
    pass.weights.set(w, parts_.n_threads);
    if (!(pass.weights.largest() <= kLargestSingle && pass.weights.view().range <= kMaxSingleRange)) return false;
    pass.accumulate(
        gradient, plan_, false, poll, [&](Part& part, const ChainGradientOf<float>& target, const ChainRange& range) {
            part.value += kernels_.single->value_gradient(plan_, pass.weights.view(), target, nullptr, range);
        });
    value = pass.value();
    if (field_.order == 1 && !plan_.pair_offsets && !pass.weights.view().first_mask) value -= pass.rounding_of_jumps(w);
    return true;
}

int64_t ChainObjective::cache_bytes() const {
    const int64_t width = padded(field_.n_labels), span = field_.order == 1 ? width : (field_.n_labels + 1) * width;
    return 3 * plan_.n_positions * span * static_cast<int64_t>(sizeof(double));
}

void ChainObjective::hessian_product(const double* v, double* product, const Poll& poll) {
    using Part = ChainPass<double>::Part;
    ChainPass<double>& pass = in_double();
    const ChainWeights& w = pass.weights.view();
    const JumpTables<double>& jumps = pass.weights.jumps();
    const int64_t size = jumps.jump_size();
    if (!direction_) {
        direction_ = std::make_unique<PreparedWeights<double>>(field_, kernels_, data_.rows());
        tilted_ = Buffer(size);
        tilted_transposed_ = Buffer(w.span * w.width);
        tilted_transposed_.zero();
    }
    direction_->set(v, parts_.n_threads, true);
    for (int64_t i = 0; i < size; ++i) tilted_.data()[i] = w.exp_jumps[i] * direction_->view().jumps[i];
    jumps.transpose(tilted_.data(), tilted_transposed_.data());
    const ChainTangent tangent{&direction_->view(), tilted_.data(), tilted_transposed_.data()};
    const ChainCache cache{cache_.data(), filled_.data()};
    pass.accumulate(product, plan_, true, poll, [&](Part& part, const ChainGradient& target, const ChainRange& range) {
        kernels_.hessian_product(plan_, w, tangent, target, part.point_outer.data(), kept_ ? &cache : nullptr, range);
    });
    double* target = product + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        const double kept = kept_ ? kept_outer_.data()[at] : 0.0;
        target[k] += tilted_.data()[at] * (kept + pass.total(&Part::point_outer_sum, at));
    });
}

template <class Real>
void ChainObjective::diagonal_by(ChainPass<Real>& pass, const TrainingKernels<Real>& kernels, const double* w,
                                 double* diagonal, const Poll& poll) {
    using Part = typename ChainPass<Real>::Part;
    pass.weights.set(w, parts_.n_threads);
    const ChainPlan squared = data_.squared();
    const ChainWeightsOf<Real>& view = pass.weights.view();
    const JumpTables<Real>& jumps = pass.weights.jumps();
    pass.accumulate(diagonal, plan_, false, poll,
                    [&](Part& part, const ChainGradientOf<Real>& target, const ChainRange& range) {
                        kernels.hessian_diagonal(plan_, squared, view, target, part.point_outer.data(), range);
                    });
    double* target = diagonal + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        const double e = view.exp_jumps[at];
        target[k] = std::max(0.0, target[k] - e * e * pass.total(&Part::point_outer_sum, at));
    });
}

void ChainObjective::hessian_diagonal(const double* w, double* diagonal, bool single, const Poll& poll) {
    kept_ = false;
    if (single)
        diagonal_by(in_single(), *kernels_.single, w, diagonal, poll);
    else
        diagonal_by<double>(in_double(), kernels_, w, diagonal, poll);
}

}  // namespace crfkit
