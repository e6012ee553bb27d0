#include "one_sequence.hpp"

namespace crfkit {

void OneSequence::set(const SequenceView& data, const FieldView& field, const ChainWeights& w) {
    field_ = field;
    w_ = w;
    log_z_.reset();
    planned_.emplace(data, field_, false, false);
    length_ = data.n_positions;
    scratch_.reserve(kernels_.scratch_size(length_ > 0 ? length_ : 1, field_.n_labels, field_.order,
                                           planned_->view().pair_offsets != nullptr, false));
}

ChainRange OneSequence::range() {
    return {0, 0, 1, scratch_.data(), [](void*, int) {}, nullptr};
}

double OneSequence::viterbi(int32_t* labels) {
    double score = 0.0;
    kernels_.viterbi(planned_->view(), w_, labels, &score, range());
    return score;
}

double OneSequence::score(const int32_t* labels) {
    return score_labels(kernels_.best_scores(planned_->view(), w_, 0, range()), w_, labels);
}

void OneSequence::infer() {
    if (log_z_) return;
    double log_z = 0.0;
    node_.reserve(length_ * field_.n_labels);
    kernels_.marginals(planned_->view(), w_, &log_z, node_.data(), nullptr, range());
    log_z_ = log_z;
}

double OneSequence::log_z() {
    infer();
    return *log_z_;
}

const double* OneSequence::marginals() {
    infer();
    return node_.data();
}

}  // namespace crfkit
