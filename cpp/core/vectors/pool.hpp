// Memory of large vectors, kept for later ones of the same length. The system clears every page that it hands out,
// which takes about as long as a pass over it, and solvers make several vectors in every iteration.
#pragma once

#include <cstdint>

#include "../support/buffer.hpp"

namespace crfkit {

// A buffer of n doubles that hold anything.
Buffer take_vector(int64_t n);
// Keeps a buffer for take_vector, if it is large and not too many of its size are kept. Those of other sizes are freed.
void give_vector(Buffer&& vector);
// Frees what is kept.
void free_vectors();

}  // namespace crfkit
