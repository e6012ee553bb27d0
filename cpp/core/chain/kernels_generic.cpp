#define CRFKIT_KERNELS kernels_generic
#define CRFKIT_SINGLE_KERNELS single_generic
#define CRFKIT_NAME "generic"
#define CRFKIT_LANES 2
#define CRFKIT_OUTER_VECTORS 12
#include "kernels.inl"
