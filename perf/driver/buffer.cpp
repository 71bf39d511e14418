#include "perf/driver/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

constexpr size_t kPage = 4096;

[[noreturn]] void no_memory(size_t bytes, const char* why) {
  fail(kExitInternal, "no memory for a buffer of " + std::to_string(bytes) + " bytes: " + why);
}

// The descriptor may be closed after registration: trestleCommRegister keeps one of its own.
void* registered(size_t bytes, trestleComm_t comm, void** registration) {
  const int fd = memfd_create("trestle-perf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) no_memory(bytes, std::strerror(errno));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) no_memory(bytes, std::strerror(errno));
  require(trestleCommRegister(comm, memory, bytes, registration), comm);
  close(fd);
  return memory;
}

}  // namespace

Buffer::Buffer(BufferKind kind, size_t bytes, trestleComm_t comm)
    : kind_(kind), bytes_((bytes + kPage - 1) / kPage * kPage), comm_(comm) {
  void* memory = nullptr;
  switch (kind) {
    case BufferKind::kOrdinary:
      memory = std::aligned_alloc(kPage, bytes_);
      if (memory == nullptr) no_memory(bytes_, "the system has none");
      break;
    case BufferKind::kRegistered:
      memory = registered(bytes_, comm, &registration_);
      break;
    case BufferKind::kAllocated:
      require(trestleMemAlloc(&memory, bytes_), comm);
      break;
  }
  data_ = static_cast<char*>(memory);
  std::memset(data_, 0, bytes_);  // the first touch must not be measured
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(bytes_, other.bytes_);
  std::swap(comm_, other.comm_);
  std::swap(registration_, other.registration_);
  std::swap(data_, other.data_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  switch (kind_) {
    case BufferKind::kOrdinary:
      std::free(data_);
      break;
    case BufferKind::kRegistered:
      require(trestleCommDeregister(comm_, registration_), comm_);
      munmap(data_, bytes_);
      break;
    case BufferKind::kAllocated:
      require(trestleMemFree(data_), comm_);
      break;
  }
}

}  // namespace trestle::perf
