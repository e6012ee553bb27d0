#include "../core/vectors/orthants.hpp"

#include <cmath>

#include "common.hpp"

namespace crfkit {

void bind_orthants(nb::module_& m) {
    m.def(
        "sum_absolute",
        [](const Array<double>& w, Threads n_threads) {
            return without_gil([&] { return sum_absolute(w.data(), static_cast<int64_t>(w.size()), n_threads); });
        },
        "w"_a, "n_threads"_a, "Σ |w_j|");
    m.def(
        "moving_weights",
        [](const Array<double>& w, const Array<double>& g, double strength, Threads n_threads) {
            check_size(g.size(), static_cast<int64_t>(w.size()), "g");
            MovingWeights found = without_gil([&] {
                return moving_weights(w.data(), g.data(), strength, static_cast<int64_t>(w.size()), n_threads);
            });
            return nb::make_tuple(to_numpy(std::move(found.free)), to_numpy(std::move(found.p_free)),
                                  to_numpy(std::move(found.entering)), to_numpy(std::move(found.p_entering)),
                                  std::sqrt(found.square));
        },
        "w"_a, "g"_a, "strength"_a, "n_threads"_a,
        nb::sig("def moving_weights(w: NDArray[numpy.float64], g: NDArray[numpy.float64], strength: float, "
                "n_threads: int) -> tuple[Any, Any, Any, Any, float]"),
        "(places of the weights that are not zero, p there, places of those that leave zero, p there, ‖p‖), where −p "
        "is "
        "the shortest sub-gradient of f(w) + strength·‖w‖₁ and g = ∇f(w)");
    m.def(
        "move_columns",
        [](const Aligned<const double, 2>& rows, const Array<int64_t>& from, const Array<int64_t>& to,
           const Aligned<double, 2>& out) {
            check_size(from.size(), static_cast<int64_t>(rows.shape(1)), "from");
            check_size(to.size(), static_cast<int64_t>(out.shape(1)), "to");
            check_size(out.shape(0), static_cast<int64_t>(rows.shape(0)), "out");
            without_gil([&] {
                move_columns(rows.data(), static_cast<int64_t>(rows.shape(0)), from.data(),
                             static_cast<int64_t>(from.size()), to.data(), static_cast<int64_t>(to.size()), out.data());
            });
        },
        "rows"_a, "from_"_a, "to"_a, "out"_a,
        "The columns of rows that are named `from_`, ascending, in a matrix whose columns are named `to`; else 0.");
    m.def(
        "two_loop",
        [](const Array<double>& g, const Aligned<const double, 2>& s, const Aligned<const double, 2>& y,
           const Array<double>& diagonal, const Array<int64_t>& places, const Aligned<const double, 2>& excess) {
            const auto n = static_cast<int64_t>(g.size()), k = static_cast<int64_t>(s.shape(0));
            check_size(s.shape(1), n, "s");
            check_size(y.shape(1), n, "y");
            check_size(y.shape(0), k, "y");
            check_size(diagonal.size(), n, "diagonal");
            const auto h = static_cast<int64_t>(places.size());
            check_size(excess.shape(0), h, "excess");
            check_size(excess.shape(1), h, "excess");
            for (int64_t i = 0; i < h; ++i)
                if (places.data()[i] < 0 || places.data()[i] >= n)
                    throw std::invalid_argument("places are out of range");
            const Head head{places.data(), excess.data(), h};
            nb::capsule owner;
            double* d = allocate<double>(g.size(), owner);
            const double gamma =
                without_gil([&] { return two_loop(g.data(), s.data(), y.data(), k, n, diagonal.data(), head, d); });
            return nb::make_tuple(Numpy1<double>(d, {g.size()}, owner), gamma);
        },
        "g"_a, "s"_a, "y"_a, "diagonal"_a, "places"_a, "excess"_a,
        nb::sig("def two_loop(g: NDArray[numpy.float64], s: NDArray[numpy.float64], y: NDArray[numpy.float64], "
                "diagonal: NDArray[numpy.float64], places: NDArray[numpy.int64], excess: NDArray[numpy.float64]) "
                "-> tuple[Any, float]"),
        "(H·g, γ) of the pairs in the rows of s and y, oldest first, with H₀ = γ·(diag(diagonal) + excess at the "
        "places); γ = 0: no pair is used.");
}

}  // namespace crfkit
