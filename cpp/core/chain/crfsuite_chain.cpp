#include "crfsuite_chain.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan.hpp"

namespace crfkit {

using crfsuite::Feature;

namespace {

// (target, weight) of the features of a source, targets ascending; each must be there once, with a finite weight.
std::vector<std::pair<int32_t, double>> sorted_features(const crfsuite::File& file, crfsuite::Type type,
                                                        size_t source) {
    std::vector<std::pair<int32_t, double>> found;
    file.each_feature(type, source, [&](size_t id, const Feature& feature) {
        if (!std::isfinite(feature.weight))
            crfsuite::refuse("the weight of feature " + std::to_string(id) + " is not finite");
        found.emplace_back(static_cast<int32_t>(feature.target), feature.weight);
    });
    std::sort(found.begin(), found.end());
    for (size_t k = 1; k < found.size(); ++k)
        if (found[k].first == found[k - 1].first) crfsuite::refuse("a feature occurs twice");
    return found;
}

}  // namespace

CrfsuiteChain::CrfsuiteChain(std::string_view file, const ChainKernels& kernels) : file_(file) {
    const size_t n = file_.labels.size();
    if (n > 46340) crfsuite::refuse("there are more than 46340 labels");  // codes of label pairs are 32-bit numbers
    file_.labels.each([&](std::string_view text) { labels_.emplace_back(text); });
    std::vector<std::string_view> names(labels_.begin(), labels_.end());
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) != names.end()) crfsuite::refuse("a label occurs twice");
    for (size_t i = 0; i < n; ++i)
        for (const auto& [j, weight] : sorted_features(file_, crfsuite::kTransition, i)) {
            transition_codes_.push_back(static_cast<int32_t>(i * n) + j);
            transition_weights_.push_back(weight);
        }
    transitions_ = std::make_unique<PreparedWeights<double>>(transition_field(), kernels, RowTable{});
    transitions_->set(transition_weights_.data());
}

int32_t CrfsuiteChain::find(std::string_view attribute) {
    const uint64_t hash = taken_.hash(attribute);
    if (const int32_t taken = taken_.view().find(attribute, hash); taken >= 0) return taken;
    const int32_t id = file_.attributes.find(attribute);
    if (id < 0) return -1;
    for (const auto& [label, weight] : sorted_features(file_, crfsuite::kState, static_cast<size_t>(id))) {
        state_labels_.push_back(label);
        state_weights_.push_back(weight);
    }
    state_offsets_.push_back(static_cast<int64_t>(state_labels_.size()));
    return taken_.intern(attribute, hash);
}

FieldView CrfsuiteChain::transition_field() const {
    FieldView field;
    field.n_labels = static_cast<int64_t>(labels_.size());
    field.state_offsets = state_offsets_.data();
    field.n_wide = 0;
    field.transition_codes = transition_codes_.data();
    field.n_transition = static_cast<int64_t>(transition_codes_.size());
    return field;
}

FieldView CrfsuiteChain::field() const {
    FieldView field = transition_field();
    field.n_attributes = static_cast<int64_t>(state_offsets_.size()) - 1;
    field.state_labels = state_labels_.data();
    field.n_state = static_cast<int64_t>(state_labels_.size());
    return field;
}

ChainWeights CrfsuiteChain::weights() const {
    ChainWeights w = transitions_->view();
    w.single = state_weights_.data();
    return w;
}

}  // namespace crfkit
