#define CRFKIT_KERNELS message_kernels_avx2
#define CRFKIT_NAME "avx2"
#define CRFKIT_LANES 4
#include "messages_kernels.inl"
