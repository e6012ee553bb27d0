// The likelihood and its gradient over batches of sequences. Part of training.cpp.

constexpr int64_t kSorted = 64;          // sequences that are sorted by length, so that a batch has similar ones
constexpr int64_t kOuterPositions = 64;  // whose rows the nearest cache holds while outer products are added up

// Fills the tables; returns the shift of their exponents, or NaN if the range of transitions is too wide with that of
// the jumps.
double fill_pair_tables(const Weights& w, const PairTables& p, Real* square) {
    const int64_t n = w.n_labels, width = w.width;
    Real low = -kLowest, high = kLowest;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const Real x = w.transitions[i * width + j];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
    if (!(high - low + w.range <= kMaxRange)) return NAN;
    for (int64_t j = 0; j < n; ++j) {
        Real *t = p.t + j * width, *m = p.m + j * n * width;
        for (int64_t k = 0; k < width; k += kLanes)
            store(t + k, exp_nonpositive(load(w.transitions + j * width + k) - splat(high)) *
                             load(w.inner_mask + j * width + k));
        for (int64_t i = 0; i <= n; ++i)
            multiply_rows(w.exp_jumps + (i * width + j) * width, t, width, i < n ? m + i * width : p.first + j * width);
        transpose_rows(m, n, width, square);
        for (int64_t i = 0; i < n * width; ++i) p.back[j * n * width + i] = square[i];
    }
    transpose_rows(p.first, n, width, p.first_back);
    for (int64_t i = 0; i < n * n * width; ++i) p.outer[i] = 0;
    for (int64_t i = 0; i < n * width; ++i) p.first_outer[i] = 0;
    return w.shift + high;
}

// Adds the sums of outer products to the gradient: M / exp_jumps = t, and a transition occurs in all its triples.
void add_pair_tables(const Weights& w, const PairTables& p, const Gradient& g) {
    const int64_t n = w.n_labels, width = w.width;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i <= n; ++i) {
            const Real* m = i < n ? p.m + (j * n + i) * width : p.first + j * width;
            const Real* outer = i < n ? p.outer + (j * n + i) * width : p.first_outer + j * width;
            Real *to = g.outer + (i * width + j) * width, *transitions = g.transitions + j * width;
            for (int64_t k = 0; k < width; k += kLanes) {
                const V x = load(outer + k);
                store(to + k, load(to + k) + x * load(p.t + j * width + k));
                store(transitions + k, load(transitions + k) + x * load(m + k));
            }
        }
}

// Adds the jumps of a sequence of order 2 to the sums.
void add_pair_outer(const BatchJumps& jumps, const Batch& batch, int s, const PairTables& p) {
    const int64_t n = jumps.n, width = jumps.width, span = jumps.span(), length = batch.lengths[s];
    const Real *alpha = batch.alpha + batch.at[s] * span, *b = batch.beta + batch.at[s] * span;
    if (length < 2) return;
    for (int64_t j = 0; j < n; ++j) {
        const V a = splat(alpha[j]);
        for (int64_t k = j * width; k < (j + 1) * width; k += kLanes)
            store(p.first_outer + k, load(p.first_outer + k) + a * load(b + span + k));
        over_blocks(width, AddOuter<int64_t>{alpha + span + j, width, b + 2 * span + j * width, length - 2, span, n,
                                             p.outer + j * n * width, width});
    }
}

// The value of a batch whose marginals are there, and its gradient; sequences that failed are left out.
double add_batch(const ChainPlan& data, const Weights& w, const Gradient& g, const BatchJumps& jumps,
                 const Batch& batch, const double* scores, const PairTables& pairs) {
    const int64_t width = jumps.width, span = jumps.span();
    double value = 0.0;
    for (int s = 0; s < batch.count; ++s) {
        const int64_t first = data.starts[batch.ids[s]], length = batch.lengths[s], rows = length * span;
        Real *node = batch.node + batch.at[s] * width, *b = batch.beta + batch.at[s] * span;
        if (batch.failed[s]) {  // finite numbers times 0 in the sums over the batch
            Real* alpha = batch.alpha + batch.at[s] * span;
            for (int64_t i = 0; i < rows; ++i) alpha[i] = b[i] = 0;
            continue;
        }
        const double weight = weight_of(data, batch.ids[s]);
        value += weight * (batch.log_z[s] - scores[s]);
        const int32_t* y = data.labels + first;
        for (int64_t t = 0; t < length; ++t) node[t * width + y[t]] -= 1;
        if (weight != 1.0) {
            scale_row(node, length * width, weight);
            scale_row(b, rows, weight);
        }
        for (int64_t t = 0; t < length; ++t) {
            add_residual(data, w, g, width, first + t, node + t * width);
            if (t == 0) continue;
            const int64_t from = jumps.order == 1 ? y[t - 1] : (t > 1 ? y[t - 2] : jumps.n) * width + y[t - 1];
            g.jumps[from * width + y[t]] -= static_cast<Real>(weight);
            if (jumps.order == 2) g.transitions[y[t - 1] * width + y[t]] -= static_cast<Real>(weight);
        }
        if (jumps.order == 2) add_pair_outer(jumps, batch, s, pairs);
    }
    if (jumps.order == 2) return value;
    const int last = batch.count - 1;
    const int64_t end = batch.at[last] + batch.lengths[last];
    for (int64_t t = 1; t < end; t += kOuterPositions) {
        const int64_t length = end - t < kOuterPositions ? end - t : kOuterPositions;
        over_blocks(width, AddOuter<int64_t>{batch.alpha + (t - 1) * width, 1, batch.beta + t * width, length, width,
                                             jumps.n, g.outer, width});
    }
    return value;
}

