// Memory of one rank's thread: one arena per kind, and buffers in it between guard zones.
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
  // Returns memory `shift` bytes after a multiple of 64, with a guard zone on both sides; nullptr: the arena is full.
  uint8_t* take(size_t bytes, size_t shift);
  void reset() { used_ = 0; }
  size_t room() const { return bytes_ - used_; }

 private:
  const Memory kind_;
  const size_t bytes_;
  size_t used_ = 0;
  uint8_t* base_ = nullptr;
  int fd_ = -1;  // of the memfd, which registration needs
};

// A buffer with its guard zones, at first filled with one byte value.
struct Buffer {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  uint8_t filler = 0;

  void wipe();
  // An image of the buffer and its guard zones, as filled at first. The buffer begins at kGuardBytes.
  std::vector<uint8_t> image() const;
  // "", or the place of the first difference from the image.
  std::string difference(const std::vector<uint8_t>& image) const;
};

}  // namespace torture
