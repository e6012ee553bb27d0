#define CRFKIT_CHUNKS chunks_generic
#define CRFKIT_LANES 2
#include "chunks.inl"
