#include "../core/text/crfsuite_model.hpp"

#include "common.hpp"
#include "strings.hpp"

namespace crfkit {

void bind_crfsuite_model(nb::module_& m) {
    nb::exception<BadModel>(m, "BadModel", PyExc_ValueError);
    m.def(
        "read_crfsuite",
        [](const Array<uint8_t>& file) {
            CrfsuiteModel model =
                without_gil([&] { return read_crfsuite({reinterpret_cast<const char*>(file.data()), file.size()}); });
            nb::list labels;
            for (const std::string& label : model.labels) labels.append(nb::bytes(label.data(), label.size()));
            return nb::make_tuple(labels, make_table(std::move(model.attributes)),
                                  to_numpy(std::move(model.state_offsets)), to_numpy(std::move(model.state_labels)),
                                  to_numpy(std::move(model.transition_codes)), to_numpy(std::move(model.weights)));
        },
        "file"_a, "(labels, attributes, state offsets, state labels, transition codes, weights) of a CRFsuite model",
        nb::sig("def read_crfsuite(file: NDArray[numpy.uint8]) -> tuple[list[bytes], StringTable, "
                "NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.float64]]"));
    m.def(
        "write_crfsuite",
        [](const std::vector<std::string>& labels, const StringTable& attributes, const Array<int64_t>& state_offsets,
           const Array<int32_t>& state_labels, const Array<int32_t>& transition_codes, const Array<double>& weights) {
            const auto n_labels = static_cast<int64_t>(labels.size());
            const bool fits =
                state_offsets.size() == attributes.offsets.size() && state_offsets.size() > 0 &&
                state_offsets.data()[state_offsets.size() - 1] == static_cast<int64_t>(state_labels.size()) &&
                weights.size() == state_labels.size() + transition_codes.size();
            if (!fits) throw nb::value_error("the parts of the model do not fit together");
            for (size_t k = 0; k < state_offsets.size(); ++k)
                if (state_offsets.data()[k] < (k > 0 ? state_offsets.data()[k - 1] : 0))
                    throw nb::value_error("the offsets of the states must ascend");
            for (size_t k = 0; k < state_labels.size(); ++k)
                if (state_labels.data()[k] < 0 || state_labels.data()[k] >= n_labels)
                    throw nb::value_error("a state is of no label");
            for (size_t k = 0; k < transition_codes.size(); ++k)
                if (transition_codes.data()[k] < 0 || transition_codes.data()[k] >= n_labels * n_labels)
                    throw nb::value_error("a transition is of no label");
            const CrfsuiteParts parts{labels,
                                      attributes.view(),
                                      state_offsets.data(),
                                      state_labels.data(),
                                      transition_codes.data(),
                                      static_cast<int64_t>(transition_codes.size()),
                                      weights.data()};
            const std::string file = without_gil([&] { return write_crfsuite(parts); });
            return nb::bytes(file.data(), file.size());
        },
        "labels"_a, "attributes"_a, "state_offsets"_a, "state_labels"_a, "transition_codes"_a, "weights"_a,
        "The CRFsuite model file of these parts.");
}

}  // namespace crfkit
