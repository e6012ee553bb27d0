#include "../core/chain/online.hpp"

#include "chain.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

using Order = Array<int64_t>;

// Throws if the order names a sequence that is not there.
void check_order(const Sequences& data, const Order& order) {
    const auto n = static_cast<int64_t>(data.starts.size()) - 1;
    for (size_t k = 0; k < order.size(); ++k)
        if (order(k) < 0 || order(k) >= n) throw nb::index_error("the order names a sequence that is not there");
}

// The same, or if the steps are not one for each.
void check_steps(const Sequences& data, const Order& order, const Array<double>& steps) {
    check_order(data, order);
    if (steps.size() != order.size()) throw nb::value_error("there must be one step size per sequence");
}

struct Online {
    Sequences data;
    Field field;
    ChainOnline chain;

    Online(Sequences d, Field f, const std::string& kernels, const OptionalArray<double>& cost, bool hinge)
        : data(std::move(d)),
          field(std::move(f)),
          chain(checked_view(data, field, cost, hinge), field.view(), kernels_named(kernels), pointer(cost), hinge) {}

    // Like check_order, for learners that compare the labels with the best labelling.
    void check_mistakes(const Order& order) const {
        check_order(data, order);
        if (data.weak())
            throw nb::value_error("mistakes are counted only where all labels are known, without weights of positions");
    }
};

// Plain stochastic gradients in single precision.
struct SingleOnline {
    Sequences data;
    Field field;
    OnlineWeights<float> chain;

