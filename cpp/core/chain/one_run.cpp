// The best labellings in which each group of labels has at most one run, by A* search backwards through the lattice.
//
// A partial labelling is a state at t with labels of all later positions. What it can become depends on (t, state,
// groups that have had a run) alone, so that of those with the same key only the best n are needed. The bound,
// delta_t(state) + rest, is what Viterbi promises for the earlier positions without the rule: it is never too low.
#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <unordered_map>
#include <utility>

#include "lattice_states.hpp"
#include "nbest.hpp"

namespace crfkit {

namespace {

using Groups = std::array<uint64_t, OneRunEach::kMost / 64>;

constexpr size_t kBeam = 512;

struct Partial {
    double bound, rest;
    int64_t state, t, next;  // next: the Partial of position t + 1
    Groups seen;
};

struct Key {
    int64_t t, state;
    Groups seen;
    bool operator==(const Key&) const = default;
};

struct KeyHash {
    size_t operator()(const Key& key) const {
        uint64_t h = static_cast<uint64_t>(key.t) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(key.state);
        for (const uint64_t word : key.seen) h = (h ^ word) * 0xBF58476D1CE4E5B9u, h ^= h >> 29;
        return static_cast<size_t>(h);
    }
};

class Search {
public:
    Search(const ChainScores& scores, const ChainWeights& w, const OneRunEach& rule)
        : scores_(scores), w_(w), rule_(rule), states_{w, scores} {}

    // Calls add(partial) for the states of the last position.
    template <class Add>
    void begin(const Add& add) const {
        const int64_t last = scores_.length - 1;
        states_.each([&](int64_t s) {
            const double bound = scores_.delta[last * w_.span + s];
            Partial partial{bound, 0.0, s, last, -1, {}};
            if (bound > -INFINITY && open_run(states_.label(s), partial.seen)) add(partial);
        });
    }

    // Calls add(partial) for what made[index] becomes with one more position.
    template <class Add>
    void extend(const Partial& from, int64_t index, const Add& add) const {
        const double* jumps = states_.jumps(from.t);
        const double* before = scores_.delta + (from.t - 1) * w_.span;
        const double rest = from.rest + scores_.u[from.t * w_.span + from.state];
        const int32_t label = states_.label(from.state);
        states_.each_before(from.state, [&](int64_t r) {
            const double after = rest + jumps[r * w_.width + label], bound = before[r] + after;
            if (!(bound > -INFINITY)) return;
            const int32_t i = states_.label(r);
            Partial partial{bound, after, r, from.t - 1, index, from.seen};
            if (rule_.goes_on[i * w_.n_labels + label] || open_run(i, partial.seen)) add(partial);
        });
    }

    Labelling complete(const std::vector<Partial>& made, int64_t index) const {
        Labelling found{made[static_cast<size_t>(index)].bound, {}};
        for (int64_t i = index; i >= 0; i = made[static_cast<size_t>(i)].next)
            found.labels.push_back(states_.label(made[static_cast<size_t>(i)].state));
        return found;
    }

private:
    // Marks the group of a label as seen; false if it has had its run.
    bool open_run(int32_t label, Groups& seen) const {
        const int32_t group = rule_.groups[label];
        if (group < 0) return true;
        uint64_t& word = seen[static_cast<size_t>(group) / 64];
        const uint64_t bit = uint64_t{1} << (group % 64);
        if (word & bit) return false;
        word |= bit;
        return true;
    }

    const ChainScores& scores_;
    const ChainWeights& w_;
    const OneRunEach& rule_;
    LatticeStates states_;
};

// The labellings that are left when only the kBeam best partial labellings of each position are kept.
std::vector<Labelling> beam(const Search& search, int64_t length, const std::function<void()>& check) {
    std::vector<Partial> made, found;  // those that were kept, and those of the position under way
    const auto better = [](const Partial& a, const Partial& b) { return a.bound > b.bound; };
    const auto add = [&](const Partial& partial) { found.push_back(partial); };
    const auto keep = [&] {
        std::stable_sort(found.begin(), found.end(), better);
        if (found.size() > kBeam) found.resize(kBeam);
        made.insert(made.end(), found.begin(), found.end());
        found.clear();
    };
    size_t first = 0;  // in made, of the position under way
    search.begin(add);
    keep();
    for (int64_t t = length - 1; t > 0; --t) {
        check();
        const size_t end = made.size();
        for (; first < end; ++first) search.extend(made[first], static_cast<int64_t>(first), add);
        keep();
    }
    std::vector<Labelling> labellings;
    for (; first < made.size(); ++first) labellings.push_back(search.complete(made, static_cast<int64_t>(first)));
    return labellings;
}

}  // namespace

std::vector<Labelling> best_labellings(const ChainScores& scores, const ChainWeights& w, int64_t most,
                                       const OneRunEach& rule, bool& exact, const std::function<void()>& check) {
    exact = true;
    std::vector<Labelling> found;
    if (most < 1) return found;
    if (scores.length == 0) return {{0.0, {}}};
    const Search search(scores, w, rule);
    std::vector<Partial> made;
    using Entry = std::pair<double, int64_t>;  // (bound, -index in made): of equal ones the oldest first
    std::priority_queue<Entry> queue;
    const auto add = [&](const Partial& partial) {
        queue.emplace(partial.bound, -static_cast<int64_t>(made.size()));
        made.push_back(partial);
    };
    std::unordered_map<Key, int64_t, KeyHash> left;  // how many with this key have left the queue
    search.begin(add);
    for (int64_t steps = 1; !queue.empty() && static_cast<int64_t>(found.size()) < most; ++steps) {
        if (steps % 1024 == 0) check();
        if (steps > rule.limit) {
            exact = false;
            break;
        }
        const int64_t index = -queue.top().second;
        queue.pop();
        const Partial top = made[static_cast<size_t>(index)];
        if (++left[{top.t, top.state, top.seen}] > most) continue;
        if (top.t == 0)
            found.push_back(search.complete(made, index));
        else
            search.extend(top, index, add);
    }
    check();
    if (!exact)
        for (Labelling& labelling : beam(search, scores.length, check))
            if (std::none_of(found.begin(), found.end(), [&](const auto& x) { return x.labels == labelling.labels; }))
                found.push_back(std::move(labelling));
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (static_cast<int64_t>(found.size()) > most) found.resize(static_cast<size_t>(most));
    return found;
}

}  // namespace crfkit
