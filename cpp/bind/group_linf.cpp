#include "../core/group_linf.hpp"

#include "common.hpp"

namespace crfkit {

namespace {

void check(size_t n, const Array<int64_t>& members, const Array<int64_t>& offsets) {
    if (offsets.size() == 0 || offsets.data()[0] != 0 ||
        offsets.data()[offsets.size() - 1] != static_cast<int64_t>(members.size()))
        throw nb::value_error("offsets that do not fit the members");
    for (size_t s = 1; s < offsets.size(); ++s)
        if (offsets.data()[s] < offsets.data()[s - 1]) throw nb::value_error("offsets that fall");
    // a loop without branches, then of each group whether it rises
    const int64_t* m = members.data();
    bool outside = false, falls = false;
    for (size_t k = 0; k < members.size(); ++k) outside |= m[k] < 0 || m[k] >= static_cast<int64_t>(n);
    for (size_t s = 0; s + 1 < offsets.size(); ++s)
        for (int64_t k = offsets.data()[s] + 1; k < offsets.data()[s + 1]; ++k) falls |= m[k] <= m[k - 1];
    if (outside) throw nb::value_error("members that are no weights");
    if (falls) throw nb::value_error("members of a group that do not rise");
}

}  // namespace

void bind_group_linf(nb::module_& m) {
    m.def(
        "norms_linf",
        [](const Array<double>& w, const Array<int64_t>& members, const Array<int64_t>& offsets) {
            check(w.size(), members, offsets);
            std::vector<double> norms(offsets.size() - 1);
            without_gil([&] {
                norms_linf(members.data(), offsets.data(), static_cast<int64_t>(norms.size()), w.data(), norms.data());
            });
            return to_numpy(std::move(norms));
        },
        "w"_a, "members"_a, "offsets"_a, "max |w_k| over the members k of every group.");
    m.def(
        "project_epigraph_linf",
        [](const Array<double>& w, const Array<double>& alpha, const Array<int64_t>& members,
           const Array<int64_t>& offsets) {
            check(w.size(), members, offsets);
            if (alpha.size() + 1 != offsets.size()) throw nb::value_error("radii that do not fit the offsets");
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
    m.def(
        "least_subgradient_linf",
        [](const Array<double>& w, const Array<double>& gradient, double strength, const Array<int64_t>& members,
           const Array<int64_t>& offsets) {
            check(w.size(), members, offsets);
            if (gradient.size() != w.size()) throw nb::value_error("vectors of different lengths");
            std::vector<double> out(gradient.data(), gradient.data() + gradient.size());
            without_gil([&] {
                least_subgradient_linf(members.data(), offsets.data(), static_cast<int64_t>(offsets.size()) - 1,
                                       w.data(), strength, out.data());
            });
            return to_numpy(std::move(out));
        },
        "w"_a, "gradient"_a, "strength"_a, "members"_a, "offsets"_a,
        "The shortest of gradient + strength · the sub-differential of Σ_s max_k |w_k|.");
}

}  // namespace crfkit
