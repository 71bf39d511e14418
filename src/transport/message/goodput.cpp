#include "transport/message/goodput.h"

#include <algorithm>
#include <utility>

namespace trestle {
namespace {

constexpr double kGain = 0.125;      // of a new sample
constexpr double kUnsureGain = 0.5;  // of one before the estimate is confirmed
constexpr int64_t kRoundTripKeptNs = 10'000'000'000;
constexpr double kMattersNs = 8e6;            // a bucket that lasts less than this delays little
constexpr uint64_t kLeastSampleBytes = 4096;  // fewer measure the round trip alone

}  // namespace

Goodput::Mark Goodput::send(uint64_t bytes, int64_t now_ns, bool starved) {
  if (queued_ == 0) {
    // A bucket fills at the rail's rate. While the rate is unknown, the bucket is full at the beginning and does not
    // fill again. A fragment that follows an acknowledgement at once, as in a row of probes, follows no pause.
    const int64_t pause_ns = now_ns - delivered_ns_;
    if (pause_ns > round_trip_ns_) {
      const double filled = std::min(rate_ * static_cast<double>(pause_ns), static_cast<double>(burst_));
      rides_left_ = std::min(burst_, rides_left_ + static_cast<uint64_t>(filled));
    }
    first_sent_ns_ = delivered_ns_ = now_ns;
  }
  queued_ += bytes;
  const bool rides = rides_left_ > 0 && rides_left_ >= bytes / 2;
  rides_left_ -= std::min(rides_left_, bytes);
  return {bytes, delivered_, rode_, delivered_ns_, first_sent_ns_, now_ns, starved, rides};
}

void Goodput::deliver(const Mark& mark) {
  queued_ -= std::min(queued_, mark.bytes);
  delivered_ += mark.bytes;
  if (mark.rides) rode_ += mark.bytes;
}

void Goodput::measure_round_trip(const Mark& mark, int64_t now_ns) {
  const int64_t round_trip = std::max<int64_t>(1, now_ns - mark.sent_ns);
  const bool old = now_ns - round_trip_seen_ns_ > kRoundTripKeptNs;
  if (round_trip_ns_ == 0 || old || round_trip <= round_trip_ns_) {
    round_trip_ns_ = round_trip;
    round_trip_seen_ns_ = now_ns;
  }
}

void Goodput::sample(const Mark& mark, int64_t now_ns) {
  delivered_ns_ = now_ns;
  first_sent_ns_ = mark.sent_ns;
  measure_round_trip(mark, now_ns);
  const uint64_t round = delivered_ - mark.delivered;
  if (round < kLeastSampleBytes) return;
  const int64_t sending = mark.sent_ns - mark.first_sent_ns;
  const int64_t acknowledging = now_ns - mark.delivered_ns;
  const double interval = static_cast<double>(std::max<int64_t>({sending, acknowledging, 1}));
  const double all = static_cast<double>(round) / interval;
  // How much a bucket gains while little is sent is known only roughly. So a sample of a rail with too little to do
  // counts only if it has kLeastBurstBytes that did not ride.
  const uint64_t shown = round - (rode_ - mark.rode);
  const double lasting = mark.starved && shown < kLeastBurstBytes ? 0 : static_cast<double>(shown) / interval;
  // Before correct(), which takes back what a wrong estimate has allowed.
  const uint64_t kept = mark.starved ? most_under_way_ : most_under_way_ - most_under_way_ / 8;
  most_under_way_ = std::max({kLeastBurstBytes, 2 * round, kept});
  const bool confirmed = mark.delivered >= confirmed_at_;
  if (confirmed && std::exchange(doubtful_, false)) burst_ = kLeastBurstBytes;
  if (lasting > rate_) {
    raise(lasting, mark.starved, confirmed);
  } else if (all < rate_ / 2 && !confirmed && is_late(round, interval)) {
    correct(all);
  } else if (all < rate_ && !mark.starved) {
    rate_ += (confirmed ? kGain : kUnsureGain) * (all - rate_);
  }
}

// Even a rail with too little to do should have been much faster.
bool Goodput::is_late(uint64_t bytes, double interval_ns) const {
  const double expected = static_cast<double>(round_trip_ns_) + static_cast<double>(bytes) / rate_;
  return interval_ns > kMattersNs && interval_ns > 2 * expected;
}

void Goodput::raise(double sample, bool starved, bool confirmed) {
  const double before = rate_;
  rate_ = starved || rate_ == 0 ? sample : rate_ + (confirmed ? kGain : kUnsureGain) * (sample - rate_);
  if (sample <= 2 * before) return;
  confirmed_at_ = delivered_ + static_cast<uint64_t>(rate_ * kMattersNs) + kLeastBurstBytes;
  doubtful_ = true;
}

// The estimate was wrong from the beginning: a larger bucket let pass the bytes that it was measured with.
void Goodput::correct(double sample) {
  burst_ = std::min(2 * burst_, kMostBurstBytes);
  most_under_way_ = kLeastBurstBytes;
  confirmed_at_ = delivered_;
  doubtful_ = false;
  rate_ = sample;
}

}  // namespace trestle
