// The best labellings of one sequence, by A* search backwards through the lattice.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels.hpp"

namespace crfkit {

struct Labelling {
    double score;
    std::vector<int32_t> labels;
};

// At most `most` labellings, best first; fewer where no more are allowed. `check` is called now and then.
std::vector<Labelling> best_labellings(const ChainScores& scores, const ChainWeights& w, int64_t most,
                                       const std::function<void()>& check);

// The score of these labels.
double score_labels(const ChainScores& scores, const ChainWeights& w, const int32_t* labels);

}  // namespace crfkit
