// StoreChoice: decides by measurement whether a sender copies into big slots through its caches or past them.
//
// Value type, one thread. Through the caches is right while both processes share a last-level cache: the receiver then
// reads the slot from there. Where they do not, every line of a slot that the receiver has read must first be fetched
// back from the other cache, and copying past the caches is several times faster. The case can change while a program
// runs (the scheduler moves it), so both ways are tried again now and then. Only the shortest time of a few slots
// counts: interruptions make times longer, never shorter. The choice affects only speed, and only this rank.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trestle {

class StoreChoice {
 public:
  // The way for the next slot.
  bool streaming() const { return trying_ ? !streaming_ : streaming_; }
  // How long a full slot took with streaming().
  void took(int64_t ns) {
    int64_t& best = best_ns_[streaming() ? 1 : 0];
    best = std::min(best, ns);
    if (--left_ != 0) return;
    trying_ = !trying_;
    left_ = trying_ ? kTrial : kRound;
    if (trying_) return;
    // Copying past the caches costs the receiver a read from memory, so it must be clearly faster.
    streaming_ = best_ns_[0] > best_ns_[1] + best_ns_[1] / 2;
    best_ns_[0] = best_ns_[1] = INT64_MAX / 2;
  }

 private:
  static constexpr uint32_t kTrial = 6;
  static constexpr uint32_t kRound = 250;

  bool streaming_ = false;
  bool trying_ = false;
  uint32_t left_ = 16;  // the first round is short
  int64_t best_ns_[2] = {INT64_MAX / 2, INT64_MAX / 2};
};

}  // namespace trestle
