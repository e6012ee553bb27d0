// Score map and its adjoint for one position: label rows in, label rows out.
// Part of inference.hpp.

// A row width that is known to the compiler; functions take it or an int64_t.
template <int64_t N>
struct Fixed {
    constexpr operator int64_t() const { return N; }
};

// Calls f.template run<B>(column) for blocks of B <= 6 vectors that cover `width` lanes.
template <int64_t N, class F>
CRFKIT_INLINE void over_blocks(Fixed<N>, const F& f) {
    constexpr int64_t whole = N / (6 * kLanes) * (6 * kLanes), rest = (N - whole) / kLanes;
    for (int64_t column = 0; column < whole; column += 6 * kLanes) f.template run<6>(column);
    if constexpr (rest > 0) f.template run<rest>(whole);
}

template <class F>
CRFKIT_INLINE void over_blocks(int64_t width, const F& f) {
    int64_t column = 0;
    for (; width - column >= 6 * kLanes; column += 6 * kLanes) f.template run<6>(column);
    switch ((width - column) / kLanes) {
        case 5: f.template run<5>(column); break;
        case 4: f.template run<4>(column); break;
        case 3: f.template run<3>(column); break;
        case 2: f.template run<2>(column); break;
        case 1: f.template run<1>(column); break;
        default: break;
    }
}

CRFKIT_INLINE const Real* weight_row(const Weights& w, int64_t row) {
    return row < w.n_inside ? w.rows + row * w.row_stride : w.tail + (row - w.n_inside) * w.row_stride;
}

// u[P] += sum of the weight rows at a position.
struct SumRows {
    const Weights& w;
    const int32_t* rows;
    const double* values;  // or null
    int64_t n;
    Real* u;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        V total[B] = {};
        if (values) {
            for (int64_t k = 0; k < n; ++k) {
                const Real* row = weight_row(w, rows[k]) + column;
                for (int b = 0; b < B; ++b) total[b] += splat(static_cast<Real>(values[k])) * load(row + b * kLanes);
            }
        } else if (n > 0 && rows[n - 1] < w.n_inside) {
            const Real* base = w.rows + column;
            const int64_t stride = w.row_stride;
            for (int64_t k = 0; k < n; ++k) {
                const Real* row = base + rows[k] * stride;
                for (int b = 0; b < B; ++b) total[b] += load(row + b * kLanes);
            }
        } else {
            for (int64_t k = 0; k < n; ++k) {
                const Real* row = weight_row(w, rows[k]) + column;
                for (int b = 0; b < B; ++b) total[b] += load(row + b * kLanes);
            }
        }
        for (int b = 0; b < B; ++b) store(u + column + b * kLanes, total[b]);
    }
};

constexpr int64_t kAhead = 3;  // positions between asking for a row and using it

// Asks for what position t will read: rows at `rows`, single weights at `single`.
template <class Width>
CRFKIT_INLINE void prefetch(const ChainPlan& data, int64_t t, const Real* rows, int64_t stride, Width width,
                            const Real* single) {
    if (t >= data.n_positions) return;
    for (int64_t k = data.row_offsets[t], end = data.row_offsets[t + 1]; k < end; ++k) {
        const Real* row = rows + data.rows[k] * stride;
        for (int64_t j = 0; j < width; j += kPad<Real>) __builtin_prefetch(row + j);
    }
    if (!data.entry_offsets) return;
    for (int64_t k = data.entry_offsets[t], end = data.entry_offsets[t + 1]; k < end; ++k)
        __builtin_prefetch(single + data.entry_weights[k]);
}

// u[P] = sum of the weights of the attributes at t, per label. The padding holds anything.
template <class Width>
CRFKIT_INLINE void position_scores(const ChainPlan& data, const Weights& w, Width width, int64_t t, Real* u) {
    if (w.far) prefetch(data, t + kAhead, w.rows, w.row_stride, width, w.single);
    const int64_t begin = data.row_offsets[t];
    over_blocks(width, SumRows{w, data.rows + begin, data.row_values ? data.row_values + begin : nullptr,
                               data.row_offsets[t + 1] - begin, u});
    if (data.entry_offsets) {
        const int64_t end = data.entry_offsets[t + 1];
        if (data.entry_values)
            for (int64_t k = data.entry_offsets[t]; k < end; ++k)
                u[data.entry_labels[k]] += static_cast<Real>(data.entry_values[k]) * w.single[data.entry_weights[k]];
        else
            for (int64_t k = data.entry_offsets[t]; k < end; ++k)
                u[data.entry_labels[k]] += w.single[data.entry_weights[k]];
    }
    if (w.scale != 1.0)
        for (int64_t j = 0; j < width; j += kLanes) store(u + j, load(u + j) * splat(static_cast<Real>(w.scale)));
}

