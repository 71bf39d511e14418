#include "transport/message/rail_choice.h"

namespace trestle {
namespace {

constexpr double kFragmentNs = 7e5;  // of a fragment's time on its rail
constexpr double kCoarseNs = 2e6;    // on a slow rail, where that is too little to be worth a header
constexpr double kWorthBytes = 32 * 1024;
constexpr double kHoldNs = 1e6;
constexpr uint64_t kLeastHoldBytes = 16 * 1024;
// Of data under way, beyond two round trips. When two ranks exchange data, an acknowledgement waits in the network
// behind the data of its own direction, so that both directions together fill one window. Switches queue some 10 ms.
// With 8 ms one direction ran dry whenever the other one's queue held that much. Then its goodput was measured too low
// and its window shrank with it: two hosts with 200 + 100 Mbit/s lost 7 %, in some runs a quarter.
constexpr double kAheadNs = 20e6;

}  // namespace

uint64_t window_bytes(const RailLoad& rail) {
  const double ahead = rail.rate * (2 * rail.latency_ns + kAheadNs);
  return static_cast<uint64_t>(std::min(std::max(4.0 * kLeastFragmentBytes, ahead), rail.most));
}

bool is_starved(uint64_t waiting, uint64_t under_way, const RailLoad& rail) {
  const bool slow_start = rail.most < 2 * rail.rate * rail.latency_ns;
  return slow_start || (waiting == 0 && under_way < window_bytes(rail) / 2);
}

bool window_is_full(const RailLoad& rail, uint64_t front) {
  const auto queued = static_cast<uint64_t>(rail.queued);
  return queued > 0 && queued + std::min(front, kLeastFragmentBytes) > window_bytes(rail);
}

uint64_t bytes_to_hold(double rate) {
  return rate > 0 ? std::max(kLeastHoldBytes, static_cast<uint64_t>(rate * kHoldNs)) : 0;
}

void assume_first(std::span<RailLoad> loads, size_t first_up) {
  if (first_up == loads.size()) return;
  if (std::none_of(loads.begin(), loads.end(), [](const RailLoad& rail) { return rail.rate > 0; }))
    loads[first_up].rate = 1;
}

uint64_t bytes_to_take(std::span<const RailLoad> loads, size_t rail, uint64_t window, const WaitingBytes& waiting) {
  const uint64_t front = waiting.front;
  const uint64_t together = waiting.front_is_whole ? front : std::min(front, kLeastFragmentBytes);
  const size_t best = fastest_rail(loads, static_cast<double>(together));
  if (waiting.front_is_whole) return best == rail ? front : 0;
  const auto all = static_cast<double>(std::max(front, waiting.all));
  const auto share = static_cast<uint64_t>(share_until(loads[rail], finish_ns(loads, all)));
  // A fragment that takes long cannot be taken back. It must come in time at half the rate, too.
  const bool coarse = loads[rail].rate * kCoarseNs < kLeastFragmentBytes;
  if (share < (coarse ? 2 : 1) * kLeastFragmentBytes) return best == rail ? together : 0;
  // Fragments become shorter towards the end, so that a wrong estimate matters less.
  const auto queued = static_cast<uint64_t>(loads[rail].queued);
  const double rate = loads[rail].rate;
  const auto timely = static_cast<uint64_t>(std::max(rate * kFragmentNs, std::min(rate * kCoarseNs, kWorthBytes)));
  uint64_t length = share <= 2 * kLeastFragmentBytes ? share : std::max(kLeastFragmentBytes, share / 2);
  length = std::min(length, std::clamp(timely, kLeastFragmentBytes, kMostFragmentBytes));
  length = std::min(length, std::max(kLeastFragmentBytes, window - std::min(window, queued)));
  return std::min(front, length);
}

}  // namespace trestle
