// Footprint: the memory that a Work reads and writes, as a few ranges of addresses. Two works whose footprints do not
// conflict may happen in any order. The ranges may cover more than the work touches, never less. A value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/work/work.h"

namespace trestle {

// Ranges of addresses. When there are too many, a new one joins the one that is closest to it.
class AddressRanges {
 public:
  void add(const void* data, uint64_t bytes);
  bool meets(const AddressRanges& other) const;

 private:
  struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  static constexpr size_t kMost = 6;

  void join(size_t into, const Range& range);

  std::array<Range, kMost> ranges_;
  size_t count_ = 0;
};

class Footprint {
 public:
  Footprint() = default;
  // Its lists are read here, and not kept.
  explicit Footprint(const Work& work);

  // Whether one of the two writes what the other one reads or writes.
  bool conflicts_with(const Footprint& other) const {
    return written_.meets(other.written_) || written_.meets(other.read_) || read_.meets(other.written_);
  }

 private:
  AddressRanges written_;
  AddressRanges read_;
};

}  // namespace trestle
