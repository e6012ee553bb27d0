#define CRFKIT_CHUNKS chunks_avx2
#define CRFKIT_LANES 4
#include "chunks.inl"
