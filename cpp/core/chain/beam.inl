// Labels by a beam, and a bound on how far their score is below the best one. Part of kernels.inl.
//
// At each position the beam keeps the states with the best scores of labellings that stay in it: low_t(s). All that was
// dropped at t is one further state D, from which any state can be reached by the best of its jumps:
//   high_t(s) = u_t(s) + max(max_{r in beam} (high_{t-1}(r) + m(r, s)), high_{t-1}(D) + max_r m(r, s))
//   high_t(D) = max of high_t over the states that are dropped
// No labelling scores above the best of high_{T-1}, so best - found <= max high_{T-1} - max low_{T-1}. Where nothing
// that was dropped can catch up, high = low along the path, and the bound is 0.

// The `most` largest finite of the values of the states, in `kept`, a heap whose top is the smallest.
template <class Shape>
static int64_t select_largest(const Shape& shape, const double* values, int64_t most, int32_t* kept) {
    int64_t n = 0;
    const auto below = [&](int64_t i, int64_t j) { return values[kept[i]] < values[kept[j]]; };
    const auto swap = [&](int64_t i, int64_t j) {
        const int32_t other = kept[i];
        kept[i] = kept[j];
        kept[j] = other;
    };
    shape.each([&](int64_t s) {
        if (!(values[s] > kLowest)) return;
        if (n < most) {
            kept[n] = static_cast<int32_t>(s);
            for (int64_t i = n++; i > 0 && below(i, (i - 1) / 2); i = (i - 1) / 2) swap(i, (i - 1) / 2);
            return;
        }
        if (!(values[s] > values[kept[0]])) return;
        kept[0] = static_cast<int32_t>(s);
        for (int64_t i = 0, child = 1; child < n; child = 2 * i + 1) {
            if (child + 1 < n && below(child + 1, child)) ++child;
            if (!below(child, i)) break;
            swap(i, child);
            i = child;
        }
    });
    return n;
}

// out[s] = max over the beam of score(r) + m(r, s), for all states s.
template <class Shape>
static void best_from_beam(const Shape& shape, const int32_t* kept, const double* scores, int64_t n, const double* m,
                           double* out) {
    const int64_t width = shape.width;
    for (int64_t s = 0; s < shape.span(); s += kLanes) store(out + s, splat(kLowest));
    for (int64_t i = 0; i < n; ++i) {
        double* to = out + shape.after(kept[i], 0);
        const double* row = m + kept[i] * width;
        const V score = splat(scores[i]);
        for (int64_t k = 0; k < width; k += kLanes) store(to + k, larger(load(to + k), score + load(row + k)));
    }
}

// The labels y[T] that a beam finds in the filled lattice; returns their score and sets the bound. into[states]: the
// best jump to a state. Negative infinity if no labelling stays in the beam.
template <class Shape>
static double decode_beam(const ChainWeights& w, const Lattice<Shape>& a, const double* into, int64_t beam, int32_t* y,
                          double& bound) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width;
    const int64_t most = beam < span ? beam : span;
    const auto states = [&](int64_t t) { return reinterpret_cast<int32_t*>(a.e + t * span); };  // [n], then [n] before
    const auto lows = [&](int64_t t) { return a.alpha + t * span; };
    const auto highs = [&](int64_t t) { return a.node + t * span; };
    double *low = a.edge, *high = a.edge + span, dropped = kLowest, *best_into = a.square;
    int64_t n = 0;
    for (int64_t t = 0; t < a.length; ++t) {
        const double *u = a.u + t * span, *m = jumps_to(w, a, t);
        int32_t *kept = states(t), *before = kept + span;
        const int64_t n_before = n;
        if (t == 0) {
            for (int64_t s = 0; s < span; ++s) low[s] = high[s] = u[s];
        } else {
            const int32_t* from = states(t - 1);
            best_from_beam(shape, from, lows(t - 1), n, m, low);
            bool same = true;
            for (int64_t i = 0; i < n; ++i) same = same && lows(t - 1)[i] == highs(t - 1)[i];
            if (same)
                for (int64_t s = 0; s < span; ++s) high[s] = low[s];
            else
                best_from_beam(shape, from, highs(t - 1), n, m, high);
            if (a.scores) {  // the jumps to t are its own
                for (int64_t k = 0; k < width; ++k) best_into[k] = m[k];
                for (int64_t i = width; i < shape.n_labels * width; ++i)
                    best_into[i % width] = m[i] > best_into[i % width] ? m[i] : best_into[i % width];
                into = best_into;
            }
            const V least = splat(dropped);
            for (int64_t s = 0; s < (w.order == 1 ? width : shape.n_labels * width); s += kLanes)
                store(high + s, larger(load(high + s), least + load(into + s)));
            for (int64_t s = 0; s < span; s += kLanes) {
                store(low + s, load(low + s) + load(u + s));
                store(high + s, load(high + s) + load(u + s));
            }
        }
        n = select_largest(shape, low, most, kept);
        if (n == 0) return kLowest;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t s = kept[i];
            lows(t)[i] = low[s];
            highs(t)[i] = high[s];
            high[s] = kLowest;
            double top = kLowest;
            before[i] = 0;
            for (int64_t r = 0; r < n_before; ++r) {
                const int64_t from = states(t - 1)[r];
                if (shape.after(from, shape.label(s)) != s) continue;
                const double x = lows(t - 1)[r] + m[from * width + shape.label(s)];
                if (x > top) top = x, before[i] = static_cast<int32_t>(r);
            }
        }
        dropped = kLowest;
        shape.each([&](int64_t s) { dropped = high[s] > dropped ? high[s] : dropped; });
    }
    int64_t best = 0;
    double top = dropped;
    for (int64_t i = 0; i < n; ++i) {
        if (lows(a.length - 1)[i] > lows(a.length - 1)[best]) best = i;
        if (highs(a.length - 1)[i] > top) top = highs(a.length - 1)[i];
    }
    const double score = lows(a.length - 1)[best];
    bound = top > score ? top - score : 0.0;
    for (int64_t t = a.length - 1; t >= 0; --t) {
        y[t] = static_cast<int32_t>(shape.label(states(t)[best]));
        best = states(t)[span + best];
    }
    return score;
}

void beam_search(const ChainPlan& data, const ChainWeights& w, const double* into, int64_t beam, int32_t* labels,
                 double* scores, double* bounds, const ChainRange& range) {
    with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        for (int64_t n = range.begin; n < range.end; ++n) {
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            int32_t* y = labels + data.starts[n];
            scores[n] = bounds[n] = 0.0;
            if (a.length > 0) {
                scores[n] = decode_beam(w, a, into, beam, y, bounds[n]);
                if (scores[n] == kLowest) {  // constraints allow nothing from here: all states are looked at
                    scores[n] = decode(w, a, y);
                    bounds[n] = 0.0;
                }
            }
            range.check(range.check_state, range.thread);
        }
    });
}
