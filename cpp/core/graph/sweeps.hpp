// The loop of every engine that sweeps over a graph: phases one after the other, threads side by side in each.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "../support/barrier.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

struct Sweeps {
    int max_iterations;
    double tolerance;  // on the largest change in a sweep, as it would be without damping
    double damping;    // share of the old value that is kept
    bool flooding;     // all from the values of the last sweep; otherwise colour by colour, from the newest
    int n_threads;
};

struct Outcome {
    int iterations;
    double residual;
    bool converged;
};

// work(thread, sweep, phase, measure) does a thread's share of a phase and returns the largest change if it is to
// measure it, which it is in every `measure_every`-th sweep; there the loop may end. Sweeps are counted from 1.
template <class Work>
Outcome run_sweeps(const Sweeps& sweeps, int n_phases, int n_threads, int measure_every,
                   const std::function<bool()>& poll, const Work& work) {
    Barrier barrier(n_threads);
    std::vector<double> changes(static_cast<size_t>(n_threads), 0.0);
    Outcome outcome{0, std::numeric_limits<double>::infinity(), false};
    bool done = sweeps.max_iterations <= 0, interrupted = false;
    run_threads(n_threads, [&](int thread) {
        for (int sweep = 1; !done; ++sweep) {
            const bool measure = sweep % measure_every == 0 || sweep == sweeps.max_iterations;
            double change = 0;
            for (int phase = 0; phase < n_phases; ++phase) {
                change = std::max(change, work(thread, sweep, phase, measure));
                barrier.wait();
            }
            if (!measure) continue;
            changes[thread] = change;
            barrier.wait();
            if (thread == 0) {
                // Damping makes changes small without bringing the fixed point nearer.
                const double most = *std::max_element(changes.begin(), changes.end()) / (1 - sweeps.damping);
                interrupted = poll && poll();
                outcome = {sweep, most, most <= sweeps.tolerance};
                done = outcome.converged || interrupted || sweep >= sweeps.max_iterations;
            }
            barrier.wait();
        }
    });
    if (interrupted) throw Interrupted();
    return outcome;
}

// work(begin, end) on even shares of 0 … n, at least `grain` each.
template <class Work>
void over(int64_t n, int64_t grain, int n_threads, const Work& work) {
    n_threads = static_cast<int>(std::clamp<int64_t>(n / grain, 1, std::max(n_threads, 1)));
    run_threads(n_threads, [&](int thread) { work(n * thread / n_threads, n * (thread + 1) / n_threads); });
}

}  // namespace crfkit
