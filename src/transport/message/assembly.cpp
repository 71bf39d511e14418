#include "transport/message/assembly.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {
namespace {

constexpr size_t kMostRanges = 4096;  // honest fragments leave few gaps

}  // namespace

void Assembly::reset() {
  claimed_.clear();
  arrived_ = 0;
  buffer = nullptr;
}

bool Assembly::claim(uint64_t at, uint64_t length, uint64_t bytes) {
  if (length == 0 || at > bytes || length > bytes - at || claimed_.size() >= kMostRanges) return false;
  const Range added{at, at + length};
  // The first range that ends at or behind the new one's beginning.
  const auto next = std::lower_bound(claimed_.begin(), claimed_.end(), added.from,
                                     [](const Range& range, uint64_t from) { return range.to < from; });
  const bool touches = next != claimed_.end() && next->to == added.from;
  const auto behind = touches ? next + 1 : next;
  if (behind != claimed_.end() && behind->from < added.to) return false;
  const bool reaches = behind != claimed_.end() && behind->from == added.to;
  if (touches && reaches) {
    next->to = behind->to;
    claimed_.erase(behind);
  } else if (touches) {
    next->to = added.to;
  } else if (reaches) {
    behind->from = added.from;
  } else {
    claimed_.insert(next, added);
  }
  return true;
}

void Assembly::give_up(uint64_t at, uint64_t length) {
  const auto holder = std::find_if(claimed_.begin(), claimed_.end(),
                                   [&](const Range& range) { return range.from <= at && at + length <= range.to; });
  CHECK(holder != claimed_.end(), "a fragment is given up that was not claimed");
  const Range before{holder->from, at};
  const Range after{at + length, holder->to};
  const auto place = claimed_.erase(holder);
  const auto second = after.from < after.to ? claimed_.insert(place, after) : place;
  if (before.from < before.to) claimed_.insert(second, before);
}

}  // namespace trestle
