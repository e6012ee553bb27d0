// Chains of order 1 whose label scores come as a padded array, as networks make them, over threads.
#pragma once

#include "engine.hpp"

namespace crfkit {

// Log Z [batch], node marginals [batch][time][L] and the sum over time of edge marginals [batch][L][L]; minus the score
// and the counts of labels, where there are any. Throws std::invalid_argument where a length or a label does not fit.
template <class Real>
void dense_beliefs(const ChainDenseOf<Real>& data, const Real* transitions, const ChainKernels& kernels, int n_threads,
                   double* log_z, Real* node, Real* edge, const Poll& poll);

// Best labels [batch][time], 0 in the padding, and their scores; -inf where none is allowed.
template <class Real>
void dense_viterbi(const ChainDenseOf<Real>& data, const double* transitions, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll);

// The derivatives along a direction of the node marginals and of the sums of edge marginals.
void dense_covariances(const ChainDenseOf<double>& data, const double* transitions, const ChainDenseDirection& along,
                       const ChainKernels& kernels, int n_threads, double* node, double* edge, const Poll& poll);

}  // namespace crfkit
