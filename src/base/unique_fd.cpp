#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>

namespace trestle {

namespace {

// A bit per descriptor that a UniqueFd owns, for as many as Linux allows a process (fs.nr_open) unless that was raised.
// Descriptors beyond stay open in a child. Pages that no descriptor has touched cost no memory.
constexpr size_t kMostDescriptors = size_t{1} << 20;
constexpr size_t kBits = 64;
constinit std::array<std::atomic<uint64_t>, kMostDescriptors / kBits> owned{};
constinit std::atomic<size_t> words_in_use{0};  // words that may have bits set

uint64_t bit_of(int fd) {
  return uint64_t{1} << static_cast<size_t>(fd) % kBits;
}

void mark(int fd) {
  const size_t word = static_cast<size_t>(fd) / kBits;
  if (word >= owned.size()) return;
  owned[word].fetch_or(bit_of(fd), std::memory_order_relaxed);
  size_t words = words_in_use.load(std::memory_order_relaxed);
  while (words <= word && !words_in_use.compare_exchange_weak(words, word + 1, std::memory_order_relaxed)) {
  }
}

void unmark(int fd) {
  const size_t word = static_cast<size_t>(fd) / kBits;
  if (word < owned.size()) owned[word].fetch_and(~bit_of(fd), std::memory_order_relaxed);
}

}  // namespace

int above_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

void UniqueFd::take(int fd) {
  fd_ = above_standard_streams(fd);
  generation_ = process_generation();
  if (fd_ >= 0) mark(fd_);
}

int UniqueFd::release() {
  if (fd_ >= 0 && generation_ == process_generation()) unmark(fd_);
  return std::exchange(fd_, -1);
}

// EINTR is not retried: on Linux the descriptor is gone after any return of close(2).
void UniqueFd::close_slowly() {
  const int fd = std::exchange(fd_, -1);
  if (generation_ != process_generation()) return;
  const NoFork whole;
  unmark(fd);  // before the number can be reused
  ::close(fd);
}

void close_all_descriptors() {
  const size_t words = words_in_use.load(std::memory_order_relaxed);
  for (size_t word = 0; word < words; ++word) {
    uint64_t bits = owned[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) ::close(static_cast<int>(word * kBits) + std::countr_zero(bits));
  }
}

}  // namespace trestle
