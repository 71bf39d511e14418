#include "transport/message/shares.h"

#include <algorithm>
#include <limits>

namespace trestle {

// With the rails in the order in which they can begin: the moment for the first k of them is right as soon as the next
// rail would begin later.
double finish_ns(std::span<const RailLoad> rails, double bytes) {
  double rates = 0;
  double filled = bytes;  // and what the rails would have carried from time 0 on until they begin
  double begun = -1;
  size_t ties = 0;  // rails taken that begin exactly at `begun`
  for (double finish = std::numeric_limits<double>::infinity();;) {
    const RailLoad* next = nullptr;
    size_t seen = 0;
    for (const RailLoad& rail : rails) {
      if (rail.rate <= 0 || rail.begin_ns() < begun) continue;
      if (rail.begin_ns() == begun && seen++ < ties) continue;
      if (next == nullptr || rail.begin_ns() < next->begin_ns()) next = &rail;
    }
    if (next == nullptr || next->begin_ns() >= finish) return finish;
    ties = next->begin_ns() == begun ? ties + 1 : 1;
    begun = next->begin_ns();
    rates += next->rate;
    filled += next->rate * begun;
    finish = filled / rates;
  }
}

double share_until(const RailLoad& rail, double finish_ns) {
  return rail.rate <= 0 ? 0 : std::max(0.0, (finish_ns - rail.begin_ns()) * rail.rate);
}

size_t fastest_rail(std::span<const RailLoad> rails, double bytes) {
  size_t best = rails.size();
  double soonest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < rails.size(); ++i) {
    if (rails[i].rate <= 0) continue;
    const double arrival = rails[i].begin_ns() + bytes / rails[i].rate;
    if (arrival < soonest) {
      soonest = arrival;
      best = i;
    }
  }
  return best;
}

}  // namespace trestle
