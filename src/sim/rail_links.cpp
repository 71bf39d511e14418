// What goes over which rail.
#include "sim/rail_links.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

constexpr uint64_t kSocketBytes = 256 * 1024;  // that wait for a rail of a rank
constexpr double kMbpsPerBytePerNs = 8000;

uint64_t part_of(uint64_t ps, uint64_t mbps, uint64_t sum_mbps) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(ps) * mbps / sum_mbps);
}

// Copies the bytes at, at + 1, ... of a message.
void copy_part(std::span<const ConstPiece> from, std::span<const Piece> to, uint64_t at, uint64_t length) {
  PieceCursor<ConstPiece> source(from);
  PieceCursor<Piece> destination(to);
  source.advance(at);
  destination.advance(at);
  while (length > 0) {
    const uint64_t bytes = std::min<uint64_t>({length, source.rest().bytes, destination.rest().bytes});
    std::memcpy(destination.rest().data, source.rest().data, bytes);
    source.advance(bytes);
    destination.advance(bytes);
    length -= bytes;
  }
}

}  // namespace

SimRailLinks::SimRailLinks(SimNetwork& network)
    : network_(network),
      rails_(network.specs_.size()),
      sum_mbps_(network.specs_.size()),
      links_(network.links_.size()) {
  for (size_t d = 0; d < rails_.size(); ++d) {
    rails_[d].resize(network_.specs_[d].rails.size());
    for (const SimRail& rail : network_.specs_[d].rails) sum_mbps_[d] += rail.bandwidth_mbps;
  }
  for (size_t l = 0; l < links_.size(); ++l) {
    links_[l].outlets.resize(rails_[dimension_of(static_cast<uint32_t>(l))].size());
    links_[l].probes.resize(links_[l].outlets.size());
  }
  const std::vector<SimRailFault>& faults = network_.faults_.rails;
  for (uint32_t i = 0; i < faults.size(); ++i) {
    CHECK(faults[i].dimension < rails_.size() && faults[i].rail < rails_[faults[i].dimension].size(),
          "a fault of a rail that does not exist");
    CHECK(faults[i].change != SimRailChange::kRate || faults[i].rate_ppm > 0, "a rail of rate 0");
    schedule(faults[i].at_ns * kPsPerNs, Kind::kFault, i);
  }
}

void SimRailLinks::schedule(uint64_t time_ps, Kind kind, uint32_t what) {
  network_.events_.push({time_ps, network_.created_++, what, SimNetwork::Kind::kRail, static_cast<uint8_t>(kind)});
}

void SimRailLinks::wake(uint8_t dimension) {
  for (int32_t rank = 0; rank < network_.topology_.ranks(); ++rank)
    network_.let_choose(network_.link_index(rank, dimension));
}

uint64_t SimRailLinks::rate_mbps(uint8_t dimension, uint8_t rail) const {
  return std::max<uint64_t>(
      1, part_of(spec_of(dimension, rail).bandwidth_mbps, rails_[dimension][rail].rate_ppm, 1'000'000));
}

std::vector<SimRailCount> SimRailLinks::counts(uint8_t dimension) const {
  std::vector<SimRailCount> counts;
  for (const Rail& rail : rails_[dimension]) counts.push_back(rail.count);
  return counts;
}

// ---- shares

SimRailLinks::Peer& SimRailLinks::peer_of(uint32_t link, int32_t rank) {
  Peer& peer = links_[link].peers[rank];
  peer.ways.resize(rails_[dimension_of(link)].size());
  return peer;
}

void SimRailLinks::post(uint32_t link, const Waiting& waiting) {
  const SimMessage& message = network_.messages_[waiting.message];
  Peer& peer = peer_of(link, message.to);
  peer.waiting.push(waiting);
  peer.waiting_bytes += message.send->bytes;
}

