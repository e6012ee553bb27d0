// Forward-backward over several sequences at once: a table of jumps that does not fit in the nearest cache is then read
// once for all of them, and their products are products of matrices. Included after inference.hpp.
//
// Each sequence has rows e, alpha, beta of recursions.inl, with one change: alpha_t and b_t are scaled by powers of 2,
// f_t = 2^-exponent(sum of alpha_{t-1}), multiplied into e_t, and g_t = 2^-exponent(sum of beta_t): nothing is rounded,
// and log Z counts exponents.

constexpr int kBatch = kRegisters == 32 ? 8 : 4;                      // sequences
constexpr int64_t kNearCache = 48 << 10;                              // bytes
constexpr int64_t kBatchNumbers = (int64_t{1} << 21) / sizeof(Real);  // that the rows of several sequences may take

// Calls f.template run<B>(column) for blocks of B <= Most vectors that cover `width` lanes.
template <int Most, class F>
CRFKIT_INLINE void over_tiles(int64_t width, const F& f) {
    int64_t column = 0;
    for (; width - column >= Most * kLanes; column += Most * kLanes) f.template run<Most>(column);
    const int64_t rest = (width - column) / kLanes;
    const auto last = [&]<int B>() {
        if constexpr (B < Most)
            if (rest == B) f.template run<B>(column);
    };
    last.template operator()<5>();
    last.template operator()<4>();
    last.template operator()<3>();
    last.template operator()<2>();
    last.template operator()<1>();
}

// RowTimesMatrix for S rows of as many sequences and one matrix: S * B accumulators in registers.
template <int S>
struct RowsTimesMatrix {
    const Real* const* a;
    int64_t a_stride;
    const Real* m;
    int64_t m_stride, n;
    const Real* const* e;  // or null
    Real* const* out;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        V total[S][B] = {};
        const Real* from[S];
        for (int s = 0; s < S; ++s) from[s] = a[s];
        const Real* row = m + column;
        for (int64_t i = 0; i < n; ++i, row += m_stride) {
            V x[B];
            for (int b = 0; b < B; ++b) x[b] = load(row + b * kLanes);
            for (int s = 0; s < S; ++s) {
                const V by = splat(from[s][i * a_stride]);
                for (int b = 0; b < B; ++b) total[s][b] += by * x[b];
            }
        }
        for (int s = 0; s < S; ++s)
            for (int b = 0; b < B; ++b)
                store(out[s] + column + b * kLanes, e ? total[s][b] * load(e[s] + column + b * kLanes) : total[s][b]);
    }
};

// out_s[P] = sum_i a_s[i * a_stride] m[i * P + …], times e_s where given, for s < count.
inline void rows_times_matrix(int count, const Real* const* a, int64_t a_stride, const Real* m, int64_t n,
                              int64_t width, const Real* const* e, Real* const* out) {
    const auto tiles = [&]<int S>() {
        if constexpr (S <= kBatch)
            over_tiles<(S > 4 ? 24 / 8 : kOuterVectors / 4)>(width,
                                                             RowsTimesMatrix<S>{a, a_stride, m, width, n, e, out});
    };
    switch (count) {
        case 8: return tiles.template operator()<8>();
        case 7: return tiles.template operator()<7>();
        case 6: return tiles.template operator()<6>();
        case 5: return tiles.template operator()<5>();
        case 4: return tiles.template operator()<4>();
        case 3: return tiles.template operator()<3>();
        case 2: return tiles.template operator()<2>();
        case 1: return over_blocks(width, RowTimesMatrix{*a, a_stride, m, width, n, e ? *e : nullptr, *out});
        default: return;
    }
}

#if CRFKIT_LANES == 16
#define CRFKIT_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define CRFKIT_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif CRFKIT_LANES == 8
#define CRFKIT_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define CRFKIT_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif CRFKIT_LANES == 4
#define CRFKIT_LOW 0, 4, 1, 5
#define CRFKIT_HIGH 2, 6, 3, 7
#else
#define CRFKIT_LOW 0, 2
#define CRFKIT_HIGH 1, 3
#endif

// to[c][r] = from[r][c] for r < n <= width and c < width, 0 for r from n to width; rows of `width` numbers. Shuffling
// rows r and r + lanes / 2 together moves a bit of the row's number to that of the column.
inline void transpose_rows(const Real* from, int64_t n, int64_t width, Real* to) {
    for (int64_t r = 0; r < width; r += kLanes)
        for (int64_t c = 0; c < width; c += kLanes) {
            V rows[kLanes], mixed[kLanes];
            for (int i = 0; i < kLanes; ++i) rows[i] = r + i < n ? load(from + (r + i) * width + c) : V{};
            for (int bit = 1; bit < kLanes; bit *= 2) {
                for (int i = 0; i < kLanes / 2; ++i) {
                    mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], CRFKIT_LOW);
                    mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], CRFKIT_HIGH);
                }
                for (int i = 0; i < kLanes; ++i) rows[i] = mixed[i];
            }
            for (int i = 0; i < kLanes; ++i) store(to + (c + i) * width + r, rows[i]);
        }
}

