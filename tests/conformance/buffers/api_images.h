// Images: bytes that buffers have before or after a call, computed once for all ranks of a process. Any thread.
//
// The values are those of api_values.h. An image can be of any length, is cheap to copy and never changes.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace api {

class Image {
 public:
  Image() = default;
  Image(std::shared_ptr<const std::byte> data, size_t bytes) : data_(std::move(data)), bytes_(bytes) {}
  const std::byte* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  // `bytes` bytes from byte `at` on.
  Image part(size_t at, size_t bytes) const { return {{data_, data_.get() + at}, bytes}; }

 private:
  std::shared_ptr<const std::byte> data_;
  size_t bytes_ = 0;
};

// `count` elements from element `first`, as by fill_bits, fill_input and fill_reduced.
Image image_of_bits(trestleDataType_t type, uint64_t seed, int rank, size_t first, size_t count);
Image image_of_input(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int rank, int ranks, size_t count);
Image image_of_result(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t first, size_t count);

// Without this call the latest images are remembered, for the other ranks of the same call. From now on all new ones
// are, up to this many bytes, until the next call of this function. For programs that need the same values thousands of
// times. No earlier image may be in use.
void keep_images(size_t most_bytes);

}  // namespace api
