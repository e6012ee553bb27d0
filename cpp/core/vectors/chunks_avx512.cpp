#define CRFKIT_CHUNKS chunks_avx512
#define CRFKIT_LANES 8
#include "chunks.inl"
