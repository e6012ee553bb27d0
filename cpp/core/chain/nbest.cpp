#include "nbest.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "lattice_states.hpp"

namespace crfkit {

namespace {

// A state at t with a labelling of all later positions. `bound` is the score of the best labelling that ends so:
// delta_t(state) + rest, where rest scores the later positions and the jumps to them.
struct Partial {
    double bound, rest;
    int64_t state, t, next;  // next: the Partial of position t + 1
};

}  // namespace

// delta is the exact score of the best way to a state, so that partial labellings leave the queue in the order of
// the best labelling that they can become, and the first n that reach the start are the n best.
std::vector<Labelling> best_labellings(const ChainScores& scores, const ChainWeights& w, int64_t most,
                                       const std::function<void()>& check) {
    std::vector<Labelling> found;
    if (most < 1) return found;
    if (scores.length == 0) return {{0.0, {}}};
    const LatticeStates states{w, scores};
    std::vector<Partial> made;
    using Entry = std::pair<double, int64_t>;  // (bound, -index in made): of equal ones the oldest first
    std::priority_queue<Entry> queue;
    const auto add = [&](const Partial& partial) {
        queue.emplace(partial.bound, -static_cast<int64_t>(made.size()));
        made.push_back(partial);
    };
    // Every partial labelling can become a complete one with the score of its bound, and no two can become the same.
    // So only those among the best n bounds are needed, of the ones that wait and of the ones that are complete;
    // `least` holds these bounds, the least one on top. What a partial labelling becomes first has its bound already.
    std::priority_queue<double, std::vector<double>, std::greater<>> least;
    const auto needed = [&](double bound) {
        if (bound == -INFINITY) return false;
        if (static_cast<int64_t>(least.size()) == most) {
            if (!(bound > least.top())) return false;
            least.pop();
        }
        least.push(bound);
        return true;
    };
    const int64_t last = scores.length - 1;
    states.each([&](int64_t s) {
        const double bound = scores.delta[last * w.span + s];
        if (needed(bound)) add({bound, 0.0, s, last, -1});
    });
    for (int64_t steps = 0; !queue.empty() && static_cast<int64_t>(found.size()) < most;) {
        int64_t index = -queue.top().second;
        queue.pop();
        // The best way back from a partial labelling has its bound, and mostly is the next one to leave the queue: it
        // is followed at once, and waits only where another one has its turn.
        while (made[static_cast<size_t>(index)].t > 0) {
            if (++steps % 1024 == 0) check();
            const Partial top = made[static_cast<size_t>(index)];
            const double* jumps = states.jumps(top.t);
            const double* before = scores.delta + (top.t - 1) * w.span;
            const double rest = top.rest + scores.u[top.t * w.span + top.state];
            const int32_t label = states.label(top.state);
            int64_t best = -1, followed = -1;
            states.each_before(top.state, [&](int64_t r) {
                if (best < 0 || before[r] + jumps[r * w.width + label] > before[best] + jumps[best * w.width + label])
                    best = r;
            });
            states.each_before(top.state, [&](int64_t r) {
                const double after = rest + jumps[r * w.width + label], bound = before[r] + after;
                if (r == best) {
                    followed = static_cast<int64_t>(made.size());
                    made.push_back({bound, after, r, top.t - 1, index});
                } else if (needed(bound)) {
                    add({bound, after, r, top.t - 1, index});
                }
            });
            const Entry next{made[static_cast<size_t>(followed)].bound, -followed};
            if (!queue.empty() && queue.top() > next) {
                queue.push(next);
                index = -queue.top().second;
                queue.pop();
            } else {
                index = followed;
            }
        }
        Labelling complete{made[static_cast<size_t>(index)].bound, {}};
        complete.labels.reserve(static_cast<size_t>(scores.length));
        for (int64_t i = index; i >= 0; i = made[static_cast<size_t>(i)].next)
            complete.labels.push_back(states.label(made[static_cast<size_t>(i)].state));
        found.push_back(std::move(complete));
    }
    check();
    // Rounding may have let two of equal score change places.
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    return found;
}

double score_labels(const ChainScores& scores, const ChainWeights& w, const int32_t* labels) {
    const LatticeStates states{w, scores};
    double score = 0.0;
    for (int64_t t = 0; t < scores.length; ++t) {
        score += scores.u[t * w.span + states.state(labels, t)];
        if (t > 0) score += states.jumps(t)[states.state(labels, t - 1) * w.width + labels[t]];
    }
    return score;
}

}  // namespace crfkit
