// The best labels of a sequence, and the scores that a search for more of them starts from. Part of kernels.inl.

// alpha_t(s) of the filled lattice = the score of the best labelling that ends in s at t, for t > 0; returns the last
// row.
template <class Shape>
static const double* maximise(const ChainWeights& w, const Lattice<Shape>& a) {
    const int64_t span = a.shape.span();
    const double* delta = a.u;
    for (int64_t t = 1; t < a.length; ++t) {
        double* next = a.alpha + t * span;
        a.shape.maximise(delta, jumps_to(w, a, t), a.u + t * span, next);
        delta = next;
    }
    return delta;
}

// The best labels y[T] of the filled lattice; returns their score.
template <class Shape>
static double decode(const ChainWeights& w, const Lattice<Shape>& a, int32_t* y) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width;
    const double* delta = maximise(w, a);
    int64_t best = -1;
    shape.each([&](int64_t s) {
        if (best < 0 || delta[s] > delta[best]) best = s;
    });
    const double score = delta[best];
    y[a.length - 1] = static_cast<int32_t>(shape.label(best));
    // Back pointers are recomputed along the best path only: L additions per position.
    for (int64_t t = a.length - 1; t > 0; --t) {
        const double* previous = t > 1 ? a.alpha + (t - 1) * span : a.u;
        const double* m = jumps_to(w, a, t);
        int64_t from = -1;
        double top = 0.0;
        for (int64_t i = 0; i < shape.n_before(); ++i) {
            const int64_t r = shape.before(best, i);
            const double x = previous[r] + m[r * width + shape.label(best)];
            if (from < 0 || x > top) top = x, from = r;
        }
        best = from;
        y[t - 1] = static_cast<int32_t>(shape.label(best));
    }
    return score;
}

void viterbi(const ChainPlan& data, const ChainWeights& w, int32_t* labels, double* scores, const ChainRange& range) {
    with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        for (int64_t n = range.begin; n < range.end; ++n) {
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            scores[n] = a.length > 0 ? decode(w, a, labels + data.starts[n]) : 0.0;
            range.check(range.check_state, range.thread);
        }
    });
}

ChainScores best_scores(const ChainPlan& data, const ChainWeights& w, int64_t n, const ChainRange& range) {
    return with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length > 0) {
            for (int64_t s = 0; s < shape.span(); ++s) a.alpha[s] = a.u[s];
            maximise(w, a);
        }
        return ChainScores{a.length, a.u, a.alpha, a.scores};
    });
}
