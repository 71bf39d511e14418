#include "bindings/nccl/host_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kPagesKept = 64;

bool kernel_reads(const void* buffer) {
  char byte = 0;
  const iovec to = {&byte, 1};
  const iovec from = {const_cast<void*>(buffer), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

bool is_readable(const void* buffer) {
  thread_local uintptr_t readable[kPagesKept] = {};  // 0: none
  const uintptr_t page = reinterpret_cast<uintptr_t>(buffer) / kPageBytes + 1;
  uintptr_t& kept = readable[page % kPagesKept];
  if (kept == page) return true;
  if (!kernel_reads(buffer)) return false;
  kept = page;
  return true;
}

}  // namespace

bool on_host(const char* function, std::initializer_list<const void*> buffers, size_t count) {
  if (count == 0) return true;
  for (const void* buffer : buffers) {
    if (buffer == nullptr || is_readable(buffer)) continue;
    (void)refuse(Result::kInvalidArgument,
                 "%s: the processor cannot read the buffer at %p: it is device memory, or was freed. The communicator "
                 "has no device: no CUDA device was current when it was made, TRESTLE_DEVICE is -1, or this "
                 "libnccl.so.2 was built without CUDA. Give it host memory",
                 function, buffer);
    return false;
  }
  return true;
}

}  // namespace trestle::nccl
