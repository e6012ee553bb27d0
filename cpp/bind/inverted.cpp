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
    const auto entries = static_cast<int64_t>(ids.shape(0));
    bool ok = offsets.shape(0) > 0 && offsets.data()[0] == 0 && offsets.data()[offsets.shape(0) - 1] == entries;
    ok = ok && std::is_sorted(offsets.data(), offsets.data() + offsets.shape(0));
    ok = ok && (!values || static_cast<int64_t>(values->shape(0)) == entries);
    if (!ok) throw std::invalid_argument("the offsets do not fit the entries");
    for (int64_t e = 0; e < entries; ++e)
        if (ids.data()[e] < 0 || ids.data()[e] >= n_ids)
            throw std::invalid_argument("entry " + std::to_string(e) + " is " + std::to_string(ids.data()[e]) +
                                        "; expected 0 to " + std::to_string(n_ids - 1));
}

// An index is made once and read in every pass: it is checked when it is made.
class Inverted {
public:
    Inverted(Array<int64_t> offsets, Array<int32_t> positions, OptionalArray<double> values, int64_t n_positions)
        : offsets_(std::move(offsets)),
          positions_(std::move(positions)),
          values_(std::move(values)),
          n_positions_(n_positions) {
        check_entries(offsets_, positions_, values_, n_positions);
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
    const std::vector<int64_t> attributes(chosen.data(), chosen.data() + chosen.shape(0));
    for (const int64_t a : attributes)
        if (a < 0 || a >= index.view().n) throw std::invalid_argument("there is no attribute " + std::to_string(a));
    return arrays_of(without_gil([&] { return gather_attributes(index.view(), attributes, index.n_positions()); }),
                     index.has_values());
}

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void gradients(const Inverted& index, const OptionalArray<int64_t>& offsets, const OptionalArray<int32_t>& codes,
               int64_t first, int64_t last, const Matrix& residual, int64_t t0, const Vector& out, int n_threads) {
    const auto width = static_cast<int64_t>(residual.shape(1)), n = static_cast<int64_t>(residual.shape(0));
    const CodesView weights{pointer(offsets), pointer(codes), width};
    bool ok = offsets.has_value() == codes.has_value() && 0 <= first && first <= last && last <= index.view().n;
    ok = ok && 0 <= t0 && t0 + n <= index.n_positions() && n_threads >= 1;
    if (offsets) {
        ok = ok && static_cast<int64_t>(offsets->shape(0)) == index.view().n + 1;
        ok = ok && weights.begin(index.view().n) == static_cast<int64_t>(codes->shape(0));
        for (int64_t k = ok ? weights.begin(first) : 0; ok && k < weights.begin(last); ++k)
            ok = 0 <= weights.codes[k] && weights.codes[k] < width;
    }
    if (!ok || static_cast<int64_t>(out.shape(0)) != weights.begin(last) - weights.begin(first))
        throw std::invalid_argument("the ranges do not fit the index");
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