// gradient rows += residual[P].
struct AddToRows {
    Real* gradient;
    int64_t stride;
    const int32_t* rows;
    const double* values;  // or null
    int64_t n;
    const Real* residual;
    const uint64_t* bits;  // or null
    int64_t words;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        V r[B];
        for (int b = 0; b < B; ++b) r[b] = load(residual + column + b * kLanes);
        if (!bits && !values) {
            for (int64_t k = 0; k < n; ++k) {
                Real* row = gradient + rows[k] * stride + column;
                for (int b = 0; b < B; ++b) store(row + b * kLanes, load(row + b * kLanes) + r[b]);
            }
            return;
        }
        for (int64_t k = 0; k < n; ++k) {
            Real* row = gradient + rows[k] * stride + column;
            if (bits) {
                const uint64_t* of_row = bits + rows[k] * words;
                const V value = splat(values ? static_cast<Real>(values[k]) : Real{1});
                for (int b = 0; b < B; ++b) {
                    const int64_t lane = column + b * kLanes;
                    const V x = keep_bits(value * r[b], of_row[lane / 64] >> lane % 64);
                    store(row + b * kLanes, load(row + b * kLanes) + x);
                }
            } else
                for (int b = 0; b < B; ++b)
                    store(row + b * kLanes, load(row + b * kLanes) + splat(static_cast<Real>(values[k])) * r[b]);
        }
    }
};

// The same for single weights: entries first … last.
CRFKIT_INLINE void add_to_entries(const ChainPlan& data, const Gradient& g, int64_t first, int64_t last,
                                  const Real* residual) {
    const uint32_t* weights = data.entry_weights;
    const uint16_t* labels = data.entry_labels;
    const double* values = data.entry_values;
    int64_t shared = last;
    while (shared > first && weights[shared - 1] >= g.once_weight) --shared;
    if (values) {
        for (int64_t k = first; k < shared; ++k)
            g.single[weights[k]] += static_cast<Real>(values[k]) * residual[labels[k]];
        for (int64_t k = shared; k < last; ++k) g.once_single[weights[k]] = values[k] * residual[labels[k]];
    } else {
        for (int64_t k = first; k < shared; ++k) g.single[weights[k]] += residual[labels[k]];
        for (int64_t k = shared; k < last; ++k) g.once_single[weights[k]] = residual[labels[k]];
    }
}

// Adds residual[P] (zero in the padding) to the gradient of every attribute at t.
template <class Width>
CRFKIT_INLINE void add_residual(const ChainPlan& data, const Weights& w, const Gradient& g, Width width, int64_t t,
                                const Real* residual) {
    if (w.far) prefetch(data, t + kAhead, g.rows, w.row_stride, width, g.single);
    const int64_t begin = data.row_offsets[t], end = data.row_offsets[t + 1];
    int64_t shared = end;
    while (shared > begin && data.rows[shared - 1] >= g.once_row) --shared;
    const double* values = data.row_values;
    over_blocks(width, AddToRows{g.rows, w.row_stride, data.rows + begin, values ? values + begin : nullptr,
                                 shared - begin, residual, g.row_bits, g.row_words});
    for (int64_t k = shared; k < end; ++k) {  // the next row may be another thread's: exactly L stores
        const double value = values ? values[k] : 1.0;
        double* row = g.once_rows + data.rows[k] * w.n_labels;
        for (int64_t j = 0; j < w.n_labels; ++j) row[j] = value * residual[j];
    }
    if (data.entry_offsets) add_to_entries(data, g, data.entry_offsets[t], data.entry_offsets[t + 1], residual);
}

// m[L][P] = transitions + the weights of the pair attributes at t.
CRFKIT_INLINE void pair_scores(const ChainPlan& data, const Weights& w, int64_t t, Real* m) {
    const int64_t n = w.n_labels, width = w.width;
    for (int64_t i = 0; i < n * width; ++i) m[i] = w.transitions[i];
    for (int64_t k = data.pair_offsets[t]; k < data.pair_offsets[t + 1]; ++k) {
        const int64_t a = data.pair_attributes[k];
        if (w.pair_offsets) {
            for (int64_t f = w.pair_offsets[a]; f < w.pair_offsets[a + 1]; ++f)
                m[w.pair_codes[f] / n * width + w.pair_codes[f] % n] += static_cast<Real>(w.scale) * w.pair[f];
        } else {
            const Real* row = w.pair + a * n * n;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < n; ++j) m[i * width + j] += static_cast<Real>(w.scale) * row[i * n + j];
        }
    }
}

// Adds residual[L][P] to the gradient of every pair attribute at t.
CRFKIT_INLINE void add_pair_residual(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t,
                                     const Real* residual) {
    const int64_t n = w.n_labels, width = w.width;
    for (int64_t k = data.pair_offsets[t]; k < data.pair_offsets[t + 1]; ++k) {
        const int64_t a = data.pair_attributes[k];
        if (w.pair_offsets) {
            for (int64_t f = w.pair_offsets[a]; f < w.pair_offsets[a + 1]; ++f)
                g.pair[f] += residual[w.pair_codes[f] / n * width + w.pair_codes[f] % n];
        } else {
            Real* row = g.pair + a * n * n;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < n; ++j) row[i * n + j] += residual[i * width + j];
        }
    }
}
