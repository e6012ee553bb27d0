// Sum-product message updates, eight nodes at a time. Compiled once per instruction set.
#include <algorithm>

#include "../support/simd.hpp"
#include "../support/simd_log.hpp"
#include "blocks.hpp"
#include "messages.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

constexpr int kParts = kBlock / kLanes;  // vectors in a block's row

// |log a − log b| where they are close, less where they are not; a, b > 0.
CRFKIT_INLINE V log_change(V a, V b) {
    const V d = a - b;
    return (d < V{} ? -d : d) * splat(2.0) / (a + b);
}

template <class Index>
CRFKIT_INLINE V gather(const double* in, const Index* targets) {
    V x;
    for (int l = 0; l < kLanes; ++l) x[l] = in[targets[l]];
    return x;
}

void exponentials(double* x, int64_t n) {
    int64_t k = 0;
    for (; k + kLanes <= n; k += kLanes) {
        const V v = load(x + k);
        const V e = exp_nonpositive(v < V{} ? v : -v);
        store(x + k, v < V{} ? e : splat(1.0) / e);
    }
    for (; k < n; ++k) x[k] = std::exp(x[k]);
}

// The new ratio n/d, of which `keep` is taken from the old one r. Messages are mixed as distributions:
// (n, d)/(n + d) with (r, 1)/(1 + r), which is again one division.
CRFKIT_INLINE V damped(V n, V d, V r, V keep) {
    const V step = splat(1.0) - keep;
    const V scale = step * (splat(1.0) + r), total = keep * (n + d);
    return (scale * n + total * r) / (scale * d + total);
}

// The ratios of a block: DAMPED and MEASURE are rare, so they are compiled apart.
template <bool DAMPED, bool MEASURE>
double ratio_blocks(const MessageTask& task) {
    V change{};
    const V keep = splat(task.damping);
    for (int64_t b = task.first; b < task.last; ++b) {
        const int64_t row = task.first_rows[b] * kBlock;
        const int degree = task.degrees[b];
        for (int part = 0; part < kParts; ++part) {
            const int64_t start = row + part * kLanes;
            V B = load(task.unary + b * kBlock + part * kLanes);
            for (int k = 0; k < degree; ++k) {
                const V r = gather(task.in, task.targets + start + k * kBlock);
                store(task.scratch + k * kLanes, r);
                B *= r;
            }
            for (int k = 0; k < degree; ++k) {
                const V r = load(task.scratch + k * kLanes), q = load(task.tables + start + k * kBlock);
                const V n = r + q * B, d = q * r + B;
                V fresh;
                if constexpr (DAMPED || MEASURE) {
                    const V old = load(task.in + start + k * kBlock);
                    fresh = DAMPED ? damped(n, d, old, keep) : n / d;
                    if constexpr (MEASURE) change = larger(change, log_change(fresh, old));
                } else {
                    fresh = n / d;
                }
                store(task.out + start + k * kBlock, fresh);
            }
        }
    }
    return maximum(change);
}

double ratios(const MessageTask& task) {
    if (task.damping > 0) return task.measure ? ratio_blocks<true, true>(task) : ratio_blocks<true, false>(task);
    return task.measure ? ratio_blocks<false, true>(task) : ratio_blocks<false, false>(task);
}

// The tables of edges: each its own, multiples of the identity, or one symmetric table for all.
struct FullTable {
    static constexpr bool kPotts = false;
    static int64_t size(int n) { return int64_t{n} * n; }  // per slot
    CRFKIT_INLINE static V at(const double* table, int x) { return load(table + x * kBlock); }
};
struct PottsTable {
    static constexpr bool kPotts = true;
    static int64_t size(int) { return 1; }
    CRFKIT_INLINE static V at(const double* table, int) { return load(table); }
};
struct SharedTable {
    static constexpr bool kPotts = false;
    static int64_t size(int) { return 0; }
    CRFKIT_INLINE static V at(const double* table, int x) { return splat(table[x]); }
};

