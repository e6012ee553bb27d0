// Losses of a pairwise field that need no inference: each looks at one node, or one edge, given all other labels.
//
//   c_i(k) = U_i(k) + Σ_{j ∈ N(i)} P_ij(k, y_j)        the scores of node i given its neighbours' labels
//   pseudo-likelihood      Σ_i w_i (log Σ_k exp c_i(k) − c_i(y_i))
//   composite likelihood   Σ_(i,j) w_ij (log Σ_kl exp s_ij(k, l) − s_ij(y_i, y_j)), plus nodes without edges as above,
//                          s_ij(k, l) = c_i(k) − P_ij(k, y_j) + c_j(l) − P_ij(y_i, l) + P_ij(k, l)
//
// Every node and every edge writes to its own row and values are added up by chunk, in order: the results are the same
// bits for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph.hpp"

namespace crfkit {

// The tables T_b of a basis [B][K][K], without their zeros, by the state at one end of the edge.
class BasisTerms {
public:
    struct Term {
        int32_t b, k;
        double value;
    };
    // B = 0 stands for all unit tables.
    BasisTerms(const double* basis, int B, int K);
    // T_b(k, l) of all b, k: what the first node of an edge sees when the second has state l.
    std::span<const Term> to_first(int l) const { return {&first_[starts_first_[l]], &first_[starts_first_[l + 1]]}; }
    // T_b(l, k) of all b, k: what the second node sees when the first has state l.
    std::span<const Term> to_second(int l) const {
        return {&second_[starts_second_[l]], &second_[starts_second_[l + 1]]};
    }
    const int B, K;

private:
    std::vector<Term> first_, second_;
    std::vector<size_t> starts_first_, starts_second_;  // [K+1]
};

// A field (or a direction of its potentials) and the labels; arrays are the caller's.
struct LabelledField {
    const Graph& graph;
    const BasisTerms& basis;
    const double* unary;         // [N][K]; −inf: the node cannot have this state
    const double* coefficients;  // [E][B]
    const int32_t* labels;       // [N]
    const double* weights;       // [N] the weight of the node's graph
};

using Poll = std::function<bool()>;

// Returns the loss. p: [N][K] conditionals; nodes, edges: its derivatives by unary [N][K] and coefficients [E][B].
double pseudo_value(const LabelledField& field, double* p, double* nodes, double* edges, int n_threads,
                    const Poll& poll);

// The derivatives' derivatives along a direction of unary and coefficients, which `field` holds:
//   nodes_i(k) = w_i p_i(k) (ċ_i(k) − Σ_l p_i(l) ċ_i(l))
void pseudo_tangent(const LabelledField& direction, const double* p, double* nodes, double* edges, int n_threads,
                    const Poll& poll);

// edges: [E][B] w_i Var T_b(y_i, y_j) over y_i ~ p_i, plus the same over y_j: the second derivatives by an edge's
// coefficients. unary and coefficients of `field` are not read.
void pseudo_variances(const LabelledField& field, const double* p, double* edges, int n_threads, const Poll& poll);

// Returns the loss; nodes and edges as above.
double composite_value(const LabelledField& field, double* nodes, double* edges, int n_threads, const Poll& poll);

}  // namespace crfkit
