// What the bindings of chains share.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "../core/chain/field.hpp"
#include "../core/chain/kernels/kernels.hpp"
#include "../core/chain/plan.hpp"
#include "../core/chain/weights.hpp"
#include "../core/support/parallel.hpp"
#include "../core/support/views.hpp"
#include "common.hpp"

namespace crfkit {

using Output = OutputArray<double>;

// Encoded sequences, kept alive by the arrays and read in place: whoever hands them over lets nobody change them (see
// SequenceData). The constructor checks that the arrays fit each other, and what uses them that their ids fit a field.
struct Sequences {
    Array<int64_t> starts, offsets;
    Array<int32_t> attributes;
    OptionalArray<double> values;
    OptionalArray<int64_t> pair_offsets;
    OptionalArray<int32_t> pair_attributes, labels;
    OptionalArray<double> weights;
    OptionalArray<uint8_t> targets;
    OptionalArray<double> token_weights;

    // Throws if an array is shorter or longer than the others say.
    void check() const;
    // Whether labels are known in part, or positions have weights of their own.
    bool weak() const { return targets.has_value() || token_weights.has_value(); }

    SequenceView view() const {
        return {static_cast<int64_t>(starts.size()) - 1,
                static_cast<int64_t>(offsets.size()) - 1,
                starts.data(),
                offsets.data(),
                attributes.data(),
                pointer(values),
                pointer(pair_offsets),
                pointer(pair_attributes),
                pointer(labels),
                pointer(weights),
                nullptr,
                pointer(targets),
                pointer(token_weights)};
    }
};

struct Field {
    std::shared_ptr<const OwnedField> owned;
    int64_t n_labels;

    explicit Field(FieldParts parts)
        : owned(std::make_shared<OwnedField>(std::move(parts))), n_labels(owned->view().n_labels) {}
    const FieldView& view() const { return owned->view(); }
};

// The data, which must fit the field's labels.
SequenceView checked_view(const Sequences& data, const Field& field);
// The same for a loss; also the cost of mistakes must fit.
SequenceView checked_view(const Sequences& data, const Field& field, const OptionalArray<double>& cost, bool hinge);

inline const ChainKernels& kernels_named(const std::string& name) {
    const ChainKernels* kernels = find_kernels(name.c_str());
    if (!kernels) throw nb::value_error(("no kernels named '" + name + "' run on this machine").c_str());
    return *kernels;
}

inline void check_weights(const FieldView& field, size_t n) {
    if (static_cast<int64_t>(n) != field.size())
        throw nb::value_error(
            ("the field has " + std::to_string(field.size()) + " weights, but " + std::to_string(n) + " were given")
                .c_str());
}

// A field with its weights, prepared for the kernels.
struct Decoder {
    Field field;
    Array<double> weights;
    const ChainKernels& kernels;
    PreparedWeights<double> prepared;

    Decoder(Field f, Array<double> w, const std::string& name)
        : field(std::move(f)),
          weights(std::move(w)),
          kernels(kernels_named(name)),
          prepared(field.view(), kernels, wide_rows(field.view())) {
        check_weights(field.view(), weights.size());
        prepared.set(weights.data());
    }
};

}  // namespace crfkit
