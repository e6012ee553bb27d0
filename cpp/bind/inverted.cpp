// Attributes by position and positions by attribute; gradients of attributes that have no weights yet.
#include "../core/chain/inverted.hpp"

#include <algorithm>

#include "common.hpp"

namespace crfkit {
namespace {

nb::tuple arrays_of(Transposed&& found, bool with_values) {
    nb::object values = nb::none();
    if (with_values) values = nb::cast(to_numpy(std::move(found.values)));
    return nb::make_tuple(to_numpy(std::move(found.offsets)), to_numpy(std::move(found.ids)), values);
}

void check_entries(const Array<int64_t>& offsets, const Array<int32_t>& ids, const OptionalArray<double>& values,
                   int64_t n_ids) {
    const auto entries = static_cast<int64_t>(ids.size());
    check_offsets(span_of(offsets), entries, "offsets");
    check_number(static_cast<int64_t>(offsets.size()) - 1, 0, kMostIds, "the number of rows");
    check_number(n_ids, 0, kMostIds, "the number of ids");
    check_ids(span_of(ids), n_ids, "id");
    if (values) check_size(values->size(), entries, "values");
}

// An index is made once and read in every pass: it is checked when it is made. Positions must ascend within each
// attribute, because passes over a part of the data look for its first and last one by bisection.
class Inverted {
public:
    Inverted(Array<int64_t> offsets, Array<int32_t> positions, OptionalArray<double> values, int64_t n_positions)
        : offsets_(std::move(offsets)),
          positions_(std::move(positions)),
          values_(std::move(values)),
          n_positions_(n_positions) {
        check_entries(offsets_, positions_, values_, n_positions);
        check_rows(span_of(offsets_), span_of(positions_), view().n, n_positions, "positions", true);
    }
    InvertedView view() const {
        return {offsets_.data(), positions_.data(), pointer(values_), static_cast<int64_t>(offsets_.shape(0)) - 1};
    }
    int64_t n_positions() const { return n_positions_; }
    bool has_values() const { return values_.has_value(); }

private:
    Array<int64_t> offsets_;
    Array<int32_t> positions_;
    OptionalArray<double> values_;
    int64_t n_positions_;
};

nb::tuple gather(const Inverted& index, const Array<int64_t>& chosen) {
    const std::vector<int64_t> attributes(chosen.data(), chosen.data() + chosen.size());
    check_ids(std::span<const int64_t>(attributes), index.view().n, "attribute");
    return arrays_of(without_gil([&] { return gather_attributes(index.view(), attributes, index.n_positions()); }),
                     index.has_values());
}

void gradients(const Inverted& index, const OptionalArray<int64_t>& offsets, const OptionalArray<int32_t>& codes,
               int64_t first, int64_t last, const Matrix& residual, int64_t t0, const OutputArray<double>& out,
               Threads n_threads) {
    const auto width = static_cast<int64_t>(residual.shape(1)), n = static_cast<int64_t>(residual.shape(0));
    const CodesView weights{pointer(offsets), pointer(codes), width};
    check_number(last, 0, index.view().n, "last");
    check_number(first, 0, last, "first");
    require(n <= index.n_positions() && 0 <= t0 && t0 <= index.n_positions() - n, "residuals beyond the positions");
    require(offsets.has_value() == codes.has_value(), "offsets and codes go together");
    if (offsets) {
        // Only those of the attributes that are asked for: a pass comes here for many parts of the data.
        check_size(offsets->size(), index.view().n + 1, "offsets");
        const auto n_codes = static_cast<int64_t>(codes->size());
        int64_t before = 0;
        for (int64_t a = first; a <= last; ++a) {
            require(before <= weights.begin(a) && weights.begin(a) <= n_codes, "offsets must ascend");
            before = weights.begin(a);
        }
        check_ids(span_of(*codes).subspan(static_cast<size_t>(weights.begin(first)),
                                          static_cast<size_t>(weights.begin(last) - weights.begin(first))),
                  width, "code");
    }
    check_size(out.size(), weights.begin(last) - weights.begin(first), "out");
    without_gil(
        [&] { add_gradients(index.view(), weights, first, last, residual.data(), t0, n, out.data(), n_threads); });
}

}  // namespace

void bind_inverted(nb::module_& m) {
    m.def(
        "transpose",
        [](Array<int64_t> offsets, Array<int32_t> ids, OptionalArray<double> values, int64_t n_ids) {
            check_entries(offsets, ids, values, n_ids);
            const RowsView rows{offsets.data(), ids.data(), pointer(values),
                                static_cast<int64_t>(offsets.shape(0)) - 1};
            return arrays_of(without_gil([&] { return transpose(rows, n_ids); }), values.has_value());
        },
        "offsets"_a, "ids"_a, "values"_a.none(), "n_ids"_a,
        nb::sig("def transpose(offsets: NDArray[numpy.int64], ids: NDArray[numpy.int32], values: "
                "NDArray[numpy.float64] | None, n_ids: int) -> tuple[Any, ...]"),
        "Rows of entries to (offsets, rows, values) by id.");
    nb::class_<Inverted>(m, "Inverted", "The positions of every attribute.")
        .def(nb::init<Array<int64_t>, Array<int32_t>, OptionalArray<double>, int64_t>(), "offsets"_a, "positions"_a,
             "values"_a.none(), "n_positions"_a)
        .def("gather", &gather, "attributes"_a,
             nb::sig("def gather(self, attributes: NDArray[numpy.int64]) -> tuple[Any, ...]"),
             "(offsets, ids, values) by position of these attributes, renumbered in this order.")
        .def("add_gradients", &gradients, "offsets"_a.none(), "codes"_a.none(), "first"_a, "last"_a, "residual"_a,
             "t0"_a, "out"_a, "n_threads"_a,
             "Adds, for the weights of the attributes from first to last, the sums of residual rows t0, … over the "
             "positions of each attribute.");
}

}  // namespace crfkit
