#include "../support/dispatch.hpp"
#include "messages.hpp"

namespace crfkit {

const MessageKernels* find_message_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, message_kernels_generic(), &message_kernels_avx2(), &message_kernels_avx512());
#else
    return choose_kernels<MessageKernels>(name, message_kernels_generic(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
