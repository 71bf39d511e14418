#include "transport/socket/name_lookup.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr int64_t kLeastLookupNs = 100'000'000;  // for the first one: /etc/hosts answers at once
constexpr int64_t kFirstPauseNs = 10'000'000;
constexpr int64_t kLastPauseNs = 640'000'000;  // the pauses before it are as long together
constexpr int kSaidAfter = 7;                  // lookups
constexpr size_t kMostName = 253;
constexpr size_t kMostLabel = 63;

Result<Addresses> look_up(const HostPort& place, AddressFamily family) {
  addrinfo hints{};
  hints.ai_family = family == AddressFamily::kIpv4 ? AF_INET : family == AddressFamily::kIpv6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &list);
  if (failed == EAI_SYSTEM) return Error{Code::kSystemError, std::strerror(errno)};
  if (failed != 0) return Error{Code::kRemoteError, gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  Addresses found;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, item->ai_addr, item->ai_addrlen);
    address.length = item->ai_addrlen;
    found.push_back(address);
  }
  return found;
}

bool is_number(const std::string& label) {
  return label.find_first_not_of("0123456789") == std::string::npos;
}

// Bytes from 128 on may belong to a name of /etc/hosts.
bool can_be_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         static_cast<unsigned char>(c) >= 128;
}

std::string why_no_label(const std::string& label) {
  if (label.empty()) return "there is nothing between two dots or at an end";
  if (label.size() > kMostLabel) return "no name has more than 63 bytes between two dots";
  const auto strange = std::ranges::find_if_not(label, can_be_in_a_name);
  if (strange == label.end()) return {};
  const bool printable = *strange >= ' ' && *strange <= '~';
  return printable ? "no name has the character '" + std::string(1, *strange) + "'" : "it has a control character";
}

// Leaves `address` empty where it is none.
Status read_numeric(const HostPort& place, AddressFamily family, Addresses& address) {
  const Result<SocketAddress> numeric = parse_address(format_host_port(place));
  if (!numeric.ok()) return {};
  const bool is_v4 = numeric.value().family() == AddressFamily::kIpv4;
  if (family != AddressFamily::kAny && family != numeric.value().family())
    return Error{Code::kInvalidArgument, "'" + place.host + "' is an " + (is_v4 ? "IPv4" : "IPv6") +
                                             " address, and TRESTLE_SOCKET_FAMILY asks for the other family"};
  address = {numeric.value()};
  return {};
}

}  // namespace

std::string why_no_host(const std::string& host) {
  if (host.find(':') != std::string::npos) return "it is no IPv6 address";
  if (host.size() > kMostName) return "no name has more than 253 bytes";
  std::vector<std::string> labels = split(host, '.');
  if (labels.size() > 1 && host != "." && labels.back().empty()) labels.pop_back();  // "node.", with its root
  for (const std::string& label : labels) {
    if (std::string why = why_no_label(label); !why.empty()) return why;
  }
  return labels.size() == 4 && std::ranges::all_of(labels, is_number) ? "it is no IPv4 address" : "";
}

Result<SideCall<Addresses>> start_lookup(const HostPort& place, AddressFamily family) {
  return SideCall<Addresses>::start("name lookup", [place, family] { return look_up(place, family); });
}

Result<Addresses> resolve_before(std::string_view text, AddressFamily family, const WaitLimit& limit) {
  const HostPort place = TRY(parse_host_port(text));
  Addresses numeric;
  TRY(read_numeric(place, family, numeric));
  if (!numeric.empty()) return numeric;
  if (const std::string why = why_no_host(place.host); !why.empty())
    return Error{Code::kInvalidArgument, "'" + place.host + "' is not the name of a host: " + why};
  std::string reason = "the name servers have not answered";
  int64_t pause_ns = kFirstPauseNs;
  for (int lookups = 1;; ++lookups, pause_ns = std::min(2 * pause_ns, kLastPauseNs)) {
    auto lookup = TRY(start_lookup(place, family));
    const int64_t least = lookups == 1 ? monotonic_clock().now_ns() + kLeastLookupNs : limit.deadline_ns;
    Status waited = lookup.wait_before({std::max(least, limit.deadline_ns), limit.aborted});
    if (waited.ok()) {
      Result<Addresses> found = lookup.take();
      if (found.ok()) return found;
      reason = found.error().message;
      if (lookups == kSaidAfter)
        LOG(kWarn, kBootstrap, "the host '%s' is not known (%s); it is looked up until the deadline",
            place.host.c_str(), reason.c_str());
      waited = pause_before(pause_ns, limit);
    }
    if (waited.ok()) continue;
    if (waited.error().code != Code::kTimeout) return waited.error();
    return Error{Code::kTimeout, "the host of '" + std::string(text) + "' was not found in time: " + reason +
                                     " (looked up " + std::to_string(lookups) + (lookups == 1 ? " time)" : " times)")};
  }
}

}  // namespace trestle
