#include "../core/vectors.hpp"

#include "common.hpp"

namespace crfkit {

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check(size_t a, size_t b) {
    if (a != b) throw nb::value_error("vectors of different lengths");
}

}  // namespace

void bind_vectors(nb::module_& m) {
    m.def(
        "rows_dot",
        [](const Matrix& rows, const Array<double>& x, int n_threads) {
            check(rows.shape(1), x.size());
            std::vector<double> out(rows.shape(0));
            without_gil([&] {
                rows_dot(rows.data(), static_cast<int64_t>(rows.shape(0)), static_cast<int64_t>(x.size()), x.data(),
                         out.data(), n_threads);
            });
            return to_numpy(std::move(out));
        },
        "rows"_a, "x"_a, "n_threads"_a, "rows @ x");
    m.def(
        "rows_combine",
        [](const Array<double>& c, const Matrix& rows, double a, const Array<double>& x, Output out, int n_threads) {
            check(rows.shape(1), x.size());
            check(out.size(), x.size());
            check(rows.shape(0), c.size());
            without_gil([&] {
                rows_combine(c.data(), rows.data(), static_cast<int64_t>(c.size()), static_cast<int64_t>(x.size()), a,
                             x.data(), out.data(), n_threads);
            });
        },
        "c"_a, "rows"_a, "a"_a, "x"_a, "out"_a, "n_threads"_a, "out = a·x + c @ rows; out may be x.");
}

}  // namespace crfkit
