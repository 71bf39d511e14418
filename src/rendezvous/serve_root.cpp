#include "rendezvous/serve_root.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "rendezvous/port_holder.h"
#include "rendezvous/server/server.h"
#include "rendezvous/try_root.h"

namespace trestle {
namespace {

// A host name may resolve differently on the host itself (127.0.1.1 in /etc/hosts). The server must still be reachable
// for other hosts, so it listens on all addresses then.
SocketAddress listening_address(const SocketAddress& resolved, uint16_t port, bool loopback) {
  SocketAddress address = resolved;
  address.set_port(port);
  if (loopback) return address;
  if (address.family() == AddressFamily::kIpv4)
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr.s_addr = INADDR_ANY;
  else
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_addr = in6addr_any;
  return address;
}

// The addresses of a port of this host, as other ranks see it, then as only this host does.
std::vector<SocketAddress> addresses_of(const ServedPlace& place, uint16_t port) {
  std::vector<SocketAddress> all = place.addresses;
  for (const char* loopback : {"127.0.0.1:1", "[::1]:1"}) {
    const SocketAddress address = parse_address(loopback).value();
    const auto of_family = [&](const SocketAddress& one) { return one.family() == address.family(); };
    if (std::ranges::any_of(place.addresses, of_family)) all.push_back(address);
  }
  for (SocketAddress& address : all) address.set_port(port);
  return all;
}

// Who holds a port at which this process cannot listen.
struct Holder {
  UniqueFd guest;    // this rank's connection, if it is a rendezvous of this job in another process
  SocketAddress at;  // where it answered
  std::string text;  // "python3 (pid 12)"
  // It may end, and another one take its place. So it is looked at again, but each time after twice as long.
  int64_t pause_ns = 20 * kMs;
  int64_t next_ns = 0;
};
using Holders = std::map<uint16_t, Holder>;  // by port

Holder look_at_holder(uint16_t port, const Root& root, const ServedPlace& place, const BootstrapConfig& config,
                      const WaitLimit& limit) {
  Holder holder;
  bool another_job = false;
  for (const SocketAddress& address : addresses_of(place, port)) {
    RootAttempt made = try_root(address, config, root, kFirstLookNs, limit);
    if (made.socket) {
      holder.guest = std::move(made.socket);
      holder.at = address;
      return holder;
    }
    another_job = made.other_job || made.refused_secret;
    if (made.refused || made.silent || made.lost) break;
  }
  const std::string program = port_holder(port);
  holder.text = program.empty() ? "another program or user" : program;
  if (another_job) holder.text += ", with the rendezvous of another job";
  return holder;
}

Holder& holder_of(uint16_t port, Holders& holders, const Root& root, const ServedPlace& place,
                  const BootstrapConfig& config, const WaitLimit& limit) {
  Holder& known = holders[port];
  if (monotonic_clock().now_ns() < known.next_ns) return known;
  const int64_t pause_ns = std::min(2 * known.pause_ns, kSecond);
  known = look_at_holder(port, root, place, config, limit);
  known.pause_ns = pause_ns;
  known.next_ns = monotonic_clock().now_ns() + pause_ns;
  return known;
}

RendezvousOptions server_options(const Root& root, const ServedPlace& place, const BootstrapConfig& config) {
  RendezvousOptions options;
  options.credentials = {root.secret, root.job, 0};
  options.place = root.place;
  options.ranks = config.nranks;
  options.deadline_ns = config.deadline_ns;
  options.handshake_timeout_ns = config.handshake_timeout_ns;
  options.way_out = "give each job another " + place.variable + ", or a name of its own (TRESTLE_JOB)";
  return options;
}

void use(Root& root, const ServedPlace& place, RendezvousHeld hold, uint16_t port) {
  root.hold = std::move(hold);
  root.candidates = addresses_of(place, port);
}

// One round over the ports. False: none is free, and `last` says why the first one is not.
Result<bool> serve_once(Root& root, const ServedPlace& place, const BootstrapConfig& config, const WaitLimit& limit,
                        Holders& holders, std::string& last) {
  last.clear();
  for (int port = place.port; port < place.port + place.ports && port <= 65535; ++port) {
    const auto at = static_cast<uint16_t>(port);
    std::string refused;
    std::vector<Listener> listeners;
    for (const SocketAddress& address : place.addresses) {
      if (!place.loopback && !listeners.empty()) break;  // it listens everywhere
      Result<Listener> listener = listen_tcp_at(listening_address(address, at, place.loopback));
      if (listener.ok()) listeners.push_back(std::move(listener).value());
      if (!listener.ok()) refused = listener.error().message;
    }
    if (!listeners.empty()) {
      use(root, place, TRY(start_rendezvous(std::move(listeners), server_options(root, place, config))), at);
      if (at != place.port)
        LOG(kInfo, kBootstrap, "%s: port %d is used instead: %s", root.place.c_str(), port, last.c_str());
      return true;
    }
    Holder& holder = holder_of(at, holders, root, place, config, limit);
    if (holder.guest) {
      root.guest = std::make_shared<UniqueFd>(std::move(holder.guest));
      root.candidates = {holder.at};
      return true;
    }
    if (last.empty()) last = refused + ", by " + holder.text;
  }
  return false;
}

}  // namespace

Status serve_root(Root& root, const ServedPlace& place, const BootstrapConfig& config, const WaitLimit& limit) {
  if (auto running = hold_rendezvous({root.secret, root.job, 0})) {
    use(root, place, std::move(running->hold), running->port);
    return {};
  }
  // The server of the previous communicator may be about to end.
  const int64_t give_up = std::min(config.deadline_ns, monotonic_clock().now_ns() + 5 * kSecond);
  std::string last;
  Holders holders;
  while (!TRY(serve_once(root, place, config, limit, holders, last))) {
    end_failed_rendezvous();
    const bool over = monotonic_clock().now_ns() >= give_up;
    const Status paused = over ? Status() : pause_before(20 * kMs, limit);
    if (!paused.ok() && paused.error().code != Code::kTimeout) return paused.error();
    if (over || !paused.ok())
      return Error{Code::kSystemError, "rank 0 cannot listen for the rendezvous at " + root.name + ": " + last +
                                           "; if another job has this port, wait for its end or choose another one (" +
                                           place.variable + ", the same on all ranks)"};
  }
  return {};
}

}  // namespace trestle
