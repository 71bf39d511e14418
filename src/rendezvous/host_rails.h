// The rails of this host on which ranks meet, and between which the connections of a control mesh move. Neither belongs
// to a dimension, so the rails of all dimensions count.
//
// Functions of the thread that makes a communicator. Nothing blocks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/value_text.h"
#include "transport/rails/choice.h"
#include "transport/rails/published.h"
#include "transport/socket/socket.h"

namespace trestle {

struct HostRailsRequest {
  std::string rails;       // TRESTLE_RAILS, and what a topology file names, in the same grammar
  std::string interfaces;  // TRESTLE_SOCKET_IFNAME
  std::string family;      // TRESTLE_SOCKET_FAMILY
  PortRange ports;         // TRESTLE_PORT_RANGE
  // An address of this host at which other ranks reach it, or could before that interface was lost; none: not known.
  HostAddress met_at;
};

// Of a host with these interfaces: those that `rails` names, for whatever dimension, else those that would be found for
// data (transport/rails/choice.h). Where `rails` names others, also the one of `met_at`, if it is up. Empty: `met_at`
// is of no interface, or of loopback.
Result<std::vector<LocalRail>> host_rails(const std::vector<HostInterface>& interfaces,
                                          const HostRailsRequest& request);

// Listens at the first of these addresses that can be bound, at a port of the range. The error when no port is free
// says how many are needed while ranks meet.
Result<Listener> listen_to_meet(std::span<const SocketAddress> addresses, const PortRange& ports);

// Where a rank listens while the ranks meet, and for its control mesh afterwards.
struct RailListener {
  Listener listener;
  std::string interface = {};  // "": ranks only meet there
  Fabric fabric = {};          // not known: ranks only meet there
};

// Where a rank can be reached: one listener on each rail of this host (host_rails()). The first is `first`, the
// listener that this rank has anyway, unless its interface is down and another one is not. Its address is `met_at`,
// whatever the request says. Never an error: a rail at which no port is free is left out, with a line at INFO.
std::vector<RailListener> listen_on_rails(Listener first, HostRailsRequest request);
// Listeners where nothing says at which address the other ranks reach this host: `met_at` is none, or no interface has
// it any more. One on each rail; rails that `rails` names and that cannot be used are no reason not to meet. On
// loopback only where no interface leads out of this host. Errors: an interface has `met_at`; there is no rail; no port
// is free.
Result<std::vector<RailListener>> listen_on_any_rail(const HostRailsRequest& request);
// Why ranks of other hosts cannot reach these listeners: the ranks have met over loopback (met_at), or what speaks
// against each of the interfaces. "": they can.
std::string why_only_here(const std::vector<RailListener>& listeners, const HostRailsRequest& request);

// What neighbours are told: the addresses of the listeners in their order, as many as fit. Rails are published as
// published.h says, the others are addresses only: "10.0.0.1:40001/24,10.0.1.1:40002/24,10.9.0.1:40003".
inline constexpr size_t kMostMeetingText = kMostPublishedBytes;
std::string meeting_text(const std::vector<RailListener>& listeners);
struct MeetingPlaces {
  std::vector<SocketAddress> addresses;  // never empty
  std::vector<PublishedRail> rails;      // of these, in their order
};
// kInvalidArgument or kRemoteError, as of parse_address and parse_published.
Result<MeetingPlaces> parse_meeting_text(std::string_view text);

}  // namespace trestle
