#define CRFKIT_KERNELS message_kernels_avx512
#define CRFKIT_NAME "avx512"
#define CRFKIT_LANES 8
#include "messages_kernels.inl"
