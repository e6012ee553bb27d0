#include "chain.hpp"

#include <nanobind/stl/optional.h>
#include "../core/chain/engine.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

template <class T>
void check_optional(const OptionalArray<T>& array, int64_t expected, const char* name) {
    if (array) check_size(array->size(), expected, name);
}

template <class T>
FieldParts::Listed<T> copied(const OptionalArray<T>& array) {
    if (!array) return std::nullopt;
    return std::vector<T>(array->data(), array->data() + array->size());
}

}  // namespace

void Sequences::check() const {
    require(offsets.size() > 0, "offsets must not be empty");
    const auto n_positions = static_cast<int64_t>(offsets.size()) - 1;
    check_offsets(span_of(starts), n_positions, "starts");
    check_offsets(span_of(offsets), static_cast<int64_t>(attributes.size()), "offsets");
    require(pair_offsets.has_value() == pair_attributes.has_value(), "pair_offsets and pair_attributes go together");
    check_optional(pair_offsets, n_positions + 1, "pair_offsets");
    if (pair_offsets)
        check_offsets(span_of(*pair_offsets), static_cast<int64_t>(pair_attributes->size()), "pair_offsets");
    check_optional(values, static_cast<int64_t>(attributes.size()), "values");
    check_optional(labels, n_positions, "labels");
    check_optional(weights, static_cast<int64_t>(starts.size()) - 1, "weights");
    check_optional(token_weights, n_positions, "token_weights");
}

SequenceView checked_view(const Sequences& data, const Field& field) {
    const auto n_positions = static_cast<int64_t>(data.offsets.size()) - 1;
    check_optional(data.targets, checked_product({n_positions, field.n_labels}, "targets"), "targets");
    return data.view();
}

SequenceView checked_view(const Sequences& data, const Field& field, const OptionalArray<double>& cost, bool hinge) {
    check_optional(cost, field.n_labels * field.n_labels, "cost");
    require(!hinge || !data.weak(), "the hinge loss needs labels that are known, and has no weights of positions");
    return checked_view(data, field);
}

namespace {

// What Objective.plan returned, from where it was kept.
struct KeptPlan {
    Array<int64_t> group_offsets;
    Array<int32_t> group_members;
    Array<int64_t> row_offsets, entry_offsets;
    Array<int32_t> rows;
    Array<uint32_t> entry_weights;
    Array<uint16_t> entry_labels;
    Array<double> row_values, entry_values;

    PlanArrays view() const {
        return {span_of(group_offsets), span_of(group_members), span_of(row_offsets),
                span_of(entry_offsets), span_of(rows),          span_of(entry_weights),
                span_of(entry_labels),  span_of(row_values),    span_of(entry_values)};
    }
};

struct Objective {
    Sequences data;
    Field field;
    std::optional<KeptPlan> kept;
    PlanArrays arrays;  // of `kept`
    ChainObjective objective;
    bool hinge;
    std::optional<Array<double>> at;  // the weights of the last evaluation, which Hessian products read again

    Objective(Sequences d, Field f, Threads n_threads, const std::string& kernels, const OptionalArray<double>& cost,
              bool hinge, std::optional<KeptPlan> plan)
        : data(std::move(d)),
          field(std::move(f)),
          kept(std::move(plan)),
          objective(checked_view(data, field, cost, hinge), field.view(), kernels_named(kernels), n_threads,
                    pointer(cost), hinge, kept_view(cost)),
          hinge(hinge) {}

