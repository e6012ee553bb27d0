#include "chain.hpp"
#include "../core/chain/engine.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

void require(bool fits, const std::string& what) {
    if (!fits) throw nb::value_error(what.c_str());
}

// Whether offsets ascend from 0 to the end.
bool ascend(const Array<int64_t>& offsets, size_t end) {
    if (offsets.size() == 0 || offsets(0) != 0 || offsets(offsets.size() - 1) != static_cast<int64_t>(end))
        return false;
    for (size_t k = 1; k < offsets.size(); ++k)
        if (offsets(k) < offsets(k - 1)) return false;
    return true;
}

template <class T>
void require_size(const OptionalArray<T>& array, size_t expected, const char* name) {
    require(!array || array->size() == expected, std::string(name) + " must have " + std::to_string(expected) +
                                                     " entries, but has " + std::to_string(array ? array->size() : 0));
}

}  // namespace

void Sequences::check() const {
    require(offsets.size() > 0, "offsets must not be empty");
    const size_t n_positions = offsets.size() - 1;
    require(ascend(starts, n_positions), "starts must ascend from 0 to the number of positions");
    require(ascend(offsets, attributes.size()), "offsets must ascend from 0 to the number of attributes");
    require(pair_offsets.has_value() == pair_attributes.has_value(), "pair_offsets and pair_attributes go together");
    require_size(pair_offsets, n_positions + 1, "pair_offsets");
    require(!pair_offsets || ascend(*pair_offsets, pair_attributes->size()),
            "pair_offsets must ascend from 0 to the number of pair attributes");
    require_size(values, attributes.size(), "values");
    require_size(labels, n_positions, "labels");
    require_size(weights, starts.size() - 1, "weights");
    require_size(token_weights, n_positions, "token_weights");
}

SequenceView checked_view(const Sequences& data, const Field& field, const OptionalArray<double>& cost, bool hinge) {
    const auto n_labels = static_cast<size_t>(field.n_labels);
    require_size(data.targets, (data.offsets.size() - 1) * n_labels, "targets");
    require_size(cost, n_labels * n_labels, "cost");
    require(!hinge || !data.weak(), "the hinge loss needs labels that are known, and has no weights of positions");
    return data.view();
}

namespace {

struct Objective {
    Sequences data;
    Field field;
    ChainObjective objective;

    Objective(Sequences d, Field f, int n_threads, const std::string& kernels, const OptionalArray<double>& cost,
              bool hinge)
        : data(std::move(d)),
          field(std::move(f)),
          objective(checked_view(data, field, cost, hinge), field.view(), kernels_named(kernels), n_threads,
                    pointer(cost), hinge) {}

    // Derivatives of second order need labels that are known.
    void require_labels() const {
        require(!data.weak(), "there is no Hessian where labels are known in part or positions have weights");
    }
};

}  // namespace

