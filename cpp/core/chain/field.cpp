#include "field.hpp"

#include <string>
#include <utility>

#include "../support/checks.hpp"

namespace crfkit {

namespace {

template <class T>
const T* pointer(const FieldParts::Listed<T>& listed) {
    return listed ? listed->data() : nullptr;
}

// Offsets and codes of n rows, or neither. Returns the number of weights: of the codes, or of all.
int64_t count_rows(const FieldParts::Listed<int64_t>& offsets, const FieldParts::Listed<int32_t>& codes, int64_t n,
                   int64_t end, const char* name) {
    if (offsets.has_value() != codes.has_value()) refuse(std::string(name) + " offsets and codes go together");
    if (!offsets) return checked_product({n, end}, "weights");
    check_rows(*offsets, *codes, n, end, name);
    return static_cast<int64_t>(codes->size());
}

// Codes of weights, or none: then there is a weight for all or for none.
void check_block(const FieldParts::Listed<int32_t>& codes, int64_t n, int64_t end, const char* name) {
    if (codes) {
        check_size(codes->size(), n, name);
        check_codes(*codes, end, name);
    } else if (n != 0 && n != end) {
        refuse(std::string(name) + ": expected " + std::to_string(end) + " or none, not " + std::to_string(n));
    }
}

void check_flags(const FieldParts::Listed<uint8_t>& flags, int64_t expected, const char* name) {
    if (flags) check_size(flags->size(), expected, name);
}

}  // namespace

OwnedField::OwnedField(FieldParts parts) : parts_(std::move(parts)) {
    const FieldParts& p = parts_;
    const int64_t n = p.n_labels;
    check_labels(n, p.order);
    check_number(p.n_attributes, 0, kMostIds, "n_attributes");
    check_number(p.n_pair_attributes, 0, kMostIds, "n_pair_attributes");
    check_number(p.n_classes, 0, kMostIds, "n_classes");
    check_flags(p.allowed, n * n, "allowed");
    check_flags(p.allowed_start, n, "allowed_start");
    check_flags(p.allowed_end, n, "allowed_end");
    view_.n_state = count_rows(p.state_offsets, p.state_labels, p.n_attributes, n, "state");
    view_.n_pair = count_rows(p.pair_offsets, p.pair_codes, p.n_pair_attributes, n * n, "pair");
    check_block(p.transition_codes, p.n_transition, n * n, "transition codes");
    check_block(p.triple_codes, p.n_triple, p.order == 2 ? n * n * n : 0, "triple codes");
    if (p.label_classes) {
        check_size(p.label_classes->size(), n, "label_classes");
        check_ids(*p.label_classes, p.n_classes, "label_classes");
        view_.n_class = count_rows(p.class_offsets, p.class_codes, p.n_attributes, p.n_classes, "class");
    } else {
        require(!p.class_offsets && !p.class_codes && p.n_classes == 0, "class weights need label_classes");
    }
    view_.n_labels = n;
    view_.n_attributes = p.n_attributes;
    view_.n_pair_attributes = p.n_pair_attributes;
    view_.order = p.order;
    view_.state_offsets = pointer(p.state_offsets);
    view_.state_labels = pointer(p.state_labels);
    view_.transition_codes = pointer(p.transition_codes);
    view_.n_transition = p.n_transition;
    view_.pair_offsets = pointer(p.pair_offsets);
    view_.pair_codes = pointer(p.pair_codes);
    view_.triple_codes = pointer(p.triple_codes);
    view_.n_triple = p.n_triple;
    view_.label_classes = pointer(p.label_classes);
    view_.n_classes = p.n_classes;
    view_.class_offsets = pointer(p.class_offsets);
    view_.class_codes = pointer(p.class_codes);
    view_.allowed = pointer(p.allowed);
    view_.allowed_start = pointer(p.allowed_start);
    view_.allowed_end = pointer(p.allowed_end);
}

}  // namespace crfkit
