// What the kernel files of one instruction set and precision offer each other; tables.cpp collects it.
#pragma once

#include "inference.hpp"

#ifndef CRFKIT_SINGLE
namespace crfkit::CRFKIT_SINGLE_OF(CRFKIT_KERNELS) {
const TrainingKernels<float>& training_kernels();
}
#endif

namespace crfkit::CRFKIT_SPACE {

const TrainingKernels<Real>& training_kernels();
double value_gradient(const ChainPlan&, const Weights&, const Gradient&, const Cache*, const ChainRange&);
double weak_value_gradient(const ChainPlan&, const Weights&, const Gradient&, const ChainRange&);
void hessian_diagonal(const ChainPlan&, const ChainPlan& squared, const Weights&, const Gradient&, Real* squares,
                      const ChainRange&);
void dense_beliefs(const ChainDenseOf<Real>&, const Weights&, double* log_z, Real* node, Real* edge, const ChainRange&);

#ifndef CRFKIT_SINGLE
void hessian_product(const ChainPlan&, const ChainWeights&, const ChainTangent&, const ChainGradient&,
                     double* point_outer, const ChainCache*, const ChainRange&);
double hinge(const ChainPlan&, const ChainWeights&, const ChainGradient&, const ChainRange&);
void marginals(const ChainPlan&, const ChainWeights&, double* log_z, double* node, double* edge, const ChainRange&);
void viterbi(const ChainPlan&, const ChainWeights&, int32_t* labels, double* scores, const ChainRange&);
void dense_viterbi(const ChainDenseOf<double>&, const ChainWeights&, int32_t* labels, double* scores,
                   const ChainRange&);
void dense_viterbi_of_floats(const ChainDenseOf<float>&, const ChainWeights&, int32_t* labels, double* scores,
                             const ChainRange&);
void dense_covariances(const ChainDenseOf<double>&, const ChainWeights&, const ChainDenseDirection&, double* node,
                       double* edge, const ChainRange&);
int64_t dense_curvature_scratch(int64_t longest, int64_t n_labels);
ChainScores best_scores(const ChainPlan&, const ChainWeights&, int64_t n, const ChainRange&);
double span_probabilities(const ChainPlan&, const ChainWeights&, const ChainPhrases&, int64_t n, ChainSpan*,
                          int64_t n_spans, const ChainRange&);
void entropies(const ChainPlan&, const ChainWeights&, double* log_z, double* entropy, const ChainRange&);
double sample(const ChainPlan&, const ChainWeights&, int64_t n, int64_t count, const double* uniforms, int32_t* labels,
              const ChainRange&);
#endif

}  // namespace crfkit::CRFKIT_SPACE
