#include "../core/epigraph.hpp"

#include "common.hpp"

namespace crfkit {

void bind_epigraph(nb::module_& m) {
    m.def(
        "project_epigraph_linf",
        [](const Array<double>& w, const Array<double>& alpha, const Array<int64_t>& members,
           const Array<int64_t>& offsets) {
            if (offsets.size() != alpha.size() + 1 || offsets.data()[0] != 0 ||
                offsets.data()[alpha.size()] != static_cast<int64_t>(members.size()))
                throw nb::value_error("offsets that do not fit the members and radii");
            std::vector<double> out(w.data(), w.data() + w.size());
            std::vector<double> radii(alpha.data(), alpha.data() + alpha.size());
            without_gil([&] {
                project_epigraph_linf(members.data(), offsets.data(), static_cast<int64_t>(radii.size()), out.data(),
                                      radii.data());
            });
            return std::make_tuple(to_numpy(std::move(out)), to_numpy(std::move(radii)));
        },
        "w"_a, "alpha"_a, "members"_a, "offsets"_a,
        "The nearest (w, alpha) with |w_k| ≤ alpha_s for the members k of every group s.");
}

}  // namespace crfkit
