#define CRFKIT_SINGLE
#define CRFKIT_SINGLE_KERNELS single_generic
#define CRFKIT_LANES 4
#define CRFKIT_OUTER_VECTORS 12
#include "single.inl"
