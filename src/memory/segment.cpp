#include "memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/files/file_size.h"
#include "base/log.h"

namespace trestle {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// Linux 6.1: collapse into huge pages now. Older headers do not define it, older kernels answer EINVAL.
constexpr int kMadviseCollapse = 25;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

Error cannot(const char* what, size_t bytes, const std::string& why) {
  return {Code::kSystemError,
          std::string("cannot ") + what + " " + std::to_string(bytes) + " bytes of shared memory: " + why};
}

// The system has refused the call.
Error failure(const char* what, size_t bytes, const char* call, int error) {
  return cannot(what, bytes, std::string(call) + ": " + std::strerror(error) + memory_limit_text());
}

std::string read_text(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 4096> text;
  const ssize_t length = read(file.get(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : std::string();
}

uint64_t number_in(const std::string& path, uint64_t otherwise) {
  const std::string text = read_text(path);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' ? std::strtoull(text.c_str(), nullptr, 10) : otherwise;
}

// The process's control group, version 2: the line "0::/path".
std::string control_group() {
  const std::string groups = read_text("/proc/self/cgroup");
  size_t at = groups.rfind("0::", 0) == 0 ? 0 : groups.find("\n0::");
  if (at == std::string::npos) return {};
  if (groups[at] == '\n') ++at;
  const size_t end = groups.find('\n', at);
  return groups.substr(at + 3, end == std::string::npos ? end : end - at - 3);
}

// Bytes that the control group and its ancestors allow.
uint64_t memory_limit() {
  uint64_t lowest = UINT64_MAX;
  std::string path = control_group();
  while (true) {
    if (path == "/") path.clear();
    lowest = std::min(lowest, number_in("/sys/fs/cgroup" + path + "/memory.max", UINT64_MAX));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) break;
    path.resize(slash);
  }
  // Version 1, where a container sees its own group as the root.
  lowest = std::min(lowest, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", UINT64_MAX));
  return lowest >= uint64_t{1} << 62 ? UINT64_MAX : lowest;
}

uint64_t memory_available() {
  const std::string text = read_text("/proc/meminfo");
  const size_t at = text.find("MemAvailable:");
  if (at == std::string::npos) return UINT64_MAX;
  return std::strtoull(text.c_str() + at + 13, nullptr, 10) * 1024;
}

// Reserves no pages: a hugetlbfs file already has its pages, allocated by another process, and a file may be longer
// than the part in use.
void* map_aligned(size_t bytes, size_t alignment, int protection, int fd) {
  // Reserve more than needed, then put the mapping on the aligned address inside and give the ends back.
  const size_t reserved = bytes + alignment;
  void* area = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return area;
  const auto begin = reinterpret_cast<uintptr_t>(area);
  const uintptr_t aligned = round_up(begin, alignment);
  void* data = mmap(reinterpret_cast<void*>(aligned), bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) {
    munmap(area, reserved);
    return data;
  }
  if (aligned != begin) munmap(area, aligned - begin);
  if (aligned + bytes != begin + reserved) {
    munmap(reinterpret_cast<void*>(aligned + bytes), begin + reserved - aligned - bytes);
  }
  return data;
}

}  // namespace

std::string memory_limit_text() {
  const uint64_t most = memory_limit();
  if (most == UINT64_MAX) return {};
  return " (the memory limit of the control group is " + std::to_string(most >> 20) + " MiB)";
}

Segment::Segment(Segment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), fd_(std::move(other.fd_)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    fd_ = std::move(other.fd_);
  }
  return *this;
}

void Segment::unmap() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

// alignment 0: to pages.
Status Segment::map(bool writable, size_t alignment) {
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* data = alignment != 0 ? map_aligned(bytes_, alignment, protection, fd_.get())
                              : mmap(nullptr, bytes_, protection, MAP_SHARED, fd_.get(), 0);
  if (data == MAP_FAILED) return failure("map", bytes_, "mmap", errno);
  data_ = static_cast<std::byte*>(data);
  if (madvise(data_, bytes_, MADV_DONTFORK) != 0) {
    LOG(kTrace, kAlloc, "forked children keep %zu bytes: %s", bytes_, std::strerror(errno));
  }
  return {};
}

Status Segment::keep_in_children() {
  if (madvise(data_, bytes_, MADV_DOFORK) != 0) return failure("share with forked children", bytes_, "madvise", errno);
  return {};
}

Result<Segment> Segment::create(const char* label, size_t bytes, bool huge) {
  Segment segment;
  huge = huge && bytes >= kHugePageBytes;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX / 2) return cannot("make", bytes, std::string(std::strerror(ENOMEM)) + memory_limit_text());
  segment.bytes_ = round_up(bytes, huge ? kHugePageBytes : page);
  // Allocating shared memory that the machine does not have does not fail: the kernel kills processes instead. So this
  // refuses beforehand. It compares with the group's limit and not with its usage, since page cache can be dropped.
  if (segment.bytes_ >= kHugePageBytes && segment.bytes_ > std::min(memory_available(), memory_limit())) {
    return cannot("allocate", segment.bytes_, std::string(std::strerror(ENOMEM)) + memory_limit_text());
  }
  if (const uint64_t most = most_file_bytes(); segment.bytes_ > most) {
    return cannot("make", segment.bytes_, file_size_text(most) + ", and shared memory counts as one");
  }
  segment.fd_ = UniqueFd::open([label] { return memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (!segment.fd_) return failure("make", segment.bytes_, "memfd_create", errno);
  if (ftruncate(segment.fd_.get(), static_cast<off_t>(segment.bytes_)) != 0) {
    return failure("make", segment.bytes_, "ftruncate", errno);
  }
  if (huge) {
    // Before the small pages exist, so that huge ones are made at once and nothing is copied. Best effort.
    TRY(segment.map(true, kHugePageBytes));
    madvise(segment.data_, segment.bytes_, MADV_HUGEPAGE);
    if (madvise(segment.data_, segment.bytes_, kMadviseCollapse) != 0) {
      LOG(kTrace, kAlloc, "no huge pages for %zu bytes: %s", segment.bytes_, std::strerror(errno));
    }
  }
  int rc;
  do {
    rc = fallocate(segment.fd_.get(), 0, 0, static_cast<off_t>(segment.bytes_));
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return failure("allocate", segment.bytes_, "fallocate", errno);
  if (fcntl(segment.fd_.get(), F_ADD_SEALS, kSeals) != 0) return failure("seal", segment.bytes_, "fcntl", errno);
  if (!huge) TRY(segment.map(true, 0));
  return segment;
}

Result<Segment> Segment::adopt(UniqueFd fd, size_t bytes, bool writable) {
  Segment segment;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd.get(), &info) != 0) {
    return Error{Code::kRemoteError, "sent a descriptor that is no sealed shared memory"};
  }
  if (bytes == 0 || static_cast<uint64_t>(info.st_size) < bytes) {
    return Error{Code::kRemoteError, "sent shared memory of " + std::to_string(info.st_size) + " bytes where " +
                                         std::to_string(bytes) + " were announced"};
  }
  segment.bytes_ = bytes;
  segment.fd_ = std::move(fd);
  // A memfd of huge pages has their size as its block size, which may be larger than usual.
  const auto page = static_cast<size_t>(info.st_blksize);
  TRY(segment.map(writable, bytes >= kHugePageBytes ? std::max(page, kHugePageBytes) : 0));
  return segment;
}

Status segment_probe() {
  Result<Segment> segment = Segment::create("trestle-probe", 1, false);
  if (!segment.ok()) return std::move(segment).error();
  return {};
}

}  // namespace trestle
