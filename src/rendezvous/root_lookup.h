// RootLookup: follows the name of a root that is not reached, which may lead elsewhere by now: its pod or machine may
// have been replaced.
//
// Owned by the thread that tries to reach the root. Nothing blocks: lookups have threads of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "transport/socket/name_lookup.h"

namespace trestle {

// Each address at each of the ports from `port` on: all at the first port, then all at the next one.
Addresses at_ports(const Addresses& addresses, uint16_t port, uint16_t ports);

class RootLookup {
 public:
  RootLookup(HostPort place, AddressFamily family, uint16_t ports);

  // Once per round over the candidates: sets them anew if the name has another answer now. The name is looked up about
  // once a second, so that many ranks do not overwhelm the name servers; an answer that it is not known changes
  // nothing.
  void follow(Addresses& candidates);

 private:
  const HostPort place_;
  const AddressFamily family_;
  const uint16_t ports_;
  std::optional<SideCall<Addresses>> running_;
  int64_t next_ns_;
};

}  // namespace trestle
