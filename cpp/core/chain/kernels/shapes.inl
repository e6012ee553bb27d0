// What differs between chains of order 1 and 2: which states there are, how they follow each other, and how a
// row of states is made from scores of labels and label pairs. Part of inference.hpp.

// out[P] = sum_i a[i * a_stride] m[i * m_stride + P], times e where given; plus add * by where given.
struct RowTimesMatrix {
    const Real* a;
    int64_t a_stride;
    const Real* m;
    int64_t m_stride, n;
    const Real* e;  // or null
    Real* out;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        V even[B] = {}, odd[B] = {};  // two chains of additions, to hide their latency
        const Real* row = m + column;
        int64_t i = 0;
#pragma GCC unroll 4
        for (; i + 1 < n; i += 2, row += 2 * m_stride) {
            const V a0 = splat(a[i * a_stride]), a1 = splat(a[(i + 1) * a_stride]);
            for (int b = 0; b < B; ++b) {
                even[b] += a0 * load(row + b * kLanes);
                odd[b] += a1 * load(row + m_stride + b * kLanes);
            }
        }
        if (i < n) {
            const V a0 = splat(a[i * a_stride]);
            for (int b = 0; b < B; ++b) even[b] += a0 * load(row + b * kLanes);
        }
        for (int b = 0; b < B; ++b) {
            V total = even[b] + odd[b];
            if (e) total *= load(e + column + b * kLanes);
            store(out + column + b * kLanes, total);
        }
    }
};

// delta[P] = u[P] + max_i (previous[i * stride] + m[i * m_stride + P]).
struct MaxStep {
    const Real* previous;
    int64_t stride;
    const Real* m;
    int64_t m_stride, n;
    const Real* u;
    Real* delta;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        V best[B];
        for (int b = 0; b < B; ++b) best[b] = splat(previous[0]) + load(m + column + b * kLanes);
        for (int64_t i = 1; i < n; ++i) {
            const V p = splat(previous[i * stride]);
            for (int b = 0; b < B; ++b) best[b] = larger(best[b], p + load(m + i * m_stride + column + b * kLanes));
        }
        for (int b = 0; b < B; ++b) store(delta + column + b * kLanes, best[b] + load(u + column + b * kLanes));
    }
};

constexpr int kOuterVectors = 3 * kRegisters / 4;  // that a tile of outer products may fill