// Where the values of eight slots stand when there are n of them, eight apart.
CRFKIT_INLINE void value_places(const int32_t* slots, int n, int64_t* out) {
    for (int l = 0; l < kLanes; ++l) out[l] = int64_t{slots[l] / kBlock} * n * kBlock + slots[l] % kBlock;
}

// K = 0: number of states known at run time only.
template <int K, class Table>
double table_blocks(const MessageTask& task) {
    const int n = K ? K : task.n_states;
    const int64_t table_size = Table::size(n);
    V change{};
    const V keep = splat(task.damping), step = splat(1.0 - task.damping);
    const int64_t half = int64_t{task.max_degree} * n * kLanes;
    double *arrived = task.scratch, *before = task.scratch + half;  // [degree][K]
    V few[K ? 2 * K : 1];  // with many states they stand behind the scratch of the neighbours
    V* product = K ? few : reinterpret_cast<V*>(before + half);
    V* fresh = product + n;
    for (int64_t b = task.first; b < task.last; ++b) {
        const int64_t row = task.first_rows[b];
        const int degree = task.degrees[b];
        for (int part = 0; part < kParts; ++part) {
            const double* unary = task.unary + b * n * kBlock + part * kLanes;
            const double* tables = task.tables + row * table_size * kBlock + (table_size ? part * kLanes : 0);
            const int64_t start = row * n * kBlock + part * kLanes;
            // The cavity of neighbour k: unary times the messages of those before and of those after it.
            for (int x = 0; x < n; ++x) product[x] = load(unary + x * kBlock);
            for (int k = 0; k < degree; ++k) {
                int64_t places[kLanes];
                value_places(task.targets + (row + k) * kBlock + part * kLanes, n, places);
                for (int x = 0; x < n; ++x) {
                    const V m = gather(task.in + x * kBlock, places);
                    store(arrived + (k * n + x) * kLanes, m);
                    store(before + (k * n + x) * kLanes, product[x]);
                    product[x] *= m;
                }
            }
            for (int x = 0; x < n; ++x) product[x] = splat(1.0);
            for (int k = degree - 1; k >= 0; --k) {
                V total{};
                for (int x = 0; x < n; ++x) fresh[x] = V{};
                const double* table = tables + k * table_size * kBlock;
                for (int x = 0; x < n; ++x) {
                    const V cavity = load(before + (k * n + x) * kLanes) * product[x];
                    product[x] *= load(arrived + (k * n + x) * kLanes);
                    if constexpr (Table::kPotts) {
                        fresh[x] = cavity;
                        total += cavity;
                    } else {
                        for (int y = 0; y < n; ++y) fresh[y] += cavity * Table::at(table, x * n + y);
                    }
                }
                if constexpr (Table::kPotts) {
                    // m(y) ∝ Σ_x cavity(x) + (q − 1)·cavity(y); the sum over y is total·(K − 1 + q)
                    const V q = Table::at(table, 0);
                    const V scale = splat(n) / (total * (q + splat(n - 1.0)));
                    for (int y = 0; y < n; ++y) fresh[y] = (total + (q - splat(1.0)) * fresh[y]) * scale;
                } else {
                    V sum = fresh[0];
                    for (int y = 1; y < n; ++y) sum += fresh[y];
                    const V scale = splat(n) / sum;
                    for (int y = 0; y < n; ++y) fresh[y] *= scale;
                }
                const int64_t own = start + k * n * kBlock;
                if (task.damping > 0 || task.measure)
                    for (int y = 0; y < n; ++y) {
                        const V old = load(task.in + own + y * kBlock);
                        if (task.damping > 0) fresh[y] = step * fresh[y] + keep * old;
                        change = larger(change, log_change(fresh[y], old));
                    }
                for (int y = 0; y < n; ++y) store(task.out + own + y * kBlock, fresh[y]);
            }
        }
    }
    return maximum(change);
}

