// UniqueFd: owns one file descriptor and closes it. Movable, one thread at a time.
//
// No UniqueFd has a number below 3. A process may be started without standard streams, or close them; then the kernel
// would give their numbers to sockets, and whatever the program prints would go to a peer.
//
// A forked child closes the descriptors of all UniqueFds at once. Peers notice a dead process by the end of its
// connections, and a child that kept them open would delay that. The UniqueFds that the child has inherited then own
// nothing, because their numbers may be in use again.
#pragma once

#include <cstdint>
#include <utility>

#include "base/fork.h"

namespace trestle {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes over a descriptor that was opened elsewhere; its number may change. open() is better: no fork can happen
  // between opening and owning.
  explicit UniqueFd(int fd) { take(fd); }
  // Owns what make() returns; negative: nothing, and errno says why. make() must neither block nor close a UniqueFd.
  template <class F>
  static UniqueFd open(F&& make) {
    const NoFork whole;
    return UniqueFd(make());
  }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this == &other) return *this;
    close_own();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { close_own(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset(int fd = -1) {
    if (fd == fd_) return;
    close_own();
    take(fd);
  }

 private:
  void take(int fd);
  void close_own() {
    if (fd_ >= 0) close_slowly();
  }
  void close_slowly();

  int fd_ = -1;
  uint32_t generation_ = 0;  // of the process that opened it
};

// That open file with a number from 3 on: fd itself, or a duplicate, and then fd is closed. -1 if fd is negative or
// no number is free; errno says why. The duplicate is closed on exec.
int above_standard_streams(int fd);

// Closes the descriptors of all UniqueFds. Only in a forked child, before anything else; async-signal-safe.
void close_all_descriptors();

}  // namespace trestle
