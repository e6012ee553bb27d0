#include "../core/vectors/group_linf.hpp"

#include "common.hpp"

namespace crfkit {

namespace {

void check(size_t n, const GroupMembers& groups) {
    if (groups.end > static_cast<int64_t>(n)) throw nb::value_error("members that are no weights");
}

// A copy for the kernels to change.
struct Copy {
    size_t n;
    nb::capsule owner;
    double* data;
    explicit Copy(const Array<double>& x) : n(x.size()), data(allocate<double>(x.size(), owner)) {
        std::copy_n(x.data(), n, data);
    }
    Numpy1<double> numpy() const { return Numpy1<double>(data, {n}, owner); }
};

}  // namespace

void bind_group_linf(nb::module_& m) {
    nb::class_<GroupMembers>(m, "GroupMembers", "Which weights are members of which group.")
        .def(
            "__init__",
            [](GroupMembers* self, const Array<int64_t>& members, const Array<int64_t>& offsets) {
                new (self) GroupMembers({members.data(), members.data() + members.size()},
                                        {offsets.data(), offsets.data() + offsets.size()});
            },
            "members"_a, "offsets"_a);
    m.def(
        "norms_linf",
        [](const Array<double>& w, const GroupMembers& groups) {
            check(w.size(), groups);
            std::vector<double> norms(static_cast<size_t>(groups.n_groups()));
            without_gil([&] { norms_linf(groups, w.data(), norms.data()); });
            return to_numpy(std::move(norms));
        },
        "w"_a, "groups"_a, "max |w_k| over the members k of every group.");
    m.def(
        "project_epigraph_linf",
        [](const Array<double>& w, const Array<double>& alpha, const GroupMembers& groups) {
            check(w.size(), groups);
            if (static_cast<int64_t>(alpha.size()) != groups.n_groups())
                throw nb::value_error("radii that do not fit the groups");
            const Copy out(w), radii(alpha);
            without_gil([&] { project_epigraph_linf(groups, out.data, radii.data); });
            return std::make_tuple(out.numpy(), radii.numpy());
        },
        "w"_a, "alpha"_a, "groups"_a,
        "The nearest (w, alpha) with |w_k| ≤ alpha_s for the members k of every group s.");
    m.def(
        "least_subgradient_linf",
        [](const Array<double>& w, const Array<double>& gradient, double strength, const GroupMembers& groups) {
            check(w.size(), groups);
            if (gradient.size() != w.size()) throw nb::value_error("vectors of different lengths");
            const Copy out(gradient);
            without_gil([&] { least_subgradient_linf(groups, w.data(), strength, out.data); });
            return out.numpy();
        },
        "w"_a, "gradient"_a, "strength"_a, "groups"_a,
        "The shortest of gradient + strength · the sub-differential of Σ_s max_k |w_k|.");
}

}  // namespace crfkit
