#define CRFKIT_KERNELS message_kernels_generic
#define CRFKIT_NAME "generic"
#define CRFKIT_LANES 2
#include "messages_kernels.inl"
