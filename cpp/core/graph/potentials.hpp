// Log-potentials of a pairwise field, as the engines read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace crfkit {

// P_e = Σ_b coefficients[e][b] · basis[b]; unary is -inf where a node cannot have a state.
struct PotentialsView {
    int n_states;                // K
    int n_basis;                 // B
    bool unit_basis;             // B = K·K unit tables: the coefficients are the table
    const double* unary;         // [N][K]
    const double* coefficients;  // [E][B]
    const double* basis;         // [B][K][K]

    // Writes the table of an edge, [state of the first][state of the second].
    void table(int64_t edge, double* out) const {
        const int size = n_states * n_states;
        const double* c = coefficients + edge * n_basis;
        if (unit_basis) {
            std::copy(c, c + size, out);
            return;
        }
        for (int x = 0; x < size; ++x) out[x] = c[0] * basis[x];
        for (int b = 1; b < n_basis; ++b)
            for (int x = 0; x < size; ++x) out[x] += c[b] * basis[int64_t{b} * size + x];
    }
};

// Ising form of a 2×2 table: c + a·s + b·s′ + J·s·s′ with s, s′ = ±1.
struct Ising {
    double c, a, b, J;
    explicit Ising(const double* t)
        : c((t[0] + t[1] + t[2] + t[3]) / 4),
          a((t[2] + t[3] - t[0] - t[1]) / 4),
          b((t[1] + t[3] - t[0] - t[2]) / 4),
          J((t[0] + t[3] - t[1] - t[2]) / 4) {}
};

// Whether all edges have the same table, and that is symmetric.
inline bool is_shared(const PotentialsView& potentials, int64_t n_edges) {
    const int K = potentials.n_states, B = potentials.n_basis;
    const double* c = potentials.coefficients;
    for (int64_t x = B; x < n_edges * B; ++x)
        if (c[x] != c[x % B]) return false;
    if (n_edges == 0) return false;
    std::vector<double> table(static_cast<size_t>(K * K));
    potentials.table(0, table.data());
    for (int x = 0; x < K; ++x)
        for (int y = 0; y < x; ++y)
            if (table[x * K + y] != table[y * K + x]) return false;
    return true;
}

// Whether the tables are multiples of the identity.
inline bool is_potts(const PotentialsView& potentials) {
    const int K = potentials.n_states;
    if (potentials.n_basis != 1) return false;
    for (int x = 0; x < K * K; ++x)
        if (potentials.basis[x] != (x % (K + 1) == 0 ? 1.0 : 0.0)) return false;
    return true;
}

}  // namespace crfkit
