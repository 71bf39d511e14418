// How many ports of TRESTLE_PORT_RANGE the ranks of one host need, for the sentence about a range without a free one.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/value_text.h"
#include "transport/rails/rails_text.h"

namespace trestle {

// The needs of one communicator at one interface. An address has ports of its own, so interfaces do not share them.
struct PortNeeds {
  PortRange range;
  int32_t ranks = 1;  // on this host
  int32_t data = 1;   // listeners of each rank's transports
  bool mesh = false;  // the control mesh of each rank listens, too: there are several rails

  int32_t ports() const { return ranks * (data + (mesh ? 1 : 0)); }
};

// The sentence that follows "every port is in use": how many ports the range must have, and why.
std::string port_needs_text(const PortNeeds& needs);

// The interfaces of each transport of a rank: how many of these listen at the one that most of them use.
int32_t most_at_one_interface(const std::vector<std::vector<NamedInterface>>& transports);

}  // namespace trestle
