#define CRFKIT_KERNELS kernels_avx512
#define CRFKIT_SINGLE_KERNELS single_avx512
#define CRFKIT_NAME "avx512"
#define CRFKIT_LANES 8
#define CRFKIT_OUTER_VECTORS 24
#include "kernels.inl"
