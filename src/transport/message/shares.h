// Which rail carries how much of what waits, so that all rails end at the same time. Pure functions, any thread.
//
// A rail with a latency l, a rate r and q bytes under way could deliver something new from l + q / r on, unless what is
// under way is late. The rails that help are filled like communicating vessels (water filling: Boyd and Vandenberghe,
// Convex Optimization, section 5.5.3): there is one moment at which all of them end, and rails that could only begin
// later get nothing.
//
// Bytes and nanoseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace trestle {

struct RailLoad {
  double rate = 0;  // bytes per nanosecond; 0: the rail cannot be used
  double latency_ns = 0;
  double queued = 0;                                      // bytes under way
  double most = std::numeric_limits<double>::infinity();  // bytes that may be under way (Goodput::most_under_way)
  double late_ns = 0;  // how long the oldest of the bytes under way has been so: new ones come behind it
  double begin_ns() const { return std::max(latency_ns + queued / rate, late_ns); }
};

// From now until `bytes` more are delivered by all rails together. At least one rail can be used.
double finish_ns(std::span<const RailLoad> rails, double bytes);
// What the rail delivers of them until then.
double share_until(const RailLoad& rail, double finish_ns);
// The rail over which `bytes` that stay together arrive first; rails.size(): none can be used.
size_t fastest_rail(std::span<const RailLoad> rails, double bytes);

}  // namespace trestle
