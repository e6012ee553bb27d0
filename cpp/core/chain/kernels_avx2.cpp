#define CRFKIT_KERNELS kernels_avx2
#define CRFKIT_SINGLE_KERNELS single_avx2
#define CRFKIT_NAME "avx2"
#define CRFKIT_LANES 4
#define CRFKIT_OUTER_VECTORS 12
#include "kernels.inl"