RailLoad SimRailLinks::load_of(uint8_t dimension, const Peer& peer, uint8_t rail) const {
  if (rails_[dimension][rail].lost) return {};
  const SimRail& spec = spec_of(dimension, rail);
  const Goodput& goodput = peer.ways[rail].goodput;
  const double stated = spec.stated ? static_cast<double>(spec.bandwidth_mbps) / kMbpsPerBytePerNs : 0;
  return {goodput.rate() > 0 ? goodput.rate() : stated, static_cast<double>(goodput.round_trip_ns()),
          static_cast<double>(goodput.queued()), static_cast<double>(goodput.most_under_way())};
}

WaitingBytes SimRailLinks::waiting_of(const Peer& peer) {
  const bool again = !peer.again.empty();
  const uint32_t which = again ? peer.again.front().message : peer.waiting.top().message;
  const SimMessage& message = network_.messages_[which];
  const uint64_t left = again ? peer.again.front().length : message.send->bytes - message.taken;
  return {std::max<uint64_t>(1, left), message.send->bytes <= network_.specs_[message.dimension].whole_bytes,
          peer.waiting_bytes};
}

uint64_t SimRailLinks::may_take(uint8_t dimension, const Peer& peer, uint8_t rail) {
  if (peer.idle()) return 0;
  const WaitingBytes waiting = waiting_of(peer);
  const RailLoad load = load_of(dimension, peer, rail);
  if (window_is_full(load, waiting.front)) return 0;
  const std::vector<Rail>& rails = rails_[dimension];
  loads_.clear();
  for (size_t i = 0; i < rails.size(); ++i) loads_.push_back(load_of(dimension, peer, static_cast<uint8_t>(i)));
  const auto up = std::find_if(rails.begin(), rails.end(), [](const Rail& each) { return !each.lost; });
  assume_first(loads_, static_cast<size_t>(up - rails.begin()));
  return bytes_to_take(loads_, rail, window_bytes(load), waiting);
}

bool SimRailLinks::goes_before(const Peer& peer, const Peer& other) const {
  if (peer.again.empty() != other.again.empty()) return !peer.again.empty();
  if (peer.waiting.empty() || other.waiting.empty()) return !peer.waiting.empty();
  return other.waiting.top() > peer.waiting.top();
}

bool SimRailLinks::may_begin_row(uint32_t link, uint8_t rail, const Peer& peer) {
  const uint64_t bytes = peer.given_bytes - peer.ways[rail].probed_at + peer.waiting_bytes;
  return links_[link].probes[rail].begin_row(bytes, peer.ways[rail].unmeasured, now_ns());
}

// Whether the next fragment to the peer is a probe: one in a row of probes, or the first over a new connection.
bool SimRailLinks::owes_probe(uint32_t link, uint8_t rail, Peer& peer) {
  Way& way = peer.ways[rail];
  if (!way.owes_probe && way.unmeasured && (way.goodput.rate() > 0 || may_begin_row(link, rail, peer))) {
    way.unmeasured = false;
    way.owes_probe = way.goodput.rate() == 0;
  }
  return way.owes_probe;
}

// Probes a rail that carries no data to a peer while other rails do.
bool SimRailLinks::probe_idle(uint32_t link, uint8_t rail) {
  for (auto& [rank, peer] : links_[link].peers) {
    const Way& way = peer.ways[rail];
    if (way.unmeasured || way.goodput.queued() > 0) continue;
    if (peer.carried_ns - way.used_ns < way.probe_pause_ns || !may_begin_row(link, rail, peer)) continue;
    give(link, rail, peer, {0, 0, kProbeBytes}, true);
    return true;
  }
  return false;
}

// ---- output

void SimRailLinks::choose(uint32_t link) {
  const size_t rails = links_[link].outlets.size();
  for (bool any = true; any;) {
    any = false;
    for (size_t rail = 0; rail < rails; ++rail) any = feed(link, static_cast<uint8_t>(rail)) || any;
  }
}

