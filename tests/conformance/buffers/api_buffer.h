// A buffer of a call, between guard bytes, that knows what each of its bytes must be after the call: an image where the
// call reads or writes elements, and elsewhere a pattern that depends on the seed and the place.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/buffers/api_images.h"

namespace api {

// Bytes of a buffer. `at`: counted from its data().
struct Piece {
  size_t at = 0;
  Image image{};
  // Elements of this type may differ by so many units in the last place.
  trestleDataType_t type = trestleUint8;
  uint64_t off = 0;
};

class Buffer {
 public:
  static constexpr size_t kGuardBytes = 192;  // on each side

  // All bytes are expected unchanged, those of `content` and the others.
  Buffer(size_t bytes, size_t offset, bool shared_memory, uint64_t seed, const std::vector<Piece>& content = {});
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // From now on each thread keeps the memory of its buffers for the next ones. Else all large buffers have new pages,
  // which the kernel clears. For programs with so many calls that it matters; sanitizers then see less.
  static void reuse_memory();

  std::byte* data() { return all_ + start_; }
  // The address that a call is given for the byte at `at` of data(): the same, or its place in memory of a device, if
  // the test runs on one. Then the call sees what is at data() from hand_over() on, and the test what the call wrote
  // from take_back() on.
  std::byte* given(std::byte* at) { return device_ == nullptr ? at : device_ + (at - all_); }
  void hand_over();
  void take_back();
  // The call writes this piece over what was expected there.
  void expect(const Piece& piece);
  // Overwrites all pieces with other bytes.
  void spoil();
  // "", or the place of the first wrong byte.
  std::string difference() const;

 private:
  std::byte pattern(size_t at) const;
  void paint(size_t from, size_t to);
  size_t wrong_in_pattern(size_t from, size_t to) const;
  size_t wrong_in_piece(const Piece& piece) const;
  size_t first_wrong() const;

  const size_t start_;  // of data() in all bytes
  const size_t bytes_;
  const size_t size_;  // with the guards
  const bool shared_memory_;
  const uint64_t seed_;
  std::byte* all_ = nullptr;
  std::byte* device_ = nullptr;  // copies of all_ in memory of a device
  std::vector<Piece> pieces_;    // in order; they do not overlap
};

}  // namespace api
