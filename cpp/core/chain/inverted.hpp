// The positions at which each attribute occurs: what the gradients of attributes without weights are computed from.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Attribute a occurs at positions[offsets[a] : offsets[a+1]] (ascending) with values (null: all 1).
struct InvertedView {
    const int64_t* offsets;    // [n + 1]
    const int32_t* positions;  // [entries]
    const double* values;      // [entries]
    int64_t n;
};

// Rows of entries: ids[offsets[t] : offsets[t+1]] with values (null: all 1).
struct RowsView {
    const int64_t* offsets;  // [n + 1]
    const int32_t* ids;      // [entries]
    const double* values;    // [entries]
    int64_t n;
};

struct Transposed {
    std::vector<int64_t> offsets;
    std::vector<int32_t> ids;
    std::vector<double> values;  // empty: all 1
};

// Position by position to id by id: entries of one id stand in the order of their rows.
Transposed transpose(const RowsView& rows, int64_t n_ids);

// The chosen attributes only, renumbered in this order, position by position.
Transposed gather_attributes(const InvertedView& index, const std::vector<int64_t>& chosen, int64_t n_positions);

// Which weights attributes have: codes[offsets[a] : offsets[a+1]], or (offsets null) all of 0 … width − 1.
struct CodesView {
    const int64_t* offsets;
    const int32_t* codes;
    int64_t width;
    int64_t begin(int64_t a) const { return offsets ? offsets[a] : a * width; }
};

// For the attributes first … last − 1 and the positions t0 … t0 + n − 1, into out[weight − begin(first)]:
//   g[a, c] += Σ_{t : a at t} value·residual[t − t0][c]
void add_gradients(const InvertedView& index, const CodesView& codes, int64_t first, int64_t last,
                   const double* residual, int64_t t0, int64_t n, double* out, int n_threads);

}  // namespace crfkit
