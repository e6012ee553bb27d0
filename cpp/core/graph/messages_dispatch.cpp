#include "../support/dispatch.hpp"
#include "messages.hpp"

namespace crfkit {

const MessageKernels* find_message_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, generic::message_kernels(), &avx2::message_kernels(), &avx512::message_kernels());
#else
    return choose_kernels<MessageKernels>(name, generic::message_kernels(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
