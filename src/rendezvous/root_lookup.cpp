#include "rendezvous/root_lookup.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace trestle {
namespace {

constexpr int64_t kLookAgainNs = 1'000 * kMs;

}  // namespace

Addresses at_ports(const Addresses& addresses, uint16_t port, uint16_t ports) {
  Addresses all;
  for (int at = port; at < port + ports && at <= 65535; ++at) {
    for (SocketAddress address : addresses) {
      address.set_port(static_cast<uint16_t>(at));
      all.push_back(address);
    }
  }
  return all;
}

RootLookup::RootLookup(HostPort place, AddressFamily family, uint16_t ports)
    : place_(std::move(place)), family_(family), ports_(ports), next_ns_(monotonic_clock().now_ns() + kLookAgainNs) {}

void RootLookup::follow(Addresses& candidates) {
  if (!running_) {
    const int64_t now = monotonic_clock().now_ns();
    if (now < next_ns_) return;
    next_ns_ = now + kLookAgainNs;
    auto started = start_lookup(place_, family_);
    if (started.ok()) running_.emplace(std::move(started).value());
    return;
  }
  if (!running_->ended()) return;
  const Result<Addresses> found = running_->take();
  running_.reset();
  if (!found.ok()) return;
  Addresses now = at_ports(found.value(), place_.port, ports_);
  if (now == candidates) return;
  LOG(kInfo, kBootstrap, "%s leads to %s now", place_.host.c_str(), format_host(now.front()).c_str());
  candidates = std::move(now);
}

}  // namespace trestle
