// Sweeps of a message kernel over the blocks of a graph.
#pragma once

#include <functional>

#include "../support/buffer.hpp"
#include "blocks.hpp"
#include "messages.hpp"
#include "sweeps.hpp"

namespace crfkit {

// Runs a kernel until it has converged. `task` says what it reads, all but the range of blocks, the messages and the
// scratch; `messages` are where it starts and ends. Changes are measured in every `measure_every`-th sweep.
inline Outcome sweep_blocks(const Blocks& blocks, double (*kernel)(const MessageTask&), MessageTask task,
                            Buffer& messages, const Sweeps& sweeps, int measure_every,
                            const std::function<bool()>& poll) {
    // Flooding is one phase over all blocks, from one buffer into another; otherwise a phase is a colour.
    const std::vector<int64_t> phases =
        sweeps.flooding ? std::vector<int64_t>{0, blocks.n_blocks()} : blocks.colour_bounds;
    const int n_phases = static_cast<int>(phases.size()) - 1;
    if (n_phases == 0 || blocks.n_blocks() == 0) return {0, 0.0, true};
    const int64_t K = task.n_states, work = (blocks.n_rows() * K + blocks.n_blocks()) * kBlock * K / n_phases;
    const int n_threads = static_cast<int>(std::clamp<int64_t>(work / 4096, 1, std::max(sweeps.n_threads, 1)));
    const auto shares = blocks.shares(phases, n_threads);
    Buffer other;
    if (sweeps.flooding) {
        other = Buffer(messages.size());
        std::copy_n(messages.data(), messages.size(), other.data());
    }
    std::vector<Buffer> scratch;
    for (int thread = 0; thread < n_threads; ++thread) scratch.emplace_back((2 * blocks.max_degree + 2) * K * kBlock);
    task.degrees = blocks.degrees.data();
    task.first_rows = blocks.first_rows.data();
    task.max_degree = blocks.max_degree;
    task.damping = sweeps.damping;
    const Outcome outcome = run_sweeps(sweeps, n_phases, n_threads, measure_every, poll,
                                       [&](int thread, int sweep, int phase, bool measure) {
                                           double *from = messages.data(), *to = sweeps.flooding ? other.data() : from;
                                           if (sweep % 2 == 0) std::swap(from, to);
                                           MessageTask share = task;
                                           share.first = shares[phase][thread];
                                           share.last = shares[phase][thread + 1];
                                           share.in = from;
                                           share.out = to;
                                           share.measure = measure;
                                           share.scratch = scratch[thread].data();
                                           return kernel(share);
                                       });
    if (sweeps.flooding && outcome.iterations % 2 == 1) messages = std::move(other);
    return outcome;
}

}  // namespace crfkit
