#include "engine/work/host_shares.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace trestle {

namespace {

// A part of the longest messages is a unit.
constexpr uint64_t kParts = 64;
constexpr uint64_t kMostParts = kParts / 4;
// Between probes of a path that gets nothing else: messages, and the time by which the last one delayed its message, so
// many times. That doubles with each probe in vain, until less than 1 % is lost by probes.
constexpr uint64_t kMessagesPerProbe = 64;
constexpr int64_t kLeastDelaysPerProbe = 16;
constexpr int64_t kMostDelaysPerProbe = 128;
// A part that is early or late by less than this share of its message's time is in time.
constexpr int64_t kInTime = 16;

// When each part was on its way, by CLOCK_MONOTONIC.
void log_parts(int32_t peer, const HostShares::Sent& sent, int64_t direct_ns, int64_t host_ns) {
  const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  LOG(kTrace, kP2p,
      "to rank %d: %llu bytes in the device's memory from %.1f to %.1f us, %llu in the host's from %.1f to %.1f us",
      peer, static_cast<unsigned long long>(sent.direct.bytes), us(sent.direct.sent_ns), us(direct_ns),
      static_cast<unsigned long long>(sent.host.bytes), us(sent.host.sent_ns), us(host_ns));
}

}  // namespace

HostShares::HostShares(const PeerPaths& paths, int32_t ranks, int64_t now_ns) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (!paths.divides(rank)) continue;
    Peer peer{Path(book_, rank, "peer memory", now_ns), Path(book_, rank, "host memory", now_ns)};
    peer.delays_per_probe = kLeastDelaysPerProbe;
    peers_.emplace(rank, peer);
  }
}

uint64_t HostShares::bytes_through_host(int32_t peer, uint64_t bytes, int64_t now_ns) const {
  const Peer& to = peers_.at(peer);
  if (bytes < kLeastDividedBytes) return 0;
  if (to.parts > 0) {
    const uint64_t part = bytes / kParts * to.parts / kDividedUnitBytes * kDividedUnitBytes;
    return std::clamp(part, kDividedUnitBytes, most_through_host(bytes));
  }
  const bool probes = to.until_probe == 0 && now_ns >= to.no_probe_before_ns && to.host.goodput.queued() == 0;
  return probes ? kDividedUnitBytes : 0;
}

Goodput::Mark HostShares::send(Path& path, uint64_t bytes, int64_t now_ns) {
  const bool starved = path.goodput.queued() == 0;  // it could have carried more
  const Goodput::Mark mark = path.goodput.send(bytes, now_ns, starved);
  path.record.sent(bytes);
  path.record.load(path.goodput.queued(), path.goodput.rate() * 1e9);
  return mark;
}

Goodput::Mark HostShares::send_through_host(int32_t peer, uint64_t bytes, int64_t now_ns) {
  Peer& to = peers_.at(peer);
  to.until_probe = kMessagesPerProbe + 1;
  return send(to.host, bytes, now_ns);
}

Goodput::Mark HostShares::send_directly(int32_t peer, uint64_t bytes, int64_t now_ns) {
  Peer& to = peers_.at(peer);
  ++to.under_way;
  to.until_probe -= to.until_probe > 0 ? 1 : 0;
  return send(to.direct, bytes, now_ns);
}

void HostShares::read_part(Path& path, const Goodput::Mark& mark, int64_t at_ns) {
  if (mark.bytes == 0) return;
  path.read_ns = std::max(path.read_ns, at_ns);
  path.goodput.deliver(mark);
  path.goodput.sample(mark, path.read_ns);
  path.record.acknowledged(mark.bytes);
  path.record.load(path.goodput.queued(), path.goodput.rate() * 1e9);
}

void HostShares::read(int32_t peer, const Sent& sent, const ReadTimes& times, int64_t now_ns) {
  Peer& from = peers_.at(peer);
  const int64_t direct_ns = times.device_ns != 0 ? std::min(times.device_ns, now_ns) : now_ns;
  const int64_t host_ns = times.host_ns != 0 ? std::min(times.host_ns, now_ns) : now_ns;
  Sent shown = sent;
  const bool divided = sent.host.bytes > 0;
  if (divided) {
    log_parts(peer, sent, direct_ns, host_ns);
    // The part that arrived first shows no bound of its path.
    shown.direct.starved = direct_ns < host_ns;
    shown.host.starved = !shown.direct.starved;
  }
  read_part(from.direct, shown.direct, direct_ns);
  read_part(from.host, shown.host, host_ns);
  const bool is_old = from.old > 0;
  --from.under_way;
  from.old -= is_old ? 1 : 0;
  if (!divided || is_old || times.device_ns == 0 || times.host_ns == 0) return;
  const int64_t lag_ns = std::max(host_ns - direct_ns, sent.waited_ns - (direct_ns - sent.direct.sent_ns));
  adjust(from, lag_ns, now_ns - sent.direct.sent_ns, now_ns);
}

// What a change has done shows only in messages that were sent after it. Parts wait behind those of earlier messages,
// so the lag still moves while the parts are right already. So one that is on its way back is left alone.
void HostShares::adjust(Peer& peer, int64_t lag_ns, int64_t message_ns, int64_t now_ns) {
  const int64_t in_time_ns = message_ns / kInTime;
  const int64_t moved_ns = lag_ns - std::exchange(peer.lag_ns, lag_ns);
  const uint64_t before = peer.parts;
  if (lag_ns < -in_time_ns && moved_ns <= in_time_ns) {
    peer.parts = std::min(peer.parts + 1, kMostParts);
  } else if (lag_ns > in_time_ns && (moved_ns >= -in_time_ns || peer.parts == 1)) {
    peer.parts -= peer.parts > 0 ? 1 : 0;
    if (peer.parts == 0) {
      peer.no_probe_before_ns = now_ns + peer.delays_per_probe * lag_ns;
      peer.delays_per_probe = std::min(2 * peer.delays_per_probe, kMostDelaysPerProbe);
    }
  }
  if (peer.parts > 1) peer.delays_per_probe = kLeastDelaysPerProbe;
  if (peer.parts != before) peer.old = peer.under_way;
}

}  // namespace trestle
