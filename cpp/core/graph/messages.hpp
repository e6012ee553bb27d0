// Message kernels over blocks of nodes, one table of functions per instruction set.
#pragma once

#include <cstdint>

namespace crfkit {

// What a kernel reads and writes, for the blocks first … last. Buffers are in the order of the blocks.
struct MessageTask {
    const int32_t* degrees;     // [B]
    const int64_t* first_rows;  // [B]
    const int32_t* targets;     // [rows][8]
    int64_t first, last;
    int n_states;          // K
    const double* unary;   // [B][8] ratios, or [B][K][8] potentials
    const double* tables;  // [rows][8] couplings, or [rows][…][8] tables [own state][other state]
    const double* in;      // [rows][8] ratios, or [rows][K][8]: messages sent from each slot
    double* out;           // where the new ones go; may be the same buffer
    double damping;        // share of the old message that is kept
    bool measure;          // whether to return the largest change of a message
    double* scratch;       // [2·max degree + 2][K][8], aligned
    int max_degree;
    const double* weights;  // [rows][8] ρ, of the kernels in log space
};

struct MessageKernels {
    const char* name;
    // x = exp(x), in place; |x| <= 700.
    void (*exponentials)(double* x, int64_t n);
    // Sum-product: the messages that a block sends, from those that stand at the targets of its slots.
    // With two states. A message is the ratio r = m(1)/m(0), u = exp of the node's log-odds and
    // q = exp(2J) of the edge's coupling; with B = u·Π r the message along a slot is (r + qB)/(qr + B).
    double (*ratios)(const MessageTask&);
    // Sum-product with K states. A message is the ratios r(y) = m(y)/m(0), y = 1 … K − 1, and so it is in the buffers;
    // unary are u [B][K][8] and tables are q [rows][(K−1)·(K−1)][8], of the states from 1 on: those of state 0 are one,
    // as whatever else a table says of one of its ends stands in u. With the cavities c(x) = u(x)·Π r(x), c(0) = u(0),
    // a message is r(y) = (c(0) + Σ_x c(x)·q(x, y)) / Σ_x c(x).
    double (*tables)(const MessageTask&);
    // Tables that are one on all but the diagonal, where they are q. A message has K values whose mean is one, so that
    // a product of many stays within the range of their tables: if messages summed to one, it would be about K^-degree.
    double (*potts)(const MessageTask&);
    // The same with one symmetric table [K][K] for all edges.
    double (*shared)(const MessageTask&);

    // In log space, with edges weighted by ρ. Two states: messages are log-odds λ, q = exp(2J/ρ); with b = h + Σ ρλ
    // and h = b − λ the message along a slot is log((1 + q·e^h)/(q + e^h)).
    double (*log_odds)(const MessageTask&);
    // K states: messages are logarithms, the largest 0; tables are exponentials.
    double (*log_tables)(const MessageTask&);

    // Mean field, coordinate by coordinate. Here targets are places of neighbours (8·block + lane), `in` and `out`
    // are distributions of nodes [B][K][8], potentials are logarithms. Binary: `in` holds means ±1 [B][8], unary
    // log-odds, tables 2J.
    double (*binary_means)(const MessageTask&);
    double (*table_means)(const MessageTask&);
    double (*potts_means)(const MessageTask&);
    double (*shared_means)(const MessageTask&);
};

namespace generic {
const MessageKernels& message_kernels();
}
namespace avx2 {
const MessageKernels& message_kernels();
}
namespace avx512 {
const MessageKernels& message_kernels();
}
// "auto": default_kernels(); null if the name is not known or the machine cannot run it.
const MessageKernels* find_message_kernels(const char* name);

}  // namespace crfkit
