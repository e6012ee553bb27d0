#include "inverted.hpp"

#include <algorithm>

#include "../support/parallel.hpp"

namespace crfkit {

Transposed transpose(const RowsView& rows, int64_t n_ids) {
    const int64_t entries = rows.offsets[rows.n];
    Transposed out;
    out.offsets.assign(static_cast<size_t>(n_ids) + 1, 0);
    for (int64_t e = 0; e < entries; ++e) ++out.offsets[static_cast<size_t>(rows.ids[e]) + 1];
    for (size_t a = 0; a < static_cast<size_t>(n_ids); ++a) out.offsets[a + 1] += out.offsets[a];
    out.ids.resize(static_cast<size_t>(entries));
    if (rows.values) out.values.resize(static_cast<size_t>(entries));
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);  // [n_ids]
    for (int64_t t = 0; t < rows.n; ++t)
        for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
            const auto at = static_cast<size_t>(next[static_cast<size_t>(rows.ids[e])]++);
            out.ids[at] = static_cast<int32_t>(t);
            if (rows.values) out.values[at] = rows.values[e];
        }
    return out;
}

Transposed gather_attributes(const InvertedView& index, const std::vector<int64_t>& chosen, int64_t n_positions) {
    std::vector<int64_t> offsets{0};
    for (const int64_t a : chosen) offsets.push_back(offsets.back() + index.offsets[a + 1] - index.offsets[a]);
    Transposed out;
    out.offsets.assign(static_cast<size_t>(n_positions) + 1, 0);
    for (const int64_t a : chosen)
        for (int64_t e = index.offsets[a]; e < index.offsets[a + 1]; ++e)
            ++out.offsets[static_cast<size_t>(index.positions[e]) + 1];
    for (size_t t = 0; t < static_cast<size_t>(n_positions); ++t) out.offsets[t + 1] += out.offsets[t];
    const auto entries = static_cast<size_t>(out.offsets.back());
    out.ids.resize(entries);
    if (index.values) out.values.resize(entries);
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);  // [n_positions]
    for (size_t k = 0; k < chosen.size(); ++k)
        for (int64_t e = index.offsets[chosen[k]]; e < index.offsets[chosen[k] + 1]; ++e) {
            const auto at = static_cast<size_t>(next[static_cast<size_t>(index.positions[e])]++);
            out.ids[at] = static_cast<int32_t>(k);
            if (index.values) out.values[at] = index.values[e];
        }
    return out;
}

namespace {

// sum[c] += Σ value·residual[t − t0][c] over the entries e of an attribute; W: the width, 0 if it is not known here.
template <int W>
void sum_entries(const InvertedView& index, int64_t begin, int64_t end, const double* residual, int64_t t0, int64_t n,
                 double* sum) {
    const int64_t width = W > 0 ? W : n;
    for (int64_t e = begin; e < end; ++e) {
        const double* row = residual + (index.positions[e] - t0) * width;
        const double value = index.values ? index.values[e] : 1.0;
        for (int64_t c = 0; c < width; ++c) sum[c] += value * row[c];
    }
}

auto summing(int64_t width) {
    switch (width) {
        case 2: return sum_entries<2>;
        case 3: return sum_entries<3>;
        case 4: return sum_entries<4>;
        case 9: return sum_entries<9>;
        default: return sum_entries<0>;
    }
}

}  // namespace

void add_gradients(const InvertedView& index, const CodesView& codes, int64_t first, int64_t last,
                   const double* residual, int64_t t0, int64_t n, double* out, int n_threads) {
    const auto bounds = split_by_cost(last - first, n_threads, [&](int64_t k) {
        return static_cast<double>(index.offsets[first + k] - index.offsets[first] + 4 * k);
    });
    const int64_t base = codes.begin(first);
    const auto sum_up = summing(codes.width);
    run_threads(n_threads, [&](int thread) {
        std::vector<double> sum(static_cast<size_t>(codes.width));  // [width]
        const auto part = static_cast<size_t>(thread);
        for (int64_t a = first + bounds[part]; a < first + bounds[part + 1]; ++a) {
            const int32_t* positions = index.positions;
            int64_t begin = index.offsets[a], end = index.offsets[a + 1];
            begin = std::lower_bound(positions + begin, positions + end, t0) - positions;
            end = std::lower_bound(positions + begin, positions + end, t0 + n) - positions;
            if (begin == end) continue;
            std::fill(sum.begin(), sum.end(), 0.0);
            sum_up(index, begin, end, residual, t0, codes.width, sum.data());
            double* g = out + (codes.begin(a) - base);
            const int64_t weights = codes.begin(a + 1) - codes.begin(a);
            for (int64_t k = 0; k < weights; ++k)
                g[k] += sum[static_cast<size_t>(codes.offsets ? codes.codes[codes.begin(a) + k] : k)];
        }
    });
}

}  // namespace crfkit