constexpr int kMantissa = kSingle ? 23 : 52, kBias = kSingle ? 127 : 1023;

// The exponent of x, a normal number.
CRFKIT_INLINE int exponent_of(Real x) {
    Unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return static_cast<int>(bits >> kMantissa & (kSingle ? 255 : 2047)) - kBias;
}

CRFKIT_INLINE Real power_of_2(int exponent) {
    const auto bits = static_cast<Unsigned>(exponent + kBias) << kMantissa;
    Real x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// The sum of n numbers, in four chains of additions.
CRFKIT_INLINE Real sum_of(const Real* x, int64_t n) {
    V total[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int c = 0; c < 4; ++c) total[c] += load(x + i + c * kLanes);
    for (; i < n; i += kLanes) total[0] += load(x + i);
    return sum((total[0] + total[1]) + (total[2] + total[3]));
}

// The jumps that all sequences of a batch share. Order 2 has the label pairs' scores in those of the triples, so that a
// position scores its labels only: M(i, j, k) = exp(jump of i, j -> k + transition j -> k - shift).
struct BatchJumps {
    int64_t n, width, order;
    int64_t rows;            // of P numbers in alpha_t and beta_t: 1, in order 2 L
    const Real* m;           // order 1: [i][k]; order 2: [j][i][k]
    const Real* back;        // order 1: [k][i]; order 2: [j][k][i]
    const Real* first;       // order 2: [j][k] from the first position, where no label is before
    const Real* first_back;  // order 2: [k][j]
    double shift;
    int64_t span() const { return rows * width; }
};

// Rows of up to kBatch sequences, one after the other, longest first. In order 2 alpha_t(j, k) is at j * P + k and
// beta_t(j, k) at k * P + j, until finish_batch turns beta_t around; at t = 0 both have one row of labels.
struct Batch {
    int count;
    int64_t ids[kBatch], at[kBatch], lengths[kBatch];
    int64_t exponents[kBatch];
    bool failed[kBatch];  // scaled space was not enough
    double log_z[kBatch];
    Real* e;                       // [N][P]
    Real* node;                    // [N][P] marginals of labels
    Real* alpha;                   // [N][span]
    Real* beta;                    // [N][span], later b as in Lattice
    Real* b;                       // [kBatch][span] b_t of one position of each sequence
    Real* square;                  // [P][P]
    int active(int64_t t) const {  // sequences that have a position t
        int k = count;
        while (k > 0 && lengths[k - 1] <= t) --k;
        return k;
    }
};

CRFKIT_INLINE int64_t batch_rows(int64_t n_labels, int64_t order) { return order == 1 ? 1 : n_labels; }

// Positions that several sequences of a batch may have in all.
CRFKIT_INLINE int64_t batch_positions(int64_t n_labels, int64_t order) {
    const int64_t numbers = 2 * (batch_rows(n_labels, order) + 1) * padded<Real>(n_labels);
    const int64_t most = kBatchNumbers / numbers;
    return most < 64 ? 64 : most > 1024 ? 1024 : most;
}

// Numbers of a batch of `positions`, without its tables.
CRFKIT_INLINE int64_t batch_size(int64_t n_labels, int64_t order, int64_t positions) {
    const int64_t width = padded<Real>(n_labels), rows = batch_rows(n_labels, order);
    return 2 * positions * (rows + 1) * width + kBatch * rows * width + width * width;
}

// Order 2 in scratch: tables of BatchJumps, sums of outer products in the same layouts, and exp(transition - top) where
// a label may follow another.
struct PairTables {
    Real *m, *back, *outer;                      // [L][L][P]
    Real *first, *first_back, *first_outer, *t;  // [L][P], first_back [P][P]
};

CRFKIT_INLINE int64_t pair_tables_size(int64_t n, int64_t width) {
    return 3 * n * n * width + 3 * n * width + width * width;
}

CRFKIT_INLINE PairTables make_pair_tables(Real* scratch, int64_t n, int64_t width) {
    const int64_t cube = n * n * width, square = n * width;
    Real* small = scratch + 3 * cube;
    return {scratch, scratch + cube, scratch + 2 * cube, small, small + 3 * square, small + square, small + 2 * square};
}

// Order 2 always: its states are laid out better here. Order 1 where the nearest cache does not hold its tables.
CRFKIT_INLINE bool takes_batches(int64_t n_labels, int64_t order) {
    const int64_t numbers = 2 * n_labels * padded<Real>(n_labels);
    return order == 2 || numbers * static_cast<int64_t>(sizeof(Real)) > kNearCache;
}

// Numbers of scratch for batches of sequences of this length.
CRFKIT_INLINE int64_t batches_size(int64_t n_labels, int64_t order, int64_t longest) {
    if (!takes_batches(n_labels, order)) return 0;
    const int64_t several = batch_positions(n_labels, order);
    return batch_size(n_labels, order, longest > several ? longest : several) +
           (order == 2 ? pair_tables_size(n_labels, padded<Real>(n_labels)) : 0);
}

CRFKIT_INLINE Batch make_batch(Real* scratch, const BatchJumps& jumps, int64_t positions) {
    const int64_t labels = positions * jumps.width, states = positions * jumps.span();
    Batch batch{};
    batch.e = scratch;
    batch.node = batch.e + labels;
    batch.alpha = batch.node + labels;
    batch.beta = batch.alpha + states;
    batch.b = batch.beta + states;
    batch.square = batch.b + kBatch * jumps.span();
    return batch;
}

// e of sequence s of the batch; returns the score of its labels, and adds the largest scores to log Z.
inline double fill_batch(const ChainPlan& data, const Weights& w, const BatchJumps& jumps, Batch& batch, int s) {
    const int64_t first = data.starts[batch.ids[s]], length = batch.lengths[s], n = jumps.n, width = jumps.width;
    const int32_t* y = data.labels + first;
    const Real* starts = w.first_mask ? w.first_mask + (jumps.order == 2 ? n * width : 0) : nullptr;
    double score = 0.0;
    batch.log_z[s] = jumps.shift * static_cast<double>(length - 1);
    for (int64_t t = 0; t < length; ++t) {
        Real* e = batch.e + (batch.at[s] + t) * width;
        label_scores(data, w, width, first + t, e);
        if (t == 0) forbid(starts, n, e);
        if (t + 1 == length) forbid(w.last_mask, n, e);
        score += e[y[t]];
        if (t > 0) score += w.transitions[y[t - 1] * width + y[t]];
        if (t > 1 && jumps.order == 2) score += w.jumps[(y[t - 2] * width + y[t - 1]) * width + y[t]];
        if (t > 0 && jumps.order == 2 && w.inner_mask[y[t - 1] * width + y[t]] == 0) score = kLowest;
        const bool limited = data.allowed || (t == 0 && starts) || (t + 1 == length && w.last_mask);
        Real* allowed = batch.square;  // of -inf, exp_nonpositive is not 0
        for (int64_t j = 0; limited && j < n; ++j) allowed[j] = e[j] > kLowest;
        batch.log_z[s] += exp_row(e, n, width, e);
        for (int64_t j = 0; limited && j < n; ++j) e[j] *= allowed[j];
    }
    return score;
}

// alpha of all sequences; adds to log Z what is known then.
inline void forward_batch(const BatchJumps& jumps, Batch& batch) {
    const int64_t n = jumps.n, width = jumps.width, span = jumps.span();
    const Real *from[kBatch], *e[kBatch];
    Real* to[kBatch];
    Real totals[kBatch];
    for (int s = 0; s < batch.count; ++s) {
        batch.exponents[s] = 0;
        batch.failed[s] = false;
        Real* alpha = batch.alpha + batch.at[s] * span;
        for (int64_t j = 0; j < width; ++j) alpha[j] = batch.e[batch.at[s] * width + j];
        totals[s] = row_sum(alpha, width);
    }
    for (int64_t t = 1; t < batch.lengths[0]; ++t) {
        const int active = batch.active(t);
        for (int s = 0; s < active; ++s) {
            if (!(totals[s] > static_cast<Real>(kLeastSum))) batch.failed[s] = true, totals[s] = 1;
            const int exponent = exponent_of(totals[s]);
            batch.exponents[s] += exponent;
            Real* row = batch.e + (batch.at[s] + t) * width;
            scale_row(row, width, power_of_2(-exponent));
            e[s] = row;
            from[s] = batch.alpha + (batch.at[s] + t - 1) * span;
            to[s] = batch.alpha + (batch.at[s] + t) * span;
        }
        if (jumps.order == 1) {
            rows_times_matrix(active, from, 1, jumps.m, n, width, e, to);
        } else if (t == 1) {
            for (int s = 0; s < active; ++s)
                for (int64_t j = 0; j < n; ++j) {
                    const V a = splat(from[s][j]);
                    for (int64_t k = 0; k < width; k += kLanes)
                        store(to[s] + j * width + k, a * load(jumps.first + j * width + k) * load(e[s] + k));
                }
        } else {
            for (int64_t j = 0; j < n; ++j) {
                rows_times_matrix(active, from, width, jumps.m + j * n * width, n, width, e, to);
                for (int s = 0; s < active; ++s) ++from[s], to[s] += width;
            }
            for (int s = 0; s < active; ++s) to[s] -= span;
        }
        for (int s = 0; s < active; ++s) totals[s] = sum_of(to[s], span);
    }
    for (int s = 0; s < batch.count; ++s) {
        if (!(totals[s] > static_cast<Real>(kLeastSum))) batch.failed[s] = true;
        batch.log_z[s] += static_cast<double>(batch.exponents[s]) * M_LN2 + std::log(static_cast<double>(totals[s]));
    }
}

// beta of all sequences.
inline void backward_batch(const BatchJumps& jumps, Batch& batch) {
    const int64_t n = jumps.n, width = jumps.width, span = jumps.span();
    const Real* from[kBatch];
    Real* to[kBatch];
    for (int s = 0; s < batch.count; ++s) {
        Real* beta = batch.beta + (batch.at[s] + batch.lengths[s] - 1) * span;
        for (int64_t row = 0; row < (batch.lengths[s] > 1 ? span : width); row += width)
            for (int64_t j = 0; j < width; ++j) beta[row + j] = j < n ? Real{1} : Real{};
    }
    for (int64_t t = batch.lengths[0] - 1; t > 0; --t) {
        const int active = batch.active(t);
        for (int s = 0; s < active; ++s) {
            const Real *beta = batch.beta + (batch.at[s] + t) * span, *e = batch.e + (batch.at[s] + t) * width;
            Real* b = batch.b + s * span;
            Real total = sum_of(beta, span);
            if (!(total > static_cast<Real>(kLeastSum))) batch.failed[s] = true, total = 1;
            const Real scale = power_of_2(-exponent_of(total));
            if (jumps.order == 1) {
                const V by = splat(scale);
                for (int64_t j = 0; j < width; j += kLanes) store(b + j, load(beta + j) * load(e + j) * by);
            } else {
                for (int64_t k = 0; k < n; ++k) {
                    const V by = splat(e[k] * scale);
                    for (int64_t j = 0; j < width; j += kLanes)
                        store(b + k * width + j, load(beta + k * width + j) * by);
                }
            }
            from[s] = b;
            to[s] = batch.beta + (batch.at[s] + t - 1) * span;
        }
        if (jumps.order == 1) {
            rows_times_matrix(active, from, 1, jumps.back, n, width, nullptr, to);
        } else if (t == 1) {
            for (int s = 0; s < active; ++s)
                for (int64_t j = 0; j < width; j += kLanes) {
                    V total = {};
                    for (int64_t k = 0; k < n; ++k)
                        total += load(jumps.first_back + k * width + j) * load(from[s] + k * width + j);
                    store(to[s] + j, total);
                }
        } else {
            for (int64_t j = 0; j < n; ++j) {
                rows_times_matrix(active, from, width, jumps.back + j * n * width, n, width, nullptr, to);
                for (int s = 0; s < active; ++s) ++from[s], to[s] += width;
            }
        }
    }
}

// node = marginals of labels of sequence s, and beta = b so that alpha_{t-1}(r) M(r, s) b_t(s) is the edge marginal;
// b_0 = 0. The sequence fails if a sum is too small.
inline void finish_batch(const BatchJumps& jumps, Batch& batch, int s) {
    const int64_t n = jumps.n, width = jumps.width, span = jumps.span();
    for (int64_t t = 0; t < batch.lengths[s]; ++t) {
        const int64_t at = batch.at[s] + t, rows = t > 0 ? jumps.rows : 1;
        Real *beta = batch.beta + at * span, *node = batch.node + at * width, *e = batch.e + at * width;
        const Real *alpha = batch.alpha + at * span, *turned = beta;
        if (rows > 1) {
            transpose_rows(beta, n, width, batch.square);
            turned = batch.square;
        }
        V sums = {};
        for (int64_t k = 0; k < width; k += kLanes) {
            V total = load(alpha + k) * load(turned + k);
            for (int64_t i = width; i < rows * width; i += width) total += load(alpha + i + k) * load(turned + i + k);
            store(node + k, total);
            sums += total;
        }
        const Real total = sum(sums);
        if (!(total > static_cast<Real>(kLeastSum))) batch.failed[s] = true;
        const V scale = splat(1 / total);
        for (int64_t k = 0; k < width; k += kLanes) {
            store(node + k, load(node + k) * scale);
            const V by = t > 0 ? load(e + k) * scale : V{};
            for (int64_t i = 0; i < rows * width; i += width) store(beta + i + k, load(turned + i + k) * by);
        }
    }
}

// Marginals of a filled batch.
inline void infer_batch(const BatchJumps& jumps, Batch& batch) {
    forward_batch(jumps, batch);
    backward_batch(jumps, batch);
    for (int s = 0; s < batch.count; ++s) finish_batch(jumps, batch, s);
}
