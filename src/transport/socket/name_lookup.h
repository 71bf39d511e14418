// Looking up the names of hosts.
//
// Names come and go: a service of Kubernetes gets its name when its pod runs, and a name server may be slow or away. So
// a name that is not found is no error until the time is over, and one that was found may lead elsewhere later. Any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/socket/side_call.h"
#include "transport/socket/socket.h"

namespace trestle {

// In the system's order of preference; never empty.
using Addresses = std::vector<SocketAddress>;

// One lookup of a name or numeric address. An error says that it was not found, which may pass.
Result<SideCall<Addresses>> start_lookup(const HostPort& place, AddressFamily family);

// "node3:5000", "10.0.0.1:5000": looks the name up until it is found. A name that stays unknown for about a second is
// said once at WARN. kInvalidArgument, at once: what can never be the name of a host, and a numeric address of the
// other family. kTimeout: with the last reason. kAborted.
Result<Addresses> resolve_before(std::string_view text, AddressFamily family, const WaitLimit& limit);

// Why no host can have this name: a character that no name has, an empty label, one that is too long; "": a host can.
std::string why_no_host(const std::string& host);

}  // namespace trestle
