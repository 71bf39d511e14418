#include "conformance/faults/fault_points.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int> armed_kind{-1};
std::atomic<long> left{-1};  // requests before the one that fails; negative: none will fail
std::atomic<bool> has_failed{false};
thread_local bool is_test = false;

bool fails(faults::Kind kind) {
  if (is_test || armed_kind.load(std::memory_order_relaxed) != static_cast<int>(kind)) return false;
  if (left.load(std::memory_order_relaxed) < 0 || left.fetch_sub(1) != 0) return false;
  has_failed.store(true);
  return true;
}

bool fails_with(faults::Kind kind, int problem) {
  if (!fails(kind)) return false;
  errno = problem;
  return true;
}
bool no_descriptor() {
  return fails_with(faults::Kind::kDescriptor, EMFILE);
}
bool no_shared_memory() {
  return fails_with(faults::Kind::kSharedMemory, ENOMEM);
}

}  // namespace

namespace faults {

const char* name_of(Kind kind) {
  return kind == Kind::kBlock ? "block" : kind == Kind::kSharedMemory ? "shared memory" : "descriptor";
}

void arm(Kind kind, long before) {
  has_failed.store(false);
  armed_kind.store(static_cast<int>(kind));
  left.store(before);
}

bool disarm() {
  left.store(-1);
  return has_failed.load();
}

void exempt_this_thread() {
  is_test = true;
}
void set_counted(bool counted) {
  is_test = !counted;
}

}  // namespace faults

// The only function of the heap that the library asks for large blocks.
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  if (fails(faults::Kind::kBlock)) return nullptr;
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (size / unit + 1) * unit);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

// The program's definitions come before those of the C library, also for calls from a shared library.
#pragma GCC visibility push(default)
extern "C" {

int memfd_create(const char* name, unsigned flags) noexcept {
  if (no_shared_memory() || no_descriptor()) return -1;
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}
int ftruncate(int fd, off_t bytes) noexcept {
  return no_shared_memory() ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return no_shared_memory() ? -1 : static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, bytes));
}
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (no_shared_memory()) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
int eventfd(unsigned count, int flags) noexcept {
  return no_descriptor() ? -1 : static_cast<int>(syscall(SYS_eventfd2, count, flags));
}
int epoll_create1(int flags) noexcept {
  return no_descriptor() ? -1 : static_cast<int>(syscall(SYS_epoll_create1, flags));
}
int socket(int family, int type, int protocol) noexcept {
  return no_descriptor() ? -1 : static_cast<int>(syscall(SYS_socket, family, type, protocol));
}
int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  return no_descriptor() ? -1 : static_cast<int>(syscall(SYS_accept4, fd, address, bytes, flags));
}
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (command == F_DUPFD_CLOEXEC && no_descriptor()) return -1;
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}
int dup(int fd) noexcept {
  return no_descriptor() ? -1 : static_cast<int>(syscall(SYS_dup, fd));
}

}  // extern "C"
#pragma GCC visibility pop
