// Chains whose weights change after every sequence: stochastic gradients with averages and L1 penalties, the perceptron
// and its kin. One thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "online_weights.hpp"

namespace crfkit {

struct Mistakes {
    int64_t sequences = 0, positions = 0;
    double share = 0.0;  // sum over sequences of weight * wrong positions / positions
};

enum class Aggression { hard, linear, quadratic };  // PA, PA-I, PA-II

class ChainOnline : private OnlineWeights<double> {
public:
    using OnlineWeights::square;
    using OnlineWeights::weights;
    ChainOnline(const SequenceView& data, const FieldView& field, const ChainKernels& kernels, const double* cost,
                bool hinge);
    // Sets the weights and AROW's variances (null: none yet); forgets averages, cumulative penalties and multipliers.
    void start(const double* w, const double* variances);
    // AROW's variances; false if there are none yet.
    bool variances(double* out) const;
    // The mean of the weights after each sequence since start.
    void average(double* w) const;

    // All that later epochs depend on, as arrays that are either empty or of one length each, and three numbers.
    struct Saved {
        std::vector<double> theta, sums, reached, covariances, multipliers;
        double scale = 1.0, scale_sum = 0.0, penalty = 0.0;
        int64_t steps = 0;
    };
    Saved save() const;
    void restore(const Saved& saved);

    // Of the last epoch; sgd counts none.
    const Mistakes& mistakes() const { return mistakes_; }
    // Counts what is wrong under the current weights.
    void measure(const int64_t* order, int64_t n, const Poll& poll);

    // Epochs over the sequences order[0 … n). Each updates the average; sgd does where averaged is set. With
    // shrink_first, L2 shrinks the weights before the gradient is taken, not after.
    double sgd(const int64_t* order, const double* steps, int64_t n, double l2, double l1, bool averaged,
               bool shrink_first, const Poll& poll);
    void perceptron(const int64_t* order, int64_t n, const Poll& poll);
    // The margin to reach is the root of the number of wrong positions or, without count_errors, 1.
    double passive_aggressive(const int64_t* order, int64_t n, Aggression kind, double c, bool count_errors,
                              const Poll& poll);
    double arow(const int64_t* order, int64_t n, double variance, double gamma, const Poll& poll);
    // With shortened, the score that the best labelling is ahead by makes steps shorter (CRF++) and not longer.
    double mira(const int64_t* order, int64_t n, double c, bool shortened, const Poll& poll);

private:
    using Sparse = std::vector<std::pair<int64_t, double>>;  // (place in theta, value)
    // The difference that one sequence makes: features of its labels minus those of the best labelling.
    struct Difference {
        int64_t wrong = 0;    // positions
        double margin = 0.0;  // score of the labels minus the best score
        Sparse features;
    };
    void fold_scale();
    void apply_gradient(int64_t n, bool averaged, double l1);
    template <bool averaged, bool penalised>
    void apply_delta(int64_t begin, int64_t n);
    double& delta(int64_t i) { return delta_.data()[i]; }
    void add_feature(int64_t i, double value);
    void add_features(int64_t n, const int32_t* y, double sign);
    const Difference& compare(int64_t n);
    void update(double factor);  // theta += factor * features of the difference
    template <class Work>
    void over(const int64_t* order, int64_t n, const Poll& poll, const Work& work) {
        mistakes_ = {};
        OnlineWeights::over(order, n, poll, work);
    }

    const ChainKernels& kernels_;
    bool hinge_;
    std::vector<int32_t> transition_index_, triple_index_;  // by code; -1: no weight
    Buffer delta_, sums_;
    Buffer reached_, covariances_;  // cumulative L1 penalty that each weight got; made when needed
    std::vector<double> multipliers_;
    double scale_sum_ = 0.0, penalty_ = 0.0;
    int64_t steps_ = 0;
    Difference difference_;
    Mistakes mistakes_;
    std::vector<int32_t> best_;
    std::vector<double> best_score_;
};

}  // namespace crfkit