// The oldest message of all peers goes first, as far as the rail should take it.
bool SimRailLinks::feed(uint32_t link, uint8_t rail) {
  const uint8_t dimension = dimension_of(link);
  if (rails_[dimension][rail].lost || links_[link].outlets[rail].backlog >= kSocketBytes) return false;
  Peer* best = nullptr;
  uint64_t bytes = 0;
  for (auto& [rank, peer] : links_[link].peers) {
    if (owes_probe(link, rail, peer)) {
      give(link, rail, peer, {0, 0, kProbeBytes}, true);
      return true;
    }
    if (best != nullptr && !goes_before(peer, *best)) continue;
    const uint64_t taken = may_take(dimension, peer, rail);
    if (taken == 0) continue;
    best = &peer;
    bytes = taken;
  }
  if (best == nullptr) return probe_idle(link, rail);
  give(link, rail, *best, take(dimension, *best, bytes), false);
  return true;
}

SimRailLinks::Part SimRailLinks::take(uint8_t dimension, Peer& peer, uint64_t most) {
  Part part;
  if (!peer.again.empty()) {
    Part& front = peer.again.front();
    part = {front.message, front.at, std::min(front.length, most)};
    front.at += part.length;
    front.length -= part.length;
    if (front.length == 0) peer.again.pop_front();
  } else {
    const uint32_t which = peer.waiting.top().message;
    SimMessage& message = network_.messages_[which];
    part = {which, message.taken, std::min(message.send->bytes - message.taken, most)};
    message.taken += part.length;
    if (message.taken == message.send->bytes) peer.waiting.pop();
    network_.bytes_sent_[dimension] += part.length;
    if (part.at == 0) ++network_.messages_sent_;
  }
  peer.waiting_bytes -= part.length;
  return part;
}

void SimRailLinks::give(uint32_t link, uint8_t rail, Peer& peer, const Part& part, bool probe) {
  const uint8_t dimension = dimension_of(link);
  Way& way = peer.ways[rail];
  const bool starved =
      is_starved(peer.waiting_bytes, way.goodput.queued() + part.length, load_of(dimension, peer, rail));
  const uint32_t which = new_fragment();
  Fragment& fragment = fragments_[which];
  fragment.part = part;
  fragment.link = link;
  fragment.rail = rail;
  fragment.probe = probe;
  fragment.peer = &peer;
  fragment.mark = way.goodput.send(part.length, now_ns(), starved);
  if (probe && !std::exchange(way.owes_probe, false)) way.probe_pause_ns = next_probe_pause_ns(way.probe_pause_ns);
  if (measures(part.length)) way.used_ns = now_ns();
  if (probe) {
    way.probed_at = peer.given_bytes;
  } else {
    peer.carried_ns = now_ns();
    peer.given_bytes += part.length;
  }
  links_[link].outlets[rail].backlog += part.length;
  rails_[dimension][rail].count.bytes += part.length;
  launch(which, true);
}

uint64_t SimRailLinks::left_ps(const Fragment& fragment, uint64_t start_ps) {
  const SimNetwork::Link& link = network_.links_[fragment.link];
  const uint64_t mbps = rate_mbps(dimension_of(fragment.link), fragment.rail);
  const Part& part = fragment.part;
  if (fragment.probe) return start_ps + part.length * kPsPerByteAtOneMbps / mbps * link.percent / 100;
  const SimMessage& message = network_.messages_[part.message];
  return network_.leave_ps(message, part.length,
                           start_ps + network_.link_ps(link, message, part.length, mbps, part.at == 0));
}