// Tables are those of MessageKernels::tables: q(x, y) of the states from 1 on. K = 0: number of states known at run
// time only.
template <int K>
double ratio_table_blocks(const MessageTask& task) {
    const int n = (K ? K : task.n_states) - 1;  // ratios of a message
    V change{};
    const V one = splat(1.0), keep = splat(task.damping), step = splat(1.0 - task.damping);
    const int64_t half = int64_t{task.max_degree} * n * kLanes;
    double *arrived = task.scratch, *before = task.scratch + half;  // [degree][n]
    V few[K ? 2 * K : 1];  // with many states they stand behind the scratch of the neighbours
    V* product = K ? few : reinterpret_cast<V*>(before + half);
    V* fresh = product + n;
    for (int64_t b = task.first; b < task.last; ++b) {
        const int64_t row = task.first_rows[b];
        const int degree = task.degrees[b];
        for (int part = 0; part < kParts; ++part) {
            const double* unary = task.unary + b * (n + 1) * kBlock + part * kLanes;
            const int64_t start = row * n * kBlock + part * kLanes;
            const V none = load(unary);  // of state 0, whose ratios are 1
            // The cavity of neighbour k: unary times the messages of those before and of those after it.
            for (int x = 0; x < n; ++x) product[x] = load(unary + (x + 1) * kBlock);
            for (int k = 0; k < degree; ++k) {
                int64_t places[kLanes];
                value_places(task.targets + (row + k) * kBlock + part * kLanes, n, places);
                for (int x = 0; x < n; ++x) {
                    const V m = gather(task.in + x * kBlock, places);
                    store(arrived + (k * n + x) * kLanes, m);
                    store(before + (k * n + x) * kLanes, product[x]);
                    product[x] *= m;
                }
            }
            for (int x = 0; x < n; ++x) product[x] = one;
            for (int k = degree - 1; k >= 0; --k) {
                const int64_t own = start + k * n * kBlock;
                const double* table = task.tables + (row + k) * n * n * kBlock + part * kLanes;
                V total = none;
                for (int y = 0; y < n; ++y) fresh[y] = none;
                for (int x = 0; x < n; ++x) {
                    const V cavity = load(before + (k * n + x) * kLanes) * product[x];
                    product[x] *= load(arrived + (k * n + x) * kLanes);
                    total += cavity;
                    for (int y = 0; y < n; ++y) fresh[y] += cavity * load(table + (x * n + y) * kBlock);
                }
                if (task.damping > 0) {
                    // Messages are mixed as distributions: (total, fresh) with (1, old), each divided by its sum.
                    V sum = total, old_sum = one;
                    for (int y = 0; y < n; ++y) sum += fresh[y];
                    for (int y = 0; y < n; ++y) old_sum += load(task.in + own + y * kBlock);
                    const V mine = step * old_sum, theirs = keep * sum;
                    total = mine * total + theirs;
                    for (int y = 0; y < n; ++y) fresh[y] = mine * fresh[y] + theirs * load(task.in + own + y * kBlock);
                }
                const V scale = one / total;
                for (int y = 0; y < n; ++y) fresh[y] *= scale;
                if (task.measure)
                    for (int y = 0; y < n; ++y)
                        change = larger(change, log_change(fresh[y], load(task.in + own + y * kBlock)));
                for (int y = 0; y < n; ++y) store(task.out + own + y * kBlock, fresh[y]);
            }
        }
    }
    return maximum(change);
}

