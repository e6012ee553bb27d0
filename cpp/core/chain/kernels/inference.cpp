// What the other kernel files take from inference.hpp compiled: functions of chains of order 2, and of every width.
#include "inference.hpp"

namespace crfkit::CRFKIT_SPACE {

void LabelPairStates::forward(const Real* alpha, const Real* m, const Real* e, Real* out) const {
    for (int64_t j = 0; j < n_labels; ++j)
        over_blocks(width, RowTimesMatrix{alpha + j, width, m + j * width, width * width, n_labels + 1,
                                          e ? e + j * width : nullptr, out + j * width});
    for (int64_t k = 0; k < width; ++k) out[n_labels * width + k] = 0.0;
}

void LabelPairStates::backward(const Real* b, const Real* transposed, Real* temporary, Real* out) const {
    for (int64_t j = 0; j < width; ++j)
        for (int64_t k = 0; k < n_labels; ++k) temporary[k * width + j] = j < n_labels ? b[j * width + k] : 0.0;
    for (int64_t i = 0; i <= n_labels; ++i) {
        const Real* m = transposed + i * width * width;
        for (int64_t j = 0; j < width; j += kLanes) {
            V total = {};
            for (int64_t k = 0; k < n_labels; ++k) total += load(m + k * width + j) * load(temporary + k * width + j);
            store(out + i * width + j, total);
        }
    }
}

void LabelPairStates::outer(const Real* alpha, const Real* b, int64_t length, Real* out) const {
    for (int64_t j = 0; j < n_labels; ++j)
        over_blocks(width, AddOuter<int64_t>{alpha + j, width, b + j * width, length, span(), n_labels + 1,
                                             out + j * width, width * width});
}

void LabelPairStates::maximise(const Real* delta, const Real* m, const Real* u, Real* out) const {
    for (int64_t j = 0; j < n_labels; ++j)
        over_blocks(width, MaxStep{delta + j, width, m + j * width, width * width, n_labels + 1, u + j * width,
                                   out + j * width});
    for (int64_t k = 0; k < width; ++k) out[n_labels * width + k] = -INFINITY;
}

void fill_scores(const ChainPlan& data, const Weights& w, int64_t n, const Lattice<LabelPairStates>& a, bool masked) {
    const int64_t first = data.starts[n], width = w.width, n_labels = w.n_labels, span = a.shape.span();
    Real* row = a.square + 2 * n_labels * width;
    for (int64_t t = 0; t < a.length; ++t) {
        label_scores(data, w, width, first + t, row);
        Real* u = a.u + t * span;
        const Real* m = w.transitions;
        if (t > 0 && data.pair_offsets) {
            pair_scores(data, w, first + t, a.square);
            m = a.square;
        }
        for (int64_t i = 0; i <= n_labels; ++i)
            for (int64_t j = 0; j < width; ++j)
                u[i * width + j] = row[j] + (t > 0 && i < n_labels ? m[i * width + j] : Real{});
        if (masked) forbid(mask_at(w, t), span, u);
    }
    if (masked && w.last_mask && a.length > 0) forbid(w.last_mask, span, a.u + (a.length - 1) * span);
}

void add_states(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t, bool start,
                const Lattice<LabelPairStates>& a, const Real* row) {
    const int64_t width = w.width, n = w.n_labels;
    Real* labels = a.square + 2 * n * width;
    for (int64_t j = 0; j < width; ++j) labels[j] = row[n * width + j];
    for (int64_t i = 0; i < n; ++i) add_row(labels, row + i * width, width);
    add_residual(data, w, g, width, t, labels);
    if (start) return;
    add_row(g.transitions, row, n * width);
    if (data.pair_offsets) add_pair_residual(data, w, g, t, row);
}

#define CRFKIT_HERE(WIDTH) CRFKIT_OF_WIDTH(, WIDTH)
CRFKIT_EACH_WIDTH(CRFKIT_HERE)
CRFKIT_OF_SHAPE(, LabelStates<int64_t>)
CRFKIT_OF_SHAPE(, LabelPairStates)
template Inference infer(const Weights&, const Lattice<LabelPairStates>&, Real*);

}  // namespace crfkit::CRFKIT_SPACE