void bind_chain(nb::module_& m) {
    nb::class_<Sequences>(m, "Sequences")
        .def(
            "__init__",
            [](Sequences* self, Array<int64_t> starts, Array<int64_t> offsets, Array<int32_t> attributes,
               OptionalArray<double> values, OptionalArray<int64_t> pair_offsets,
               OptionalArray<int32_t> pair_attributes, OptionalArray<int32_t> labels, OptionalArray<double> weights,
               OptionalArray<uint8_t> targets, OptionalArray<double> token_weights) {
                Sequences made{std::move(starts),       std::move(offsets),      std::move(attributes),
                               std::move(values),       std::move(pair_offsets), std::move(pair_attributes),
                               std::move(labels),       std::move(weights),      std::move(targets),
                               std::move(token_weights)};
                made.check();
                new (self) Sequences(std::move(made));
            },
            "starts"_a, "offsets"_a, "attributes"_a, "values"_a.none(), "pair_offsets"_a.none(),
            "pair_attributes"_a.none(), "labels"_a.none(), "weights"_a.none(), "targets"_a.none() = nb::none(),
            "token_weights"_a.none() = nb::none());

    nb::class_<Field>(m, "Field")
        .def(
            "__init__",
            [](Field* self, int64_t n_labels, int64_t n_attributes, int64_t n_pair_attributes,
               OptionalArray<int64_t> state_offsets, OptionalArray<int32_t> state_labels,
               OptionalArray<int32_t> transition_codes, int64_t n_transition, OptionalArray<int64_t> pair_offsets,
               OptionalArray<int32_t> pair_codes, int64_t order, OptionalArray<int32_t> triple_codes, int64_t n_triple,
               OptionalArray<uint8_t> allowed, OptionalArray<uint8_t> allowed_start, OptionalArray<uint8_t> allowed_end,
               OptionalArray<int32_t> label_classes, int64_t n_classes, OptionalArray<int64_t> class_offsets,
               OptionalArray<int32_t> class_codes) {
                new (self) Field{n_labels,
                                 n_attributes,
                                 n_pair_attributes,
                                 std::move(state_offsets),
                                 std::move(state_labels),
                                 std::move(transition_codes),
                                 n_transition,
                                 std::move(pair_offsets),
                                 std::move(pair_codes),
                                 order,
                                 std::move(triple_codes),
                                 n_triple,
                                 std::move(allowed),
                                 std::move(allowed_start),
                                 std::move(allowed_end),
                                 std::move(label_classes),
                                 n_classes,
                                 std::move(class_offsets),
                                 std::move(class_codes)};
            },
            "n_labels"_a, "n_attributes"_a, "n_pair_attributes"_a, "state_offsets"_a.none(), "state_labels"_a.none(),
            "transition_codes"_a.none(), "n_transition"_a, "pair_offsets"_a.none(), "pair_codes"_a.none(), "order"_a,
            "triple_codes"_a.none(), "n_triple"_a, "allowed"_a.none(), "allowed_start"_a.none(), "allowed_end"_a.none(),
            "label_classes"_a.none(), "n_classes"_a, "class_offsets"_a.none(), "class_codes"_a.none())
        .def_prop_ro("size", [](const Field& f) { return f.view().size(); });

    nb::class_<Objective>(m, "Objective", "Negative log-likelihood or hinge loss of chains and its derivatives.")
        .def(nb::init<Sequences, Field, int, const std::string&, const OptionalArray<double>&, bool>(), "data"_a,
             "field"_a, "n_threads"_a, "kernels"_a = "auto", "cost"_a.none() = nb::none(), "hinge"_a = false)
        .def(
            "value_gradient",
            [](Objective& self, const Array<double>& w, Output gradient, bool keep) {
                check_size(self.field.view(), w.size());
                check_size(self.field.view(), gradient.size());
                return interruptible(
                    [&] { return self.objective.value_gradient(w.data(), gradient.data(), keep, poll_signals); });
            },
            "w"_a, "gradient"_a, "keep"_a = false,
            "Fills gradient, returns the value. With keep, Hessian products at w start from what is left behind.")
        .def(
            "hessian_product",
            [](Objective& self, const Array<double>& v, Output product) {
                self.require_labels();
                check_size(self.field.view(), v.size());
                check_size(self.field.view(), product.size());
                interruptible([&] { self.objective.hessian_product(v.data(), product.data(), poll_signals); });
            },
            "v"_a, "product"_a, "product = Hessian times v, at the w of the last value_gradient; w must be alive.")
        .def(
            "hessian_diagonal",
            [](Objective& self, const Array<double>& w, Output diagonal) {
                self.require_labels();
                check_size(self.field.view(), w.size());
                check_size(self.field.view(), diagonal.size());
                interruptible([&] { self.objective.hessian_diagonal(w.data(), diagonal.data(), poll_signals); });
            },
            "w"_a, "diagonal"_a, "diagonal = sum of p (1 - p) over the occurrences of each feature.")
        .def_prop_ro("cache_bytes", [](const Objective& self) { return self.objective.cache_bytes(); });
}

}  // namespace crfkit
