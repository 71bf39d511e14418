// Memory of the fake driver that other processes map, as CUDA's IPC does it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "unit/device/fake_state.h"

namespace trestle::fake {
namespace {

void* map(int fd, size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

void* map_new(size_t bytes, int& fd) {
  fd = ::memfd_create("fake device", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const memory = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? map(fd, bytes) : nullptr;
  if (memory == nullptr) ::close(fd);
  return memory;
}

void* map_of(int process, int fd, size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return nullptr;
  void* const memory = map(opened, bytes);
  ::close(opened);
  return memory;
}

void unmap(void* memory, size_t bytes, int fd) {
  ::munmap(memory, bytes);
  if (fd >= 0) ::close(fd);
}

}  // namespace trestle::fake