// out[R * out_stride + P] += sum_t alpha[t * step + R * a_stride] b[t * step + P], accumulators in registers.
template <int R, int B, class Step>
CRFKIT_INLINE void outer_tile(const Real* alpha, int64_t a_stride, const Real* b, int64_t length, Step step, Real* out,
                              int64_t out_stride) {
    V total[R][B];
    for (int r = 0; r < R; ++r)
        for (int k = 0; k < B; ++k) total[r][k] = load(out + r * out_stride + k * kLanes);
    for (int64_t t = 0; t < length; ++t, alpha += step, b += step) {
        V row[B];
        for (int k = 0; k < B; ++k) row[k] = load(b + k * kLanes);
        for (int r = 0; r < R; ++r) {
            const V a = splat(alpha[r * a_stride]);
            for (int k = 0; k < B; ++k) total[r][k] += a * row[k];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int k = 0; k < B; ++k) store(out + r * out_stride + k * kLanes, total[r][k]);
}

// The same for n rows.
template <class Step>
struct AddOuter {
    const Real* alpha;
    int64_t a_stride;
    const Real* b;
    int64_t length;
    Step step;
    int64_t n;
    Real* out;
    int64_t out_stride;
    template <int B>
    CRFKIT_INLINE void run(int64_t column) const {
        int64_t i = 0;
        const auto tiles = [&]<int R>() {
            if constexpr (R * B <= kOuterVectors || R == 1)
                for (; i + R <= n; i += R)
                    outer_tile<R, B>(alpha + i * a_stride, a_stride, b + column, length, step,
                                     out + i * out_stride + column, out_stride);
        };
        tiles.template operator()<8>();
        tiles.template operator()<4>();
        tiles.template operator()<2>();
        tiles.template operator()<1>();
    }
};

CRFKIT_INLINE void add_row(Real* out, const Real* x, int64_t n) {
    for (int64_t j = 0; j < n; ++j) out[j] += x[j];
}

// Order 1: states are labels.
template <class Width>
struct LabelStates {
    int64_t n_labels;
    Width width;

    CRFKIT_INLINE Width span() const { return width; }
    CRFKIT_INLINE int64_t jump_rows() const { return n_labels; }
    // State s, and the i-th state that may come before it; the label that s ends with; the k-th state after it.
    CRFKIT_INLINE int64_t n_before() const { return n_labels; }
    CRFKIT_INLINE int64_t before(int64_t, int64_t i) const { return i; }
    CRFKIT_INLINE int64_t label(int64_t s) const { return s; }
    CRFKIT_INLINE int64_t after(int64_t, int64_t k) const { return k; }
    CRFKIT_INLINE int64_t state(const int32_t* y, int64_t t) const { return y[t]; }
    // Calls f(s) for every state but those of the padding.
    template <class F>
    CRFKIT_INLINE void each(const F& f) const {
        for (int64_t s = 0; s < n_labels; ++s) f(s);
    }
    CRFKIT_INLINE void forward(const Real* alpha, const Real* m, const Real* e, Real* out) const {
        over_blocks(width, RowTimesMatrix{alpha, 1, m, width, n_labels, e, out});
    }
    CRFKIT_INLINE void backward(const Real* b, const Real* transposed, Real*, Real* out) const {
        over_blocks(width, RowTimesMatrix{b, 1, transposed, width, n_labels, nullptr, out});
    }
    void outer(const Real* alpha, const Real* b, int64_t length, Real* out) const;
    CRFKIT_INLINE void maximise(const Real* delta, const Real* m, const Real* u, Real* out) const {
        over_blocks(width, MaxStep{delta, 1, m, width, n_labels, u, out});
    }
};

template <class Width>
void LabelStates<Width>::outer(const Real* alpha, const Real* b, int64_t length, Real* out) const {
    over_blocks(width, AddOuter<Width>{alpha, 1, b, length, width, n_labels, out, width});
}

// Order 2: state (i, j) at i * P + j; i = L before the first position.
struct LabelPairStates {
    int64_t n_labels, width;

    int64_t span() const { return (n_labels + 1) * width; }
    int64_t jump_rows() const { return span(); }
    int64_t n_before() const { return n_labels + 1; }
    int64_t before(int64_t s, int64_t i) const { return i * width + s / width; }
    int64_t label(int64_t s) const { return s % width; }
    int64_t after(int64_t s, int64_t k) const { return s % width * width + k; }
    int64_t state(const int32_t* y, int64_t t) const { return (t > 0 ? y[t - 1] : n_labels) * width + y[t]; }
    template <class F>
    void each(const F& f) const {
        for (int64_t i = 0; i <= n_labels; ++i)
            for (int64_t j = 0; j < n_labels; ++j) f(i * width + j);
    }
    // These are in inference.cpp. `temporary`: [P][P].
    void forward(const Real* alpha, const Real* m, const Real* e, Real* out) const;
    void backward(const Real* b, const Real* transposed, Real* temporary, Real* out) const;
    void outer(const Real* alpha, const Real* b, int64_t length, Real* out) const;
    void maximise(const Real* delta, const Real* m, const Real* u, Real* out) const;
};

// The same states with a width that the compiler does not know: for code that is rarely run or not made of rows.
template <class Width>
CRFKIT_INLINE LabelStates<int64_t> plain(const LabelStates<Width>& shape) {
    return {shape.n_labels, shape.width};
}
CRFKIT_INLINE const LabelPairStates& plain(const LabelPairStates& shape) { return shape; }
