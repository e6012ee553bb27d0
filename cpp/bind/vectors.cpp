#include "../core/vectors/vectors.hpp"

#include "../core/vectors/pool.hpp"
#include "../core/vectors/secant.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

void check(size_t a, size_t b) {
    if (a != b) throw nb::value_error("vectors of different lengths");
}

// A vector of n doubles that hold anything; its memory goes back to the pool when Python drops it.
Numpy1<double> empty_vector(size_t n) {
    if (n > size_t{1} << 59) throw std::bad_alloc();
    auto* owned = new Buffer(take_vector(static_cast<int64_t>(n)));
    const nb::capsule owner(owned, [](void* p) noexcept {
        auto* vector = static_cast<Buffer*>(p);
        give_vector(std::move(*vector));
        delete vector;
    });
    return Numpy1<double>(owned->data(), {n}, owner);
}

template <class T>
void bind_rows(nb::module_& m) {
    m.def(
        "rows_dot",
        [](const Aligned<const T, 2>& rows, const Array<double>& x, const OptionalArray<RowScale<T>>& scale,
           Threads n_threads) {
            check(rows.shape(1), x.size());
            if (scale) check(x.size(), scale->size());
            std::vector<double> out(rows.shape(0));
            without_gil([&] {
                rows_dot(rows.data(), static_cast<int64_t>(rows.shape(0)), static_cast<int64_t>(x.size()), x.data(),
                         pointer(scale), out.data(), n_threads);
            });
            return to_numpy(std::move(out));
        },
        nb::arg("rows").noconvert(), "x"_a, nb::arg("scale").noconvert().none(), "n_threads"_a, "rows @ (scale·x)");
    m.def(
        "rows_combine",
        [](const Array<double>& c, const Aligned<const T, 2>& rows, double a, const Array<double>& x,
           const OptionalArray<RowScale<T>>& scale, OutputArray<double> out, bool measure, Threads n_threads) {
            check(rows.shape(1), x.size());
            if (scale) check(x.size(), scale->size());
            check(out.size(), x.size());
            check(rows.shape(0), c.size());
            double product = 0.0;
            without_gil([&] {
                rows_combine(c.data(), rows.data(), static_cast<int64_t>(c.size()), static_cast<int64_t>(x.size()), a,
                             x.data(), pointer(scale), out.data(), measure ? &product : nullptr, n_threads);
            });
            return product;
        },
        "c"_a, nb::arg("rows").noconvert(), "a"_a, "x"_a, nb::arg("scale").noconvert().none(), "out"_a, "measure"_a,
        "n_threads"_a, "out = scale·(a·scale·x + c @ rows); out may be x. Returns x·out with `measure`, else 0.");
    m.def(
        "curvature_pair",
        [](const Array<double>& x, const Array<double>& g, const Array<double>& x_new, const Array<double>& g_new,
           const OptionalArray<RowScale<T>>& scale, OutputArray<T> s, OutputArray<T> y, Threads n_threads) {
            for (const size_t n : {g.size(), x_new.size(), g_new.size(), s.size(), y.size()}) check(x.size(), n);
            if (scale) check(x.size(), scale->size());
            return without_gil([&] {
                const auto [sy, yy] = curvature_pair(x.data(), g.data(), x_new.data(), g_new.data(), pointer(scale),
                                                     static_cast<int64_t>(x.size()), s.data(), y.data(), n_threads);
                return std::make_tuple(sy, yy);
            });
        },
        "x"_a, "g"_a, "x_new"_a, "g_new"_a, nb::arg("scale").noconvert().none(), nb::arg("s").noconvert(),
        nb::arg("y").noconvert(), "n_threads"_a, "s = (x_new − x)/scale, y = (g_new − g)·scale; returns (s·y, y·y).");
}

