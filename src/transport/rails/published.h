// What a rank publishes of its rails over tcp, as the text of its address.
//
//   published  single | rail { "," rail }
//   single     address ":" port                              a rank with one rail, which says nothing of its fabric
//   rail       address ":" port "/" prefix [ "#" place ] [ "@" rate ]
//
// "10.77.1.1:40001", "10.77.1.1:40001/24@1g,10.77.21.1:40002/24#2", "[fd00::1]:40001/64". The fabric is the address's
// network (fabric.h), so a list cannot contradict itself about it.
//
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/rails/fabric.h"

namespace trestle {

// Eight rails fit, in IPv4 and in IPv6.
inline constexpr size_t kMostPublishedBytes = 512;
inline constexpr size_t kMostRails = 16;

struct PublishedRail {
  SocketAddress address;  // with the port
  Fabric fabric;          // not known: the single form
  uint64_t rate_bps = 0;  // 0: not known
  bool operator==(const PublishedRail&) const = default;
};

// kInvalidArgument, with what to do: more than kMostRails, or more than kMostPublishedBytes. A single rail without a
// fabric has the single form.
Result<std::string> publish(const std::vector<PublishedRail>& rails);

// At least one rail. Bounded, whatever a peer sends. kRemoteError with a sentence that quotes the wrong part; callers
// add the peer's name.
Result<std::vector<PublishedRail>> parse_published(std::string_view text);

}  // namespace trestle
