// What a range of ports must have room for: the numbers, and the sentence that tells a user what to write.
#include "comm/setup/port_needs.h"

#include <gtest/gtest.h>

namespace trestle {
namespace port_needs_test {
namespace {

TEST(PortNeeds, AreTheListenersOfAllRanksOfTheHost) {
  const struct {
    int32_t ranks;
    int32_t data;
    bool mesh;
    int32_t ports;
  } kCases[] = {{1, 1, false, 1}, {1, 1, true, 2}, {1, 2, true, 3},
                {2, 1, false, 2}, {2, 1, true, 4}, {8, 2, true, 24}};
  for (const auto& c : kCases) {
    const PortNeeds needs{{5000, 5000}, c.ranks, c.data, c.mesh};
    EXPECT_EQ(needs.ports(), c.ports);
    const std::string wanted = "this communicator needs " + std::to_string(c.ports) + " at each interface";
    EXPECT_NE(port_needs_text(needs).find(wanted), std::string::npos) << port_needs_text(needs);
  }
}

TEST(PortNeeds, AreSaidWithWhatNeedsThem) {
  EXPECT_EQ(
      port_needs_text({{5000, 5000}, 1, 1, true}),
      "TRESTLE_PORT_RANGE has 1 port, and this communicator needs 2 at each interface of this host: 1 for data and "
      "1 for the control mesh of each rank, and 1 rank is here; each further communicator needs as many, and a "
      "process that has called trestleGetUniqueId 1 more");
  EXPECT_EQ(
      port_needs_text({{5000, 5002}, 4, 2, false}),
      "TRESTLE_PORT_RANGE has 3 ports, and this communicator needs 8 at each interface of this host: 2 for data of "
      "each rank, and 4 ranks are here; each further communicator needs as many, and a process that has called "
      "trestleGetUniqueId 1 more");
}

TEST(PortNeeds, TransportsWithInterfacesOfTheirOwnDoNotAddUp) {
  EXPECT_EQ(most_at_one_interface({}), 0);
  EXPECT_EQ(most_at_one_interface({{{"eth0"}, {"eth1"}}}), 1);
  EXPECT_EQ(most_at_one_interface({{{"eth0"}}, {{"eth1"}}}), 1);
  EXPECT_EQ(most_at_one_interface({{{"eth0"}, {"eth1"}}, {{"eth1"}, {"eth2"}}}), 2);
  EXPECT_EQ(most_at_one_interface({{{"eth0"}}, {}, {{"eth0"}}, {{"eth0"}, {"eth1"}}}), 3);
}

}  // namespace
}  // namespace port_needs_test
}  // namespace trestle
