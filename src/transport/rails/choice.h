// Which interfaces of this host are rails of a dimension, and why the others are not.
//
// A pure function of what inventory.h has read and of what the user has said; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/rails/fabric.h"
#include "transport/rails/inventory.h"
#include "transport/rails/rails_text.h"

namespace trestle {

struct RailRequest {
  std::vector<NamedInterface> interfaces;      // of TRESTLE_RAILS or of the topology file; empty: found out
  std::string named_by = "TRESTLE_RAILS";      // where they come from, for sentences
  std::string filter = {};                     // TRESTLE_SOCKET_IFNAME; counts only where no interface is named
  AddressFamily family = AddressFamily::kAny;  // TRESTLE_SOCKET_FAMILY
  HostAddress met_at = {};                     // where other ranks have reached this host; none: nothing is known
};

struct LocalRail {
  std::string interface;
  SocketAddress address;  // port 0
  Fabric fabric;
  uint64_t rate_bps = 0;  // as stated, else as the kernel knows it; 0: not known
  bool stated = false;    // the user has said the rate
  int numa_node = -1;     // -1: not known
};

struct LeftOutInterface {
  std::string interface;
  std::string reason;
  std::string text() const { return interface + ": " + reason; }  // "docker0: a bridge of containers"
};

struct RailChoice {
  std::vector<LocalRail> rails;            // at least one; as named, else in the kernel's order
  std::vector<LeftOutInterface> left_out;  // in the kernel's order
};

// Named interfaces are rails if they are up and have an address; so are those that a TRESTLE_SOCKET_IFNAME without "^"
// matches. Of the others, all that lead out of this host: no bridge unless one of its ports is hardware, no port of a
// bridge, no tunnel, nothing with a name that engines of containers give. Loopback is a rail if it is named, or if
// there is nothing else that the filter allows; it reaches only this host, but peers cannot see that in its fabric.
// Of an interface's addresses `met_at` counts, else the first IPv4 one, else the first IPv6 one, else the first of
// loopback (127.0.0.0/8, ::1) or 169.254.0.0/16. If `met_at` is an IPv6 address, IPv6 comes first: of a site (fc00::/7)
// or global, addresses of the kind of `met_at` come before the others. Link-local IPv6 addresses do not count, nor
// those that the filter leaves out.
// Errors. kInvalidArgument: a named interface does not exist, or the filter matches none; with those that exist.
// kSystemError: nothing is left; with the reasons.
Result<RailChoice> choose_rails(const std::vector<HostInterface>& interfaces, const RailRequest& request);

// Where a socket listens that is reached at one address: the first of these that can be bound. At `met_at` alone, if an
// interface that is up has it, and the names, or else the filter, and the family allow that one, whatever else speaks
// against it: where the ranks have met is known to reach them. Else at the rails. Errors: as above.
Result<std::vector<SocketAddress>> listening_addresses(const std::vector<HostInterface>& interfaces,
                                                       const RailRequest& request);

// The syntax of TRESTLE_SOCKET_IFNAME, which is NCCL's: a comma-separated list of name prefixes; a leading "=" whole
// names; a leading "^" all but these ("^=" too). An item with a colon in it is compared with the label of the address,
// so that one alias can be chosen; any other with the interface's name.
bool interface_matches(std::string_view filter, std::string_view name, std::string_view label = {});

// One of the rails has this address.
bool has_rail_at(const std::vector<LocalRail>& rails, const HostAddress& address);

// The NUMA node that these rails are nearest to: the one whose rails have the greatest rate together, where an unknown
// rate counts as the least; of equal ones the lowest. Rails whose node is not known do not count. -1: none is known.
int numa_node_of(const std::vector<LocalRail>& rails);

}  // namespace trestle
