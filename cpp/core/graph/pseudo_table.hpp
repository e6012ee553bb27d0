// The pseudo-likelihood of a table: every sample is a copy of one graph, with weights for each of its nodes and edges.
// From weights to value and gradient in one go, samples side by side in the lanes of vectors:
//
//   s_r = w_r·x              the rows r of weights of a node's or an edge's features x, one column of a sample each
//   c_i(k) = Σ_r T_r(k) s_r + Σ_{r of edges (i,j)} T_r(k, y_j) s_r      and alike for the second node of an edge
//   R_i(k) = weight (p_i(k) − 1[k = y_i]),   ∂w_r = Σ_samples x Σ_kl T_r(k, l) (R_i(k) 1[y_j = l] + R_j(l) 1[y_i = k])
//
// Neither the scores of edges nor their derivatives are ever written out. Samples are cut into chunks for the scores
// and factors are shared out for the gradient: the results are the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../support/buffer.hpp"

namespace crfkit {

struct PseudoTerm {
    int32_t k, l;  // states of the first and the second node; l is 0 and not read where there is one node
    double value;  // T_r(k, l)
};

// The weights of one node or one edge.
struct PseudoFactor {
    int32_t i, j;            // nodes; j < 0: of one node
    const int32_t* columns;  // [n_columns] its features in the bank
    int64_t n_columns;
    int64_t weights;                // where its rows of weights begin, [n_rows][n_columns]
    const PseudoTerm* const* rows;  // [n_rows + 1] the terms of row r are rows[r] … rows[r + 1]
    int64_t n_rows;
};

struct PseudoTask {
    const PseudoFactor *begin, *end;
    const double* w;
    const double* bank;     // [columns][stride], 0 behind the last sample
    const double* one_hot;  // [nodes][K][stride] 1[y_i = k]
    const double* weights;  // [stride] of the samples, 0 behind the last
    const int32_t* states;  // [nodes] how many states each has
    double* residuals;      // [nodes][K][stride] first c, then R
    double* gradient;       // [weights]
    int64_t first, last;    // samples, multiples of 8
    int64_t stride, n_nodes, K;
};

struct PseudoKernels {
    // Of the samples first … last and all factors: writes R and returns the loss.
    double (*value)(const PseudoTask&);
    // Of some factors and all samples: writes the gradient by their weights.
    void (*gradient)(const PseudoTask&);
};

namespace generic {
const PseudoKernels& pseudo_kernels();
}
namespace avx2 {
const PseudoKernels& pseudo_kernels();
}
namespace avx512 {
const PseudoKernels& pseudo_kernels();
}
// As find_message_kernels.
const PseudoKernels* find_pseudo_kernels(const char* name);

class PseudoTable {
public:
    // The nodes or the edges of the graph, and their weights.
    struct Part {
        const int32_t* ends;     // [n][2]; of nodes null
        const int32_t* columns;  // [n][n_columns]
        const double* basis;     // [B][K] or [B][K][K]
        const bool* active;      // [n][B] which rows of weights there are
        int64_t n, n_columns, B;
    };
    // labels [samples][nodes], weights [samples], bank [columns][samples] are copied.
    PseudoTable(int64_t n_samples, int64_t n_nodes, int64_t K, const int32_t* states, const int32_t* labels,
                const double* weights, const double* bank, int64_t n_bank, const Part& nodes, const Part& edges);
    PseudoTable(const PseudoTable&) = delete;

    // Returns the loss and writes its gradient.
    double value(const double* w, double* gradient, const PseudoKernels& kernels, int n_threads,
                 const std::function<bool()>& poll) const;
    int64_t size() const { return size_; }

private:
    void add(const Part& part);

    int64_t n_samples_, n_nodes_, K_, stride_, size_ = 0;
    std::vector<int32_t> states_;
    Buffer weights_, bank_, one_hot_;
    std::vector<std::unique_ptr<int32_t[]>> columns_;
    std::vector<std::unique_ptr<PseudoTerm[]>> terms_;  // of a part, all its rows
    std::vector<const PseudoTerm*> starts_;
    std::vector<PseudoFactor> factors_;
    double work_ = 0.0;  // multiplications of an evaluation
};

}  // namespace crfkit
