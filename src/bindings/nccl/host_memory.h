// Tells memory that the processor can read from memory that it cannot.
//
// For communicators without a device, which never ask CUDA what a pointer is. Memory that only a device reaches is
// mapped such that the processor cannot read it, so the kernel is asked whether it can be read. Any thread.
#pragma once

#include <initializer_list>

#include "bindings/nccl/interface.h"

namespace trestle::nccl {

// False, with the call refused: the processor cannot read one of the buffers. NULL, and any buffer of a call with
// `count` 0, is left to libtrestle.so. Only the first byte of a buffer is asked for, and each page once per thread:
// memory that is freed later is not noticed. Where the kernel does not answer, the buffers count as readable.
bool on_host(const char* function, std::initializer_list<const void*> buffers, size_t count);

}  // namespace trestle::nccl
