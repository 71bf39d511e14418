// Memory of one rank's thread: an arena of each kind, and buffers in it between guard zones.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "torture/call.h"

namespace torture {

inline constexpr size_t kGuardBytes = 192;

class Arena {
 public:
  Arena(Memory kind, size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint8_t* base() { return base_; }
  size_t bytes() const { return bytes_; }
  // `shift` bytes behind a multiple of 64, with a guard zone on both sides; nullptr: full.
  uint8_t* take(size_t bytes, size_t shift);
  void reset() { used_ = 0; }
  size_t room() const { return bytes_ - used_; }

 private:
  const Memory kind_;
  const size_t bytes_;
  size_t used_ = 0;
  uint8_t* base_ = nullptr;
  int fd_ = -1;  // of the memfd: registering needs one
};

// A buffer with its guard zones, filled with one byte value at first.
struct Buffer {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  uint8_t filler = 0;

  void wipe();
  // An image of buffer and guard zones, as wiped; the buffer begins at kGuardBytes.
  std::vector<uint8_t> image() const;
  // "" or where it differs from the image.
  std::string difference(const std::vector<uint8_t>& image) const;
};

}  // namespace torture
