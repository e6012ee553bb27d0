// What the bindings of chains share.
#pragma once

#include <string>
#include <utility>

#include "../core/chain/kernels.hpp"
#include "../core/chain/plan.hpp"
#include "../core/chain/weights.hpp"
#include "../core/support/parallel.hpp"
#include "../core/support/views.hpp"
#include "common.hpp"

namespace crfkit {

using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Encoded sequences, kept alive by the arrays. The constructor checks that the arrays fit each other.
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
    int64_t n_labels, n_attributes, n_pair_attributes;
    OptionalArray<int64_t> state_offsets;
    OptionalArray<int32_t> state_labels;
    OptionalArray<int32_t> transition_codes;
    int64_t n_transition;
    OptionalArray<int64_t> pair_offsets;
    OptionalArray<int32_t> pair_codes;
    int64_t order;
    OptionalArray<int32_t> triple_codes;
    int64_t n_triple;
    OptionalArray<uint8_t> allowed, allowed_start, allowed_end;
    OptionalArray<int32_t> label_classes;
    int64_t n_classes;
    OptionalArray<int64_t> class_offsets;
    OptionalArray<int32_t> class_codes;

    FieldView view() const {
        const auto count = [](const OptionalArray<int32_t>& listed, int64_t all) {
            return listed ? static_cast<int64_t>(listed->size()) : all;
        };
        FieldView v;
        v.n_labels = n_labels;
        v.n_attributes = n_attributes;
        v.n_pair_attributes = n_pair_attributes;
        v.order = order;
        v.state_offsets = pointer(state_offsets);
        v.state_labels = pointer(state_labels);
        v.n_state = count(state_labels, n_attributes * n_labels);
        v.transition_codes = pointer(transition_codes);
        v.n_transition = n_transition;
        v.pair_offsets = pointer(pair_offsets);
        v.pair_codes = pointer(pair_codes);
        v.n_pair = count(pair_codes, n_pair_attributes * n_labels * n_labels);
        v.triple_codes = pointer(triple_codes);
        v.n_triple = n_triple;
        v.label_classes = pointer(label_classes);
        v.n_classes = n_classes;
        v.class_offsets = pointer(class_offsets);
        v.class_codes = pointer(class_codes);
        v.n_class = label_classes ? count(class_codes, n_attributes * n_classes) : 0;
        v.allowed = pointer(allowed);
        v.allowed_start = pointer(allowed_start);
        v.allowed_end = pointer(allowed_end);
        return v;
    }
};

// The data of a loss, which must fit the field and the cost of mistakes.
SequenceView checked_view(const Sequences& data, const Field& field, const OptionalArray<double>& cost, bool hinge);

inline const ChainKernels& kernels_named(const std::string& name) {
    const ChainKernels* kernels = find_kernels(name.c_str());
    if (!kernels) throw nb::value_error(("no kernels named '" + name + "' run on this machine").c_str());
    return *kernels;
}

inline void check_size(const FieldView& field, size_t n) {
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
    PreparedWeights prepared;

    Decoder(Field f, Array<double> w, const std::string& name)
        : field(std::move(f)),
          weights(std::move(w)),
          kernels(kernels_named(name)),
          prepared(field.view(), kernels, wide_rows(field.view())) {
        check_size(field.view(), weights.size());
        prepared.set(weights.data());
    }
};

}  // namespace crfkit
