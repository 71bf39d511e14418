#include "transport/message/goodput.h"

#include <algorithm>

namespace trestle {
namespace {

constexpr double kGain = 0.125;  // of a new sample
constexpr int64_t kRoundTripKeptNs = 10'000'000'000;

}  // namespace

Goodput::Mark Goodput::send(uint64_t bytes, int64_t now_ns, bool starved) {
  if (queued_ == 0) first_sent_ns_ = delivered_ns_ = now_ns;
  queued_ += bytes;
  return {bytes, delivered_, delivered_ns_, first_sent_ns_, now_ns, starved};
}

void Goodput::deliver(const Mark& mark) {
  queued_ -= std::min(queued_, mark.bytes);
  delivered_ += mark.bytes;
}

void Goodput::sample(const Mark& mark, int64_t now_ns) {
  delivered_ns_ = now_ns;
  first_sent_ns_ = mark.sent_ns;
  const int64_t round_trip = std::max<int64_t>(1, now_ns - mark.sent_ns);
  const bool old = now_ns - round_trip_seen_ns_ > kRoundTripKeptNs;
  if (round_trip_ns_ == 0 || old || round_trip <= round_trip_ns_) {
    round_trip_ns_ = round_trip;
    round_trip_seen_ns_ = now_ns;
  }
  const int64_t sending = mark.sent_ns - mark.first_sent_ns;
  const int64_t acknowledging = now_ns - mark.delivered_ns;
  const double interval = static_cast<double>(std::max<int64_t>({sending, acknowledging, 1}));
  const double sample = static_cast<double>(delivered_ - mark.delivered) / interval;
  if (rate_ == 0) {
    rate_ = sample;
  } else if (!mark.starved) {
    rate_ += kGain * (sample - rate_);
  } else {
    rate_ = std::max(rate_, sample);
  }
}

}  // namespace trestle