double log_odds(const MessageTask& task) {
    V change{};
    const V one = splat(1.0), keep = splat(task.damping);
    for (int64_t b = task.first; b < task.last; ++b)
        for (int part = 0; part < kParts; ++part) {
            const int64_t start = task.first_rows[b] * kBlock + part * kLanes;
            V belief = load(task.unary + b * kBlock + part * kLanes);
            for (int k = 0; k < task.degrees[b]; ++k) {
                const V m = gather(task.in, task.targets + start + k * kBlock);
                store(task.scratch + k * kLanes, m);
                belief += load(task.weights + start + k * kBlock) * m;
            }
            for (int k = 0; k < task.degrees[b]; ++k) {
                const V h = belief - load(task.scratch + k * kLanes), q = load(task.tables + start + k * kBlock);
                const V e = exp_nonpositive(h < V{} ? h : -h);  // both sums divided by e^h where that is above 1
                const V n = h < V{} ? one + q * e : e + q, d = h < V{} ? q + e : q * e + one;
                const V old = load(task.in + start + k * kBlock);
                const V step = (log_positive(n / d) - old) * (one - keep);
                change = larger(change, step < V{} ? -step : step);
                store(task.out + start + k * kBlock, old + step);
            }
        }
    return maximum(change);
}

template <int K, class Table>
double log_table_blocks(const MessageTask& task) {
    const int n = K ? K : task.n_states;
    V change{};
    const V left = splat(1.0 - task.damping), least = splat(-700.0);
    double* arrived = task.scratch;  // [degree][K]
    V few[K ? 2 * K : 1];
    V* belief = K ? few : reinterpret_cast<V*>(task.scratch + int64_t{task.max_degree} * n * kLanes);
    V* fresh = belief + n;
    for (int64_t b = task.first; b < task.last; ++b)
        for (int part = 0; part < kParts; ++part) {
            const int64_t row = task.first_rows[b];
            for (int x = 0; x < n; ++x) belief[x] = load(task.unary + (b * n + x) * kBlock + part * kLanes);
            for (int k = 0; k < task.degrees[b]; ++k) {
                int64_t places[kLanes];
                value_places(task.targets + (row + k) * kBlock + part * kLanes, n, places);
                const V rho = load(task.weights + (row + k) * kBlock + part * kLanes);
                for (int x = 0; x < n; ++x) {
                    const V m = gather(task.in + x * kBlock, places);
                    store(arrived + (k * n + x) * kLanes, m);
                    belief[x] += rho * m;
                }
            }
            for (int k = 0; k < task.degrees[b]; ++k) {
                const double* table = task.tables + (row + k) * n * n * kBlock + part * kLanes;
                V top = belief[0] - load(arrived + k * n * kLanes);
                for (int x = 1; x < n; ++x) top = larger(top, belief[x] - load(arrived + (k * n + x) * kLanes));
                for (int y = 0; y < n; ++y) fresh[y] = V{};
                for (int x = 0; x < n; ++x) {
                    const V z = belief[x] - load(arrived + (k * n + x) * kLanes) - top;
                    const V p = z < least ? V{} : exp_nonpositive(z);
                    for (int y = 0; y < n; ++y) fresh[y] += p * Table::at(table, x * n + y);
                }
                top = fresh[0];
                for (int y = 1; y < n; ++y) top = larger(top, fresh[y]);
                for (int y = 0; y < n; ++y) {
                    const int64_t own = ((row + k) * n + y) * kBlock + part * kLanes;
                    const V old = load(task.in + own);
                    const V step = (log_positive(fresh[y] / top) - old) * left;
                    change = larger(change, step < V{} ? -step : step);
                    store(task.out + own, old + step);
                }
            }
        }
    return maximum(change);
}

// With the two states −1 and 1: log-odds f = h + Σ 2J·m, mean m = tanh(f/2).
double binary_means(const MessageTask& task) {
    V change{};
    const V one = splat(1.0), keep = splat(task.damping);
    for (int64_t b = task.first; b < task.last; ++b)
        for (int part = 0; part < kParts; ++part) {
            const int64_t row = task.first_rows[b] * kBlock + part * kLanes, own = b * kBlock + part * kLanes;
            V f = load(task.unary + own);
            for (int k = 0; k < task.degrees[b]; ++k)
                f += load(task.tables + row + k * kBlock) * gather(task.in, task.targets + row + k * kBlock);
            const V e = exp_nonpositive(f < V{} ? f : -f);
            V mean = (one - e) / (one + e);
            mean = f < V{} ? -mean : mean;
            const V old = load(task.in + own);
            mean += keep * (old - mean);
            const V d = mean - old;
            change = larger(change, d < V{} ? -d : d);
            store(task.out + own, mean);
        }
    return maximum(change);
}

