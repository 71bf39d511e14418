// The startup time and the time per byte of a communicator's links, from the times of its messages. A value, one
// thread.
//
// A message of which the model says s startups and b bytes takes s alpha + b beta (compress/choice.h). The estimate
// minimises the squares of the relative errors over all messages, so that small ones count as much as large ones. Each
// message makes all before it count less, so the estimate follows links that change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/choice.h"

namespace trestle {

struct LinkCost {
  double startup_s = 0;   // alpha
  double per_byte_s = 0;  // beta
};

// What one message was, in units of alpha and beta, and how long it took.
struct TimedMessage {
  double startups = 0;
  double bytes = 0;
  double seconds = 0;
};

// A whole exchange as in Table I (compress/choice.h), in which each rank sends `elements` values of value_bytes each.
// with_norms: adds the all-gather of one double per rank that AR-Topk's VAR needs.
TimedMessage timed_exchange(SparseCollective collective, double elements, uint32_t workers, double seconds,
                            size_t value_bytes = sizeof(float));
TimedMessage with_norms(TimedMessage message, uint32_t workers);

class LinkEstimate {
 public:
  // keep: the part of its weight that an older message keeps when one is added.
  explicit LinkEstimate(double keep = 0.98) : keep_(keep) {}

  // Messages without startups or in no time are left out.
  void add(const TimedMessage& message);
  // Neither is negative. Messages of one shape (bytes per startup) cannot tell the two apart: then both change by the
  // same factor. Zeros before the first message.
  LinkCost cost() const { return cost_; }

 private:
  void solve();

  double keep_;
  // Of the normal equations, with x = startups / seconds and y = bytes / seconds: x alpha + y beta = 1.
  double xx_ = 0, xy_ = 0, yy_ = 0, x_ = 0, y_ = 0;
  LinkCost cost_;
};

}  // namespace trestle
