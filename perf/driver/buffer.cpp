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

// The mapping outlives the descriptor.
char* map_shared(size_t bytes, const Claim& claim) {
  const int fd = memfd_create("trestle-perf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) no_memory(bytes, std::strerror(errno));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) no_memory(bytes, std::strerror(errno));
  if (claim) claim(static_cast<char*>(memory), bytes);
  close(fd);
  return static_cast<char*>(memory);
}

class HostAccess : public Access {
 public:
  bool is_direct() const override { return true; }
  void zero(char* at, size_t bytes) override { std::memset(at, 0, bytes); }
  void write(char* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, const char* from, size_t bytes) override { std::memcpy(to, from, bytes); }
};

}  // namespace

Source ordinary_memory() {
  return {[](size_t bytes) {
            void* const memory = std::aligned_alloc(kPage, bytes);
            if (memory == nullptr) no_memory(bytes, "the system has none");
            return static_cast<char*>(memory);
          },
          [](char* memory, size_t) { std::free(memory); }};
}

Source shared_memory(const Claim& claim) {
  return {[claim](size_t bytes) { return map_shared(bytes, claim); },
          [](char* memory, size_t bytes) { munmap(memory, bytes); }};
}

std::unique_ptr<Access> host_access() {
  return std::make_unique<HostAccess>();
}

Buffer::Buffer(const Source& source, size_t bytes, Access& access)
    : source_(source), bytes_((bytes + kPage - 1) / kPage * kPage), data_(source.allocate(bytes_)) {
  access.zero(data_, bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) source_.free(data_, bytes_);
}

}  // namespace trestle::perf