// p(x) ∝ exp(U(x) + Σ_neighbours Σ_y P(x, y)·p(y)).
template <int K, class Table>
double mean_blocks(const MessageTask& task) {
    const int n = K ? K : task.n_states;
    const int64_t table_size = Table::size(n);
    V change{};
    const V keep = splat(task.damping), least = splat(-700.0);
    V few[K ? K : 1];
    V* f = K ? few : reinterpret_cast<V*>(task.scratch);
    for (int64_t b = task.first; b < task.last; ++b)
        for (int part = 0; part < kParts; ++part) {
            const int64_t own = b * n * kBlock + part * kLanes;
            for (int x = 0; x < n; ++x) f[x] = load(task.unary + own + x * kBlock);
            for (int k = 0; k < task.degrees[b]; ++k) {
                const int64_t row = task.first_rows[b] + k;
                const double* table = task.tables + row * table_size * kBlock + (table_size ? part * kLanes : 0);
                int64_t places[kLanes];
                value_places(task.targets + row * kBlock + part * kLanes, n, places);
                for (int y = 0; y < n; ++y) {
                    const V p = gather(task.in + y * kBlock, places);
                    if constexpr (Table::kPotts)
                        f[y] += Table::at(table, 0) * p;
                    else
                        for (int x = 0; x < n; ++x) f[x] += Table::at(table, x * n + y) * p;
                }
            }
            V top = f[0], sum{};
            for (int x = 1; x < n; ++x) top = larger(top, f[x]);
            for (int x = 0; x < n; ++x) {
                const V z = f[x] - top;
                f[x] = z < least ? V{} : exp_nonpositive(z);
                sum += f[x];
            }
            const V scale = splat(1.0) / sum;
            for (int x = 0; x < n; ++x) {
                const V old = load(task.in + own + x * kBlock);
                const V fresh = f[x] * scale;
                const V d = (fresh - old) * (splat(1.0) - keep);
                change = larger(change, d < V{} ? -d : d);
                store(task.out + own + x * kBlock, old + d);
            }
        }
    return maximum(change);
}

template <template <int, class> class Blocks, class Table>
double by_states(const MessageTask& task) {
    switch (task.n_states) {
        case 2: return Blocks<2, Table>::run(task);
        case 3: return Blocks<3, Table>::run(task);
        case 4: return Blocks<4, Table>::run(task);
        case 5: return Blocks<5, Table>::run(task);
        default: return Blocks<0, Table>::run(task);
    }
}
template <int K, class Table>
struct MessageBlocks {
    static double run(const MessageTask& task) { return table_blocks<K, Table>(task); }
};
template <int K, class>
struct RatioBlocks {
    static double run(const MessageTask& task) { return ratio_table_blocks<K>(task); }
};
template <int K, class Table>
struct LogBlocks {
    static double run(const MessageTask& task) { return log_table_blocks<K, Table>(task); }
};
template <int K, class Table>
struct MeanBlocks {
    static double run(const MessageTask& task) { return mean_blocks<K, Table>(task); }
};

}  // namespace

const MessageKernels& message_kernels() {
    static const MessageKernels kernels{CRFKIT_NAME_OF(CRFKIT_KERNELS),
                                        exponentials,
                                        ratios,
                                        by_states<RatioBlocks, FullTable>,
                                        by_states<MessageBlocks, PottsTable>,
                                        by_states<MessageBlocks, SharedTable>,
                                        log_odds,
                                        by_states<LogBlocks, FullTable>,
                                        binary_means,
                                        by_states<MeanBlocks, FullTable>,
                                        by_states<MeanBlocks, PottsTable>,
                                        by_states<MeanBlocks, SharedTable>};
    return kernels;
}

}  // namespace crfkit::CRFKIT_SPACE