// Directions that are kept in the type of the rows.
template <class T>
void bind_narrow_rows(nb::module_& m) {
    m.def(
        "rows_direction",
        [](const Array<double>& c, const Aligned<const T, 2>& rows, double a, const Array<double>& x,
           const OptionalArray<RowScale<T>>& scale, OutputArray<T> row, Threads n_threads) {
            check(rows.shape(1), x.size());
            if (scale) check(x.size(), scale->size());
            check(row.size(), x.size());
            check(rows.shape(0), c.size());
            return without_gil([&] {
                return rows_direction(c.data(), rows.data(), static_cast<int64_t>(c.size()),
                                      static_cast<int64_t>(x.size()), a, x.data(), pointer(scale), row.data(),
                                      n_threads);
            });
        },
        "c"_a, nb::arg("rows").noconvert(), "a"_a, "x"_a, nb::arg("scale").noconvert().none(),
        nb::arg("row").noconvert(), "n_threads"_a, "row = a·scale·x + c @ rows, rounded; returns x·(scale·row).");
    m.def(
        "advance",
        [](const Array<double>& x, double a, const Array<T>& row, const OptionalArray<RowScale<T>>& scale,
           Threads n_threads) {
            check(row.size(), x.size());
            if (scale) check(x.size(), scale->size());
            Numpy1<double> out = empty_vector(x.size());
            without_gil([&] {
                advance(x.data(), a, row.data(), pointer(scale), static_cast<int64_t>(x.size()), out.data(), n_threads);
            });
            return out;
        },
        "x"_a, "a"_a, nb::arg("row").noconvert(), nb::arg("scale").noconvert().none(), "n_threads"_a,
        "x + a·scale·row");
    m.def(
        "row_dot",
        [](const Array<T>& row, const OptionalArray<RowScale<T>>& scale, const Array<double>& x, Threads n_threads) {
            check(row.size(), x.size());
            if (scale) check(x.size(), scale->size());
            return without_gil([&] {
                return row_dot(row.data(), pointer(scale), static_cast<int64_t>(x.size()), x.data(), n_threads);
            });
        },
        nb::arg("row").noconvert(), nb::arg("scale").noconvert().none(), "x"_a, "n_threads"_a, "x·(scale·row)");
    m.def(
        "add_step",
        [](Aligned<T, 2> rows, int64_t s, int64_t y, double a, const Array<T>& row, const Array<double>& g,
           const Array<double>& g_new, const OptionalArray<RowScale<T>>& scale, Threads n_threads) {
            for (const size_t n : {row.size(), g.size(), g_new.size()}) check(rows.shape(1), n);
            if (scale) check(rows.shape(1), scale->size());
            const auto k = static_cast<int64_t>(rows.shape(0));
            check_number(s, 0, k - 1, "the row of s");
            check_number(y, 0, k - 1, "the row of y");
            std::vector<double> out(rows.shape(0));
            const auto [sy, yy] = without_gil([&] {
                return add_step(rows.data(), k, static_cast<int64_t>(rows.shape(1)), s, y, a, row.data(), g.data(),
                                g_new.data(), pointer(scale), out.data(), n_threads);
            });
            return std::make_tuple(to_numpy(std::move(out)), sy, yy);
        },
        nb::arg("rows").noconvert(), "s"_a, "y"_a, "a"_a, nb::arg("row").noconvert(), "g"_a, "g_new"_a,
        nb::arg("scale").noconvert().none(), "n_threads"_a,
        "rows[s] = a·row, rows[y] = (g_new − g)·scale; returns (rows @ (scale·g_new), s·y, y·y).");
}

}  // namespace

void bind_vectors(nb::module_& m) {
    m.def(
        "dot",
        [](const Array<double>& x, const Array<double>& y, Threads n_threads) {
            check(x.size(), y.size());
            double product = 0.0;
            without_gil(
                [&] { rows_dot(x.data(), 1, static_cast<int64_t>(x.size()), y.data(), nullptr, &product, n_threads); });
            return product;
        },
        "x"_a, "y"_a, "n_threads"_a, "x · y");
    m.def(
        "combine",
        [](const Array<double>& x, double a, const Array<double>& y, Threads n_threads) {
            check(x.size(), y.size());
            Numpy1<double> out = empty_vector(x.size());
            without_gil([&] {
                rows_combine(&a, y.data(), 1, static_cast<int64_t>(x.size()), 1.0, x.data(), nullptr, out.data(),
                             nullptr, n_threads);
            });
            return out;
        },
        "x"_a, "a"_a, "y"_a, "n_threads"_a, "x + a·y");
    m.def(
        "add_and_measure",
        [](OutputArray<double> y, double a, const Array<double>& x, Threads n_threads) {
            check(x.size(), y.size());
            return without_gil([&] {
                const auto [xx, yy] = add_and_measure(a, x.data(), y.data(), static_cast<int64_t>(x.size()), n_threads);
                return std::make_tuple(xx, yy);
            });
        },
        "y"_a, "a"_a, "x"_a, "n_threads"_a, "y += a·x; returns (x·x, y·y).");
    m.def("empty_vector", &empty_vector, "n"_a,
          "A vector whose numbers are to be set; large ones take memory that others have left.");
    m.def("free_vectors", &free_vectors, "Give the memory of vectors that were dropped back to the system.");
    m.def(
        "secant_products",
        [](const Array<double>& x, const Array<double>& g, const Array<double>& x_new, const Array<double>& g_new) {
            for (const size_t n : {g.size(), x_new.size(), g_new.size()}) check(x.size(), n);
            const auto p = without_gil([&] {
                return secant_products(x.data(), g.data(), x_new.data(), g_new.data(), static_cast<int64_t>(x.size()));
            });
            return std::make_tuple(p[0], p[1], p[2], p[3], p[4]);
        },
        "x"_a, "g"_a, "x_new"_a, "g_new"_a, "(s·s, s·y, y·y, s·g_new, s·g) with s = x_new − x and y = g_new − g");
    bind_rows<double>(m);
    bind_rows<float>(m);
    bind_rows<uint16_t>(m);
    bind_narrow_rows<float>(m);
    bind_narrow_rows<uint16_t>(m);
}

}  // namespace crfkit