    SingleOnline(Sequences d, Field f, const std::string& kernels, const OptionalArray<double>& cost)
        : data(std::move(d)),
          field(std::move(f)),
          chain(checked_view(data, field, cost, false), field.view(), *kernels_named(kernels).single, pointer(cost)) {}
};

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<Online>(m, "Online", "Chains that are updated sequence by sequence; see crfkit.chain.losses.online.")
        .def(nb::init<Sequences, Field, const std::string&, const OptionalArray<double>&, bool>(), "data"_a, "field"_a,
             "kernels"_a = "auto", "cost"_a.none() = nb::none(), "hinge"_a = false)
        .def(
            "start",
            [](Online& self, const Array<double>& w, const OptionalArray<double>& variances) {
                check_weights(self.field.view(), w.size());
                if (variances) check_weights(self.field.view(), variances->size());
                self.chain.start(w.data(), pointer(variances));
            },
            "w"_a, "variances"_a.none() = nb::none())
        .def(
            "variances",
            [](const Online& self, Output out) {
                check_weights(self.field.view(), out.size());
                return self.chain.variances(out.data());
            },
            "out"_a, "Fills out with AROW's variances; False if there are none yet.")
        .def(
            "weights",
            [](const Online& self, Output w) {
                check_weights(self.field.view(), w.size());
                self.chain.weights(w.data());
            },
            "w"_a)
        .def(
            "square", [](const Online& self) { return self.chain.square(); }, "Squared length of the weights.")
        .def(
            "average",
            [](const Online& self, Output w) {
                check_weights(self.field.view(), w.size());
                self.chain.average(w.data());
            },
            "w"_a)
        .def(
            "sgd",
            [](Online& self, const Order& order, const Array<double>& steps, double l2, double l1, bool averaged,
               bool shrink_first) {
                check_steps(self.data, order, steps);
                return interruptible([&] {
                    return self.chain.sgd(order.data(), steps.data(), static_cast<int64_t>(order.size()), l2, l1,
                                          averaged, shrink_first, poll_signals);
                });
            },
            "order"_a, "steps"_a, "l2"_a, "l1"_a, "averaged"_a, "shrink_first"_a = false,
            "Summed loss before each update.")
        .def(
            "perceptron",
            [](Online& self, const Order& order) {
                self.check_mistakes(order);
                interruptible(
                    [&] { self.chain.perceptron(order.data(), static_cast<int64_t>(order.size()), poll_signals); });
            },
            "order"_a)
        .def(
            "measure",
            [](Online& self, const Order& order) {
                self.check_mistakes(order);
                interruptible(
                    [&] { self.chain.measure(order.data(), static_cast<int64_t>(order.size()), poll_signals); });
            },
            "order"_a, "Counts mistakes, changes nothing.")
        .def_prop_ro(
            "mistakes",
            [](const Online& self) {
                return std::make_tuple(self.chain.mistakes().sequences, self.chain.mistakes().positions);
            },
            "(sequences, positions) that the last epoch labelled wrongly, before its updates.")
        .def_prop_ro(
            "mistake_share", [](const Online& self) { return self.chain.mistakes().share; },
            "The share of wrong positions of each sequence of the last epoch, times its weight, summed.")
        .def(
            "save",
            [](const Online& self) {
                ChainOnline::Saved saved = self.chain.save();
                return nb::make_tuple(to_numpy(std::move(saved.theta)), to_numpy(std::move(saved.sums)),
                                      to_numpy(std::move(saved.reached)), to_numpy(std::move(saved.covariances)),
                                      to_numpy(std::move(saved.multipliers)), saved.scale, saved.scale_sum,
                                      saved.penalty, saved.steps);
            },
            "All that later epochs depend on.", nb::sig("def save(self) -> tuple[Any, ...]"))
        .def(
            "restore",
            [](Online& self, const Array<double>& theta, const Array<double>& sums, const Array<double>& reached,
               const Array<double>& covariances, const Array<double>& multipliers, double scale, double scale_sum,
               double penalty, int64_t steps) {
                const auto copy = [](const Array<double>& array) {
                    return std::vector<double>(array.data(), array.data() + array.size());
                };
                self.chain.restore({copy(theta), copy(sums), copy(reached), copy(covariances), copy(multipliers), scale,
                                    scale_sum, penalty, steps});
            },
            "theta"_a, "sums"_a, "reached"_a, "covariances"_a, "multipliers"_a, "scale"_a, "scale_sum"_a, "penalty"_a,
            "steps"_a, "Goes on from what save returned.")
        .def(
            "passive_aggressive",
            [](Online& self, const Order& order, int kind, double c, bool count_errors) {
                self.check_mistakes(order);
                if (kind < 0 || kind > 2) throw nb::value_error("kind must be 0, 1 or 2");
                return interruptible([&] {
                    return self.chain.passive_aggressive(order.data(), static_cast<int64_t>(order.size()),
                                                         static_cast<Aggression>(kind), c, count_errors, poll_signals);
                });
            },
            "order"_a, "kind"_a, "c"_a, "count_errors"_a = true, "Summed loss before each update.")
        .def(
            "arow",
            [](Online& self, const Order& order, double variance, double gamma) {
                self.check_mistakes(order);
                return interruptible([&] {
                    return self.chain.arow(order.data(), static_cast<int64_t>(order.size()), variance, gamma,
                                           poll_signals);
                });
            },
            "order"_a, "variance"_a, "gamma"_a, "Summed loss before each update.")
        .def(
            "mira",
            [](Online& self, const Order& order, double c, bool shortened) {
                self.check_mistakes(order);
                return interruptible([&] {
                    return self.chain.mira(order.data(), static_cast<int64_t>(order.size()), c, shortened,
                                           poll_signals);
                });
            },
            "order"_a, "c"_a, "shortened"_a = false, "Summed loss before each update.");
    nb::class_<SingleOnline>(m, "SingleOnline", "Plain stochastic gradients in single precision.")
        .def(nb::init<Sequences, Field, const std::string&, const OptionalArray<double>&>(), "data"_a, "field"_a,
             "kernels"_a = "auto", "cost"_a.none() = nb::none())
        .def(
            "start",
            [](SingleOnline& self, const Array<double>& w) {
                check_weights(self.field.view(), w.size());
                self.chain.start(w.data());
            },
            "w"_a)
        .def(
            "weights",
            [](const SingleOnline& self, Output w) {
                check_weights(self.field.view(), w.size());
                self.chain.weights(w.data());
            },
            "w"_a)
        .def(
            "square", [](const SingleOnline& self) { return self.chain.square(); }, "Squared length of the weights.")
        .def(
            "sgd",
            [](SingleOnline& self, const Order& order, const Array<double>& steps, double l2) {
                check_steps(self.data, order, steps);
                return interruptible([&] {
                    return self.chain.sgd(order.data(), steps.data(), static_cast<int64_t>(order.size()), l2,
                                          poll_signals);
                });
            },
            "order"_a, "steps"_a, "l2"_a, "Summed loss before each update.");
}

}  // namespace crfkit
