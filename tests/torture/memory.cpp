#include "torture/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace torture {
namespace {

[[noreturn]] void no_memory(const char* why) {
  std::fprintf(stderr, "torture: no memory: %s\n", why);
  std::abort();
}

uint8_t* mapped(size_t bytes, bool of_memfd, int& fd) {
  if (of_memfd) {
    fd = memfd_create("torture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) no_memory("memfd");
  }
  const int flags = of_memfd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) no_memory("mmap");
  return static_cast<uint8_t*>(memory);
}

}  // namespace

Arena::Arena(Memory kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  if (kind != Memory::kAllocated) {
    base_ = mapped(bytes, kind == Memory::kRegistered, fd_);
    return;
  }
  void* memory = nullptr;
  if (trestleMemAlloc(&memory, bytes) != trestleSuccess) no_memory(trestleGetLastError(nullptr));
  base_ = static_cast<uint8_t*>(memory);
}

Arena::~Arena() {
  if (kind_ != Memory::kAllocated) {
    munmap(base_, bytes_);
    if (fd_ >= 0) close(fd_);
  } else if (trestleMemFree(base_) != trestleSuccess) {
    no_memory(trestleGetLastError(nullptr));
  }
}

uint8_t* Arena::take(size_t bytes, size_t shift) {
  const size_t begin = (used_ + 63) / 64 * 64;
  const size_t end = begin + kGuardBytes + shift + bytes + kGuardBytes;
  if (end > bytes_) return nullptr;
  used_ = end;
  return base_ + begin + kGuardBytes + shift;
}

void Buffer::wipe() {
  if (data != nullptr) std::memset(data - kGuardBytes, filler, bytes + 2 * kGuardBytes);
}

std::vector<uint8_t> Buffer::image() const {
  return std::vector<uint8_t>(bytes + 2 * kGuardBytes, filler);
}

std::string Buffer::difference(const std::vector<uint8_t>& image) const {
  const uint8_t* const is = data - kGuardBytes;
  if (std::memcmp(is, image.data(), image.size()) == 0) return "";
  size_t first = image.size();
  size_t last = 0;
  size_t wrong = 0;
  size_t untouched = 0;
  for (size_t i = 0; i < image.size(); ++i) {
    if (is[i] == image[i]) continue;
    first = std::min(first, i);
    last = i;
    ++wrong;
    untouched += is[i] == filler;
  }
  std::ostringstream out;
  out << wrong << " of " << bytes << " bytes wrong (" << untouched << " of them as before), from byte "
      << static_cast<int64_t>(first) - static_cast<int64_t>(kGuardBytes) << " to "
      << static_cast<int64_t>(last) - static_cast<int64_t>(kGuardBytes) << "; the first is " << std::hex << "0x"
      << static_cast<int>(is[first]) << " instead of 0x" << static_cast<int>(image[first]);
  return out.str();
}

}  // namespace torture