    const PlanArrays* kept_view(const OptionalArray<double>& cost) {
        require(!kept || (!cost && data.labels), "a kept plan is for data with labels, without a cost");
        if (!kept) return nullptr;
        arrays = kept->view();
        return &arrays;
    }

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
               const OptionalArray<int64_t>& state_offsets, const OptionalArray<int32_t>& state_labels,
               const OptionalArray<int32_t>& transition_codes, int64_t n_transition,
               const OptionalArray<int64_t>& pair_offsets, const OptionalArray<int32_t>& pair_codes, int64_t order,
               const OptionalArray<int32_t>& triple_codes, int64_t n_triple, const OptionalArray<uint8_t>& allowed,
               const OptionalArray<uint8_t>& allowed_start, const OptionalArray<uint8_t>& allowed_end,
               const OptionalArray<int32_t>& label_classes, int64_t n_classes,
               const OptionalArray<int64_t>& class_offsets, const OptionalArray<int32_t>& class_codes) {
                FieldParts parts;
                parts.n_labels = n_labels;
                parts.n_attributes = n_attributes;
                parts.n_pair_attributes = n_pair_attributes;
                parts.order = order;
                parts.state_offsets = copied(state_offsets);
                parts.state_labels = copied(state_labels);
                parts.transition_codes = copied(transition_codes);
                parts.n_transition = n_transition;
                parts.pair_offsets = copied(pair_offsets);
                parts.pair_codes = copied(pair_codes);
                parts.triple_codes = copied(triple_codes);
                parts.n_triple = n_triple;
                parts.allowed = copied(allowed);
                parts.allowed_start = copied(allowed_start);
                parts.allowed_end = copied(allowed_end);
                parts.label_classes = copied(label_classes);
                parts.n_classes = n_classes;
                parts.class_offsets = copied(class_offsets);
                parts.class_codes = copied(class_codes);
                new (self) Field(std::move(parts));
            },
            "n_labels"_a, "n_attributes"_a, "n_pair_attributes"_a, "state_offsets"_a.none(), "state_labels"_a.none(),
            "transition_codes"_a.none(), "n_transition"_a, "pair_offsets"_a.none(), "pair_codes"_a.none(), "order"_a,
            "triple_codes"_a.none(), "n_triple"_a, "allowed"_a.none(), "allowed_start"_a.none(), "allowed_end"_a.none(),
            "label_classes"_a.none(), "n_classes"_a, "class_offsets"_a.none(), "class_codes"_a.none())
        .def_prop_ro("size", [](const Field& f) { return f.view().size(); })
        .def(
            "array",
            [](nb::object self, const std::string& name) -> nb::object {
                const FieldParts& parts = nb::cast<const Field&>(self).owned->parts();
                const auto taken = [&](const auto& listed) -> nb::object {
                    if (!listed) return nb::none();
                    using T = typename std::decay_t<decltype(*listed)>::value_type;
                    return nb::cast(Numpy1<const T>(listed->data(), {listed->size()}, self));
                };
                if (name == "state_offsets") return taken(parts.state_offsets);
                if (name == "state_labels") return taken(parts.state_labels);
                if (name == "transition_codes") return taken(parts.transition_codes);
                if (name == "pair_offsets") return taken(parts.pair_offsets);
                if (name == "pair_codes") return taken(parts.pair_codes);
                if (name == "triple_codes") return taken(parts.triple_codes);
                if (name == "label_classes") return taken(parts.label_classes);
                if (name == "class_offsets") return taken(parts.class_offsets);
                if (name == "class_codes") return taken(parts.class_codes);
                throw nb::value_error("a field has no such array");
            },
            "name"_a, nb::sig("def array(self, name: str) -> typing.Any"),
            "The field's own copy of an array, which nobody can change; None if it has none.");

    nb::class_<KeptPlan>(m, "KeptPlan", "What `Objective.plan` returned, as arrays that may lie in a file.")
        .def(
            "__init__",
            [](KeptPlan* self, Array<int64_t> group_offsets, Array<int32_t> group_members, Array<int64_t> row_offsets,
               Array<int64_t> entry_offsets, Array<int32_t> rows, Array<uint32_t> entry_weights,
               Array<uint16_t> entry_labels, Array<double> row_values, Array<double> entry_values) {
                new (self) KeptPlan{std::move(group_offsets), std::move(group_members), std::move(row_offsets),
                                    std::move(entry_offsets), std::move(rows),          std::move(entry_weights),
                                    std::move(entry_labels),  std::move(row_values),    std::move(entry_values)};
            },
            "group_offsets"_a, "group_members"_a, "row_offsets"_a, "entry_offsets"_a, "rows"_a, "entry_weights"_a,
            "entry_labels"_a, "row_values"_a, "entry_values"_a);

    nb::class_<Objective>(m, "Objective", "Negative log-likelihood or hinge loss of chains and its derivatives.")
        .def(nb::init<Sequences, Field, Threads, const std::string&, const OptionalArray<double>&, bool,
                      std::optional<KeptPlan>>(),
             "data"_a, "field"_a, "n_threads"_a, "kernels"_a = "auto", "cost"_a.none() = nb::none(), "hinge"_a = false,
             "plan"_a.none() = nb::none())
        .def(
            "plan",
            [](nb::object self) {
                const PlanArrays plan = nb::cast<const Objective&>(self).objective.plan();
                nb::dict found;
                const auto add = [&](const char* name, const auto& array) {
                    using T = typename std::decay_t<decltype(array)>::element_type;
                    found[name] = nb::cast(Numpy1<T>(array.data(), {array.size()}, self));
                };
                add("group_offsets", plan.group_offsets);
                add("group_members", plan.group_members);
                add("row_offsets", plan.row_offsets);
                add("entry_offsets", plan.entry_offsets);
                add("rows", plan.rows);
                add("entry_weights", plan.entry_weights);
                add("entry_labels", plan.entry_labels);
                add("row_values", plan.row_values);
                add("entry_values", plan.entry_values);
                return found;
            },
            nb::sig("def plan(self) -> dict[str, typing.Any]"),
            "The arrays that the data were written out to; a KeptPlan of them saves making them again.")
        .def(
            "value_gradient",
            [](Objective& self, const Array<double>& w, Output gradient, bool keep, bool hold) {
                check_weights(self.field.view(), w.size());
                check_weights(self.field.view(), gradient.size());
                self.at.reset();
                if (keep || hold) self.at = w;
                return interruptible(
                    [&] { return self.objective.value_gradient(w.data(), gradient.data(), keep, poll_signals); });
            },
            "w"_a, "gradient"_a, "keep"_a = false, "hold"_a = true,
            "Fills gradient, returns the value. With keep, Hessian products at w start from what is left behind; "
            "without "
            "it and without hold there can be none, and w is let go.")
        .def(
            "single_value_gradient",
            [](Objective& self, const Array<double>& w, Output gradient) -> std::optional<double> {
                require(!self.hinge, "a hinge has no single precision");
                check_weights(self.field.view(), w.size());
                check_weights(self.field.view(), gradient.size());
                double value = 0.0;
                self.at.reset();
                const bool held = interruptible([&] {
                    return self.objective.single_value_gradient(w.data(), gradient.data(), value, poll_signals);
                });
                return held ? std::optional(value) : std::nullopt;
            },
            "w"_a, "gradient"_a, "The same in single precision; None where that cannot hold the scores.")
        .def(
            "hessian_product",
            [](Objective& self, const Array<double>& v, Output product) {
                self.require_labels();
                check_weights(self.field.view(), v.size());
                check_weights(self.field.view(), product.size());
                require(self.at.has_value(), "a Hessian product needs value_gradient before it");
                interruptible([&] { self.objective.hessian_product(v.data(), product.data(), poll_signals); });
            },
            "v"_a, "product"_a, "product = Hessian times v, at the w of the last value_gradient.")
        .def(
            "hessian_diagonal",
            [](Objective& self, const Array<double>& w, Output diagonal, bool single) {
                self.require_labels();
                check_weights(self.field.view(), w.size());
                check_weights(self.field.view(), diagonal.size());
                single ? self.at.reset() : void(self.at = w);
                interruptible(
                    [&] { self.objective.hessian_diagonal(w.data(), diagonal.data(), single, poll_signals); });
            },
            "w"_a, "diagonal"_a, "single"_a = false,
            "diagonal = sum of p (1 - p) over the occurrences of each feature.")
        .def_prop_ro("cache_bytes", [](const Objective& self) { return self.objective.cache_bytes(); });
}

}  // namespace crfkit
