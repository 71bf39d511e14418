#include "gradient/deft/select.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace trestle {
namespace {

// The sums that subsets reach, one bit each, and for each sum the candidate with which it was first reached.
class ReachableSums {
 public:
  explicit ReachableSums(uint64_t limit) : words_(limit / 64 + 1, 0), first_(limit + 1, 0) { words_[0] = 1; }

  // Adds `comm` to all sums so far, where the result is at most `room`.
  void add(uint16_t candidate, uint64_t comm, uint64_t room) {
    if (comm == 0 || comm > room) return;
    const uint64_t whole = comm / 64;
    const uint64_t bits = comm % 64;
    // From the top, so that each word is read before it changes.
    for (uint64_t word = room / 64 + 1; word-- > whole;) {
      uint64_t moved = words_[word - whole] << bits;
      if (bits != 0 && word > whole) moved |= words_[word - whole - 1] >> (64 - bits);
      if (word == room / 64 && room % 64 != 63) moved &= (uint64_t{2} << room % 64) - 1;
      uint64_t fresh = moved & ~words_[word];
      words_[word] |= moved;
      for (; fresh != 0; fresh &= fresh - 1) {
        first_[word * 64 + static_cast<uint64_t>(std::countr_zero(fresh))] = candidate;
      }
    }
  }

  uint64_t largest() const {
    for (size_t word = words_.size(); word-- > 0;) {
      if (words_[word] != 0) return word * 64 + 63 - static_cast<uint64_t>(std::countl_zero(words_[word]));
    }
    return 0;
  }

  uint16_t first(uint64_t sum) const { return first_[sum]; }

 private:
  std::vector<uint64_t> words_;
  std::vector<uint16_t> first_;
};

}  // namespace

std::vector<uint32_t> deft_select_one(std::span<const DeftCandidate> candidates, uint64_t capacity_us) {
  static_assert(kMostDeftItems <= 65536, "a candidate's number has sixteen bits");
  uint64_t all = 0;
  for (const DeftCandidate& candidate : candidates) all += candidate.comm_us;
  const uint64_t limit = std::min(all, capacity_us);
  ReachableSums sums(limit);
  for (size_t i = 0; i < candidates.size(); ++i) {
    sums.add(static_cast<uint16_t>(i), candidates[i].comm_us, std::min(limit, candidates[i].room_us));
  }
  // What is left of a sum without its candidate was reached before that candidate, so each is used once.
  std::vector<uint32_t> chosen;
  for (uint64_t sum = sums.largest(); sum > 0; sum -= candidates[chosen.back()].comm_us) {
    chosen.push_back(sums.first(sum));
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

DeftSends deft_select(const DeftSystem& system, std::span<const DeftItem> items, std::span<const uint64_t> left_us) {
  std::vector<uint32_t> links(system.links.size());
  std::iota(links.begin(), links.end(), 0);
  std::stable_sort(links.begin(), links.end(), [&](uint32_t a, uint32_t b) {
    return system.links[a].slowdown_permille > system.links[b].slowdown_permille;
  });
  std::vector<uint32_t> ids(items.size());
  std::iota(ids.begin(), ids.end(), 0);
  DeftSends sends(links.size());
  for (const uint32_t link : links) {
    std::vector<DeftCandidate> candidates;
    for (const uint32_t id : ids) {
      const uint64_t room = room_us(system.buckets, items[id].bucket);
      candidates.push_back({items[id].comm_us, system.links[link].carries_us(room)});
    }
    for (const uint32_t position : deft_select_one(candidates, left_us[link])) sends[link].push_back(ids[position]);
    std::erase_if(ids, [&](uint32_t id) {
      return std::binary_search(sends[link].begin(), sends[link].end(), id);  // ascending
    });
    std::reverse(sends[link].begin(), sends[link].end());
  }
  return sends;
}

}  // namespace trestle