// The fragment goes behind everything that the rail of this rank has to send. free_ps is when a rail without a burst
// would be free.
void SimRailLinks::launch(uint32_t which, bool first) {
  Fragment& fragment = fragments_[which];
  const uint8_t dimension = dimension_of(fragment.link);
  const SimRail& spec = spec_of(dimension, fragment.rail);
  Outlet& outlet = links_[fragment.link].outlets[fragment.rail];
  const uint64_t start_ps = std::max(outlet.free_ps, now_ps());
  outlet.free_ps = left_ps(fragment, start_ps);
  const uint64_t busy_ps = outlet.free_ps - start_ps;
  rail_of(fragment).count.busy_ps += busy_ps;
  network_.busy_ps_[dimension] += part_of(busy_ps, spec.bandwidth_mbps, sum_mbps_[dimension]);
  const uint64_t ahead_ps = spec.burst_bytes * kPsPerByteAtOneMbps / rate_mbps(dimension, fragment.rail);
  const uint64_t leaves_ps = outlet.free_ps - std::min(ahead_ps, outlet.free_ps - now_ps());
  if (first) schedule(leaves_ps, Kind::kLeft, which);
  const uint64_t most_jitter_ns = network_.faults_.most_jitter_ns + spec.most_jitter_ns;
  const uint64_t jitter_ns = most_jitter_ns == 0 ? 0 : network_.rng_.below(most_jitter_ns + 1);
  outlet.arrival_ps = std::max(outlet.arrival_ps, leaves_ps + (spec.latency_ns + jitter_ns) * kPsPerNs);
  schedule(outlet.arrival_ps, Kind::kArrival, which);
}

void SimRailLinks::left(Fragment& fragment) {
  if (fragment.given_up) return;
  links_[fragment.link].outlets[fragment.rail].backlog -= fragment.part.length;
  network_.let_choose(fragment.link);
}

// ---- input

void SimRailLinks::arrive(uint32_t which) {
  Fragment& fragment = fragments_[which];
  if (fragment.given_up || network_.links_[fragment.link].dead) return release(which);
  Rail& rail = rail_of(fragment);
  if (rail.dead()) return rail.stalled.push_back(which);
  fragment.arrived = true;
  const uint64_t latency_ns = spec_of(dimension_of(fragment.link), fragment.rail).latency_ns;
  schedule(now_ps() + latency_ns * kPsPerNs, Kind::kAcknowledged, which);
  if (!fragment.probe) bring(fragment.part);
}

void SimRailLinks::bring(const Part& part) {
  SimMessage& message = network_.messages_[part.message];
  message.arrived += part.length;
  CHECK(message.arrived <= message.send->bytes, "a byte has arrived twice");
  if (network_.data_ && !message.recv->pieces.empty())
    copy_part(message.send->pieces, message.recv->pieces, part.at, part.length);
  if (message.arrived == message.send->bytes) network_.arrive(part.message, false);
}

void SimRailLinks::acknowledged(uint32_t which) {
  Fragment& fragment = fragments_[which];
  if (fragment.given_up) return release(which);
  Rail& rail = rail_of(fragment);
  if (rail.dead()) return rail.stalled.push_back(which);
  Way& way = fragment.peer->ways[fragment.rail];
  const double before = way.goodput.rate();
  way.goodput.deliver(fragment.mark);
  way.goodput.sample(fragment.mark, now_ns());
  if (way.goodput.rate() > 2 * before) way.probe_pause_ns = kFirstProbePauseNs;
  if (fragment.probe && fragment.mark.rides) way.owes_probe = true;
  network_.let_choose(fragment.link);
  release(which);
}

uint32_t SimRailLinks::new_fragment() {
  uint32_t which = static_cast<uint32_t>(fragments_.size());
  if (free_fragments_.empty()) {
    fragments_.emplace_back();
  } else {
    which = free_fragments_.back();
    free_fragments_.pop_back();
    fragments_[which] = {};
  }
  fragments_[which].used = true;
  fragments_[which].created = created_++;
  return which;
}

void SimRailLinks::release(uint32_t which) {
  fragments_[which].used = false;
  free_fragments_.push_back(which);
}

}  // namespace trestle
