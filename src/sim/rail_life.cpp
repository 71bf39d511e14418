// What happens to rails: faults, what ranks notice of them, and how rails come back.
#include <algorithm>
#include <utility>

#include "base/text/value_text.h"
#include "sim/rail_links.h"

namespace trestle {
namespace {

constexpr uint64_t kHandshakeLatencies = 3;  // until both sides use a new connection

}  // namespace

void SimRailLinks::happen(uint8_t kind, uint32_t what) {
  const auto dimension = static_cast<uint8_t>(what / 256);
  const auto rail = static_cast<uint8_t>(what % 256);
  switch (static_cast<Kind>(kind)) {
    case Kind::kLeft:
      return left(fragments_[what]);
    case Kind::kArrival:
      return arrive(what);
    case Kind::kAcknowledged:
      return acknowledged(what);
    case Kind::kFault:
      return change(network_.faults_.rails[what]);
    case Kind::kNoticed:
      if (rails_[dimension][rail].noticed_ps == now_ps()) lose(dimension, rail);
      return;
    case Kind::kConnected:
      if (rails_[dimension][rail].connected_ps == now_ps()) connect(dimension, rail);
      return;
  }
}

void SimRailLinks::change(const SimRailFault& fault) {
  Rail& rail = rails_[fault.dimension][fault.rail];
  const bool was_dead = rail.dead();
  switch (fault.change) {
    case SimRailChange::kDown:
      rail.down = true;
      if (!was_dead) die(fault.dimension, fault.rail, kLookAtRailsNs);
      return;
    case SimRailChange::kDrop:
      rail.drops = true;
      if (!was_dead) die(fault.dimension, fault.rail, network_.faults_.rail_silence_ns);
      return;
    case SimRailChange::kUp:
      rail.down = false;
      break;
    case SimRailChange::kPass:
      rail.drops = false;
      break;
    case SimRailChange::kRate:
      rail.rate_ppm = fault.rate_ppm;
      return;
  }
  if (was_dead && !rail.dead()) heal(fault.dimension, fault.rail);
}

void SimRailLinks::die(uint8_t dimension, uint8_t number, int64_t noticed_after_ns) {
  Rail& rail = rails_[dimension][number];
  rail.died_ps = now_ps();
  rail.connected_ps = 0;
  if (rail.lost) return;
  rail.noticed_ps = now_ps() + static_cast<uint64_t>(noticed_after_ns) * kPsPerNs;
  schedule(rail.noticed_ps, Kind::kNoticed, rail_number(dimension, number));
}

void SimRailLinks::heal(uint8_t dimension, uint8_t number) {
  Rail& rail = rails_[dimension][number];
  const uint64_t latency_ps = spec_of(dimension, number).latency_ns * kPsPerNs;
  rail.noticed_ps = 0;
  if (!rail.lost) {
    for (const uint32_t which : std::exchange(rail.stalled, {})) {
      if (fragments_[which].arrived) {
        schedule(now_ps() + latency_ps, Kind::kAcknowledged, which);
      } else {
        launch(which, false);
      }
    }
    return;
  }
  int64_t backoff_ns = kFirstRailBackoffNs;
  uint64_t attempt_ps = rail.lost_ps + static_cast<uint64_t>(backoff_ns) * kPsPerNs;
  while (attempt_ps < now_ps()) {
    backoff_ns = next_rail_backoff_ns(backoff_ns);
    attempt_ps += static_cast<uint64_t>(backoff_ns) * kPsPerNs;
  }
  rail.connected_ps = attempt_ps + kHandshakeLatencies * latency_ps;
  schedule(rail.connected_ps, Kind::kConnected, rail_number(dimension, number));
}

void SimRailLinks::lose(uint8_t dimension, uint8_t number) {
  Rail& rail = rails_[dimension][number];
  rail.lost = true;
  rail.lost_ps = now_ps();
  rail.noticed_ps = 0;
  ++rail.count.losses;
  give_up(dimension, number);
  const auto lost = [](const Rail& each) { return each.lost; };
  if (std::all_of(rails_[dimension].begin(), rails_[dimension].end(), lost)) network_.fail(last_lost(dimension));
  wake(dimension);
}

// Both ends know what has arrived over the rail. The rest goes over others.
void SimRailLinks::give_up(uint8_t dimension, uint8_t number) {
  Rail& rail = rails_[dimension][number];
  std::vector<Fragment*> ended;
  for (Fragment& fragment : fragments_) {
    const bool here = dimension_of(fragment.link) == dimension && fragment.rail == number;
    if (fragment.used && !fragment.given_up && here) ended.push_back(&fragment);
  }
  std::sort(ended.begin(), ended.end(), [](const Fragment* a, const Fragment* b) { return a->created < b->created; });
  for (Fragment* const fragment : ended) {
    fragment->given_up = true;
    if (fragment->arrived || fragment->probe) continue;
    fragment->peer->again.push_back(fragment->part);
    fragment->peer->waiting_bytes += fragment->part.length;
    rail.count.again_bytes += fragment->part.length;
  }
  for (const uint32_t which : std::exchange(rail.stalled, {})) release(which);
  for (int32_t rank = 0; rank < network_.topology_.ranks(); ++rank) {
    Link& link = links_[network_.link_index(rank, dimension)];
    link.outlets[number] = {};
    for (auto& [to, peer] : link.peers) peer.ways[number].goodput.forget_under_way();
  }
}

void SimRailLinks::connect(uint8_t dimension, uint8_t number) {
  Rail& rail = rails_[dimension][number];
  rail.lost = false;
  rail.connected_ps = 0;
  for (int32_t rank = 0; rank < network_.topology_.ranks(); ++rank) {
    for (auto& [to, peer] : links_[network_.link_index(rank, dimension)].peers) {
      const uint64_t probed_at = peer.ways[number].probed_at;
      peer.ways[number] = {Goodput{}, now_ns()};
      peer.ways[number].probed_at = probed_at;
    }
  }
  wake(dimension);
}

Error SimRailLinks::last_lost(uint8_t dimension) const {
  std::string text = "dimension " + std::to_string(dimension + 1) + " has no rail left:";
  for (size_t i = 0; i < rails_[dimension].size(); ++i) {
    const Rail& rail = rails_[dimension][i];
    text += (i == 0 ? " " : ", ") + spec_of(dimension, static_cast<uint8_t>(i)).name +
            (rail.down ? " is down" : " loses everything") + " since " +
            duration_text(static_cast<int64_t>(rail.died_ps / kPsPerNs));
  }
  // Not a remote error: its cause comes over the control mesh, and the simulation has none.
  return Error{Code::kSystemError, text};
}

}  // namespace trestle