// value_gradient by batches; false, and nothing is done, where they gain nothing or cannot hold the scores.
bool batched_value_gradient(const ChainPlan& data, const Weights& w, const Gradient& g, const Cache* cache,
                            const ChainRange& range, double& value) {
    const int64_t n = w.n_labels, width = w.width;
    if (!takes_batches(n, w.order) || cache || is_weak(data) || data.pair_offsets || !(w.range <= kMaxRange))
        return false;
    BatchJumps jumps{n,       width,   w.order, batch_rows(n, w.order), w.exp_jumps, w.exp_jumps_transposed,
                     nullptr, nullptr, w.shift};
    auto* scratch = static_cast<Real*>(range.scratch);
    PairTables pairs{};
    if (w.order == 2) {
        pairs = make_pair_tables(scratch, n, width);
        scratch += pair_tables_size(n, width);
        jumps.shift = fill_pair_tables(w, pairs, scratch);
        if (std::isnan(jumps.shift)) return false;
        jumps.m = pairs.m;
        jumps.back = pairs.back;
        jumps.first = pairs.first;
        jumps.first_back = pairs.first_back;
    }
    const int64_t most = batch_positions(n, w.order);
    const auto length_of = [&](int64_t k) { return data.starts[k + 1] - data.starts[k]; };
    value = 0.0;
    int64_t ids[kSorted], failed[kSorted];
    for (int64_t begin = range.begin; begin < range.end; begin += kSorted) {
        const int64_t end = range.end < begin + kSorted ? range.end : begin + kSorted;
        int64_t count = 0, n_failed = 0;
        for (int64_t k = begin; k < end; ++k) {  // longest first
            if (length_of(k) == 0) continue;
            int64_t place = count++;
            for (; place > 0 && length_of(ids[place - 1]) < length_of(k); --place) ids[place] = ids[place - 1];
            ids[place] = k;
        }
        for (int64_t k = 0; k < count;) {
            int64_t positions = 0, next = k;
            do positions += length_of(ids[next++]);
            while (next < count && next - k < kBatch && positions + length_of(ids[next]) <= most);
            Batch batch = make_batch(scratch, jumps, positions);
            double scores[kBatch];
            for (positions = 0; k < next; ++k) {
                const int s = batch.count++;
                batch.ids[s] = ids[k];
                batch.at[s] = positions;
                positions += batch.lengths[s] = length_of(ids[k]);
                scores[s] = fill_batch(data, w, jumps, batch, s);
            }
            infer_batch(jumps, batch);
            value += add_batch(data, w, g, jumps, batch, scores, pairs);
            for (int s = 0; s < batch.count; ++s)
                if (batch.failed[s]) failed[n_failed++] = batch.ids[s];
            for (int s = 0; s < batch.count; ++s) range.check(range.check_state, range.thread);
        }
        if (w.order == 2 && (n_failed > 0 || end == range.end)) add_pair_tables(w, pairs, g);
        for (int64_t k = 0; k < n_failed; ++k) {
            ChainRange one = range;
            one.begin = failed[k];
            one.end = failed[k] + 1;
            value += with_plain_shape(
                n, w.order, [&](const auto& shape) { return value_gradient_of(data, w, g, nullptr, one, shape); });
        }
        if (w.order == 2 && n_failed > 0 && end < range.end) fill_pair_tables(w, pairs, scratch);
    }
    return true;
}
