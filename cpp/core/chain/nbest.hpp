// The best labellings of one sequence, by A* search backwards through the lattice.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/kernels.hpp"

namespace crfkit {

struct Labelling {
    double score;
    std::vector<int32_t> labels;
};

// At most `most` labellings, best first; fewer where no more are allowed. `check` is called now and then.
std::vector<Labelling> best_labellings(const ChainScores& scores, const ChainWeights& w, int64_t most,
                                       const std::function<void()>& check);

// At most one run of each group of labels: a run goes on from label i to label j if goes_on[i][j].
struct OneRunEach {
    static constexpr int32_t kMost = 256;  // groups
    const int32_t* groups;                 // [L], -1: no limit
    const uint8_t* goes_on;                // [L][L]
    int64_t limit;                         // partial labellings that are looked at before the search gives up
};
// The same among the labellings that keep to the rule. Where the limit ends the search, `exact` is false and what a
// beam finds is returned; it may be nothing.
std::vector<Labelling> best_labellings(const ChainScores& scores, const ChainWeights& w, int64_t most,
                                       const OneRunEach& rule, bool& exact, const std::function<void()>& check);

// The score of these labels.
double score_labels(const ChainScores& scores, const ChainWeights& w, const int32_t* labels);

}  // namespace crfkit
