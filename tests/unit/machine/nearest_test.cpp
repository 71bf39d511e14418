// How near a GPU and a network interface are, by table.
#include "machine/gpu/nearest.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

using Path = std::vector<std::string>;

TEST(Nearest, TheDeepestCommonBridgeSaysHowNear) {
  const struct {
    const char* what;
    PciPlace gpu;
    PciPlace nic;
    NicDistance distance;
    size_t common;
  } cases[] = {
      {"ports of one switch",
       {Path{"r", "u", "d1", "gpu"}, 0},
       {Path{"r", "u", "d2", "nic"}, 0},
       NicDistance::kSwitch,
       2},
      {"below one port of a switch",
       {Path{"r", "u", "d", "u2", "d2", "gpu"}, 0},
       {Path{"r", "u", "d", "u2", "d3", "nic"}, 0},
       NicDistance::kSwitch,
       4},
      {"a switch below a switch",
       {Path{"r", "u", "d1", "u2", "d2", "gpu"}, 0},
       {Path{"r", "u", "d3", "nic"}, 0},
       NicDistance::kSwitch,
       2},
      {"one root port", {Path{"r", "a", "gpu"}, 0}, {Path{"r", "b", "nic"}, 0}, NicDistance::kRootPort, 1},
      {"functions of one card", {Path{"r", "gpu"}, 0}, {Path{"r", "nic"}, 0}, NicDistance::kRootPort, 1},
      {"root ports of one node", {Path{"r1", "gpu"}, 3}, {Path{"r2", "nic"}, 3}, NicDistance::kNode, 0},
      {"no bridges", {Path{"gpu"}, 0}, {Path{"nic"}, 0}, NicDistance::kNode, 0},
      {"two nodes", {Path{"r1", "gpu"}, 0}, {Path{"r2", "nic"}, 1}, NicDistance::kElsewhere, 0},
      {"bridges count before nodes", {Path{"r", "u", "gpu"}, 0}, {Path{"r", "u", "nic"}, 1}, NicDistance::kSwitch, 2},
      {"no node of the GPU", {Path{"r1", "gpu"}, -1}, {Path{"r2", "nic"}, 1}, NicDistance::kUnknown, 0},
      {"no node of the interface", {Path{"r1", "gpu"}, 0}, {Path{"r2", "nic"}, -1}, NicDistance::kUnknown, 0},
      {"nothing", {}, {}, NicDistance::kUnknown, 0},
      {"no path, but nodes", {Path{}, 1}, {Path{}, 1}, NicDistance::kNode, 0},
  };
  for (const auto& c : cases) {
    const PciDistance found = distance_of(c.gpu, c.nic);
    EXPECT_EQ(found.distance, c.distance) << c.what;
    EXPECT_EQ(found.common, c.common) << c.what;
  }
}

Gpu nearest_of(const PciPlace& place, const std::vector<NicPlace>& nics) {
  Gpu gpu;
  find_nearest(place, nics, gpu);
  return gpu;
}

TEST(Nearest, AllThatAreEquallyNearAreTaken) {
  const PciPlace gpu{Path{"r", "u", "d1", "u2", "d2", "gpu"}, 0};
  const NicPlace far{"far", {Path{"q", "nic"}, 1}};
  const NicPlace node{"node", {Path{"q", "nic"}, 0}};
  const NicPlace upper{"upper", {Path{"r", "u", "d3", "nic"}, 0}};
  const NicPlace lower{"lower", {Path{"r", "u", "d1", "u2", "d4", "nic"}, 0}};
  const NicPlace lower2{"lower2", {Path{"r", "u", "d1", "u2", "d5", "nic"}, 0}};
  EXPECT_EQ(nearest_of(gpu, {far, lower, upper, node, lower2}).nics, (Path{"lower", "lower2"}));
  EXPECT_EQ(nearest_of(gpu, {far, upper, node}).nics, Path{"upper"}) << "a switch below a switch";
  EXPECT_EQ(nearest_of(gpu, {far, node}).nics, Path{"node"});
  EXPECT_EQ(nearest_of(gpu, {far, node}).nic_distance, NicDistance::kNode);
  EXPECT_EQ(nearest_of(gpu, {far}).nic_distance, NicDistance::kElsewhere);
  EXPECT_EQ(nearest_of(gpu, {}).nics, Path{});
  EXPECT_EQ(nearest_of(gpu, {}).nic_distance, NicDistance::kUnknown);
}

}  // namespace
}  // namespace trestle
