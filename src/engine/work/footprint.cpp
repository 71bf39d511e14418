#include "engine/work/footprint.h"

#include <algorithm>

namespace trestle {

void AddressRanges::add(const void* data, uint64_t bytes) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const Range range{begin, begin + bytes};
  const auto gap = [&range](const Range& other) {
    if (other.end < range.begin) return range.begin - other.end;
    return range.end < other.begin ? other.begin - range.end : 0;
  };
  const auto end = ranges_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto closest =
      std::min_element(ranges_.begin(), end, [&](const Range& a, const Range& b) { return gap(a) < gap(b); });
  if (closest == end || (gap(*closest) > 0 && count_ < kMost)) {
    ranges_[count_++] = range;
    return;
  }
  join(static_cast<size_t>(closest - ranges_.begin()), range);
}

void AddressRanges::join(size_t into, const Range& range) {
  ranges_[into].begin = std::min(ranges_[into].begin, range.begin);
  ranges_[into].end = std::max(ranges_[into].end, range.end);
}

bool AddressRanges::meets(const AddressRanges& other) const {
  for (size_t i = 0; i < count_; ++i) {
    for (size_t j = 0; j < other.count_; ++j) {
      if (ranges_[i].begin < other.ranges_[j].end && other.ranges_[j].begin < ranges_[i].end) return true;
    }
  }
  return false;
}

Footprint::Footprint(const Work& work) {
  for (const Piece& piece : work.destination) written_.add(piece.data, piece.bytes);
  for (const std::span<const ConstPiece>& source : work.sources) {
    for (const ConstPiece& piece : source) read_.add(piece.data, piece.bytes);
  }
}

}  // namespace trestle
