// A field that owns the arrays that it indexes with.
#pragma once

#include <optional>
#include <vector>

#include "../support/views.hpp"

namespace crfkit {

// What a field is made of; src/crfkit/chain/fields/field.py documents it.
struct FieldParts {
    template <class T>
    using Listed = std::optional<std::vector<T>>;

    int64_t n_labels = 0, n_attributes = 0, n_pair_attributes = 0, order = 1;
    Listed<int64_t> state_offsets;
    Listed<int32_t> state_labels, transition_codes;
    int64_t n_transition = 0;
    Listed<int64_t> pair_offsets;
    Listed<int32_t> pair_codes, triple_codes;
    int64_t n_triple = 0;
    Listed<uint8_t> allowed, allowed_start, allowed_end;
    Listed<int32_t> label_classes;
    int64_t n_classes = 0;
    Listed<int64_t> class_offsets;
    Listed<int32_t> class_codes;
};

// Checked copies: the arrays that they come from may lie in a file that is overwritten, or belong to a caller who
// changes them, while weights are read and written at the places that they name.
class OwnedField {
public:
    // Throws std::invalid_argument where the parts do not fit each other.
    explicit OwnedField(FieldParts parts);
    OwnedField(const OwnedField&) = delete;  // the view points into it
    const FieldParts& parts() const { return parts_; }
    const FieldView& view() const { return view_; }

private:
    const FieldParts parts_;
    FieldView view_;
};

}  // namespace crfkit
