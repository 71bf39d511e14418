// The settings that a communicator takes over from the one that it is made of.
#include "comm/setup/settings.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

CommunicatorSettings child_of(const char* algorithm) {
  SettingsOverride of_parent;
  of_parent.algorithm = algorithm;
  const auto parent = make_settings(parse_config({}), of_parent);
  EXPECT_TRUE(parent.ok());
  const auto child = make_child_settings(parent.value(), {});
  EXPECT_TRUE(child.ok());
  return child.value();
}

TEST(ChildSettings, AlgorithmsOfDimensionsDoNotFitAndOthersDo) {
  for (const char* list : {"ring,hd", "allreduce:ring,rd;broadcast:tree"}) {
    EXPECT_EQ(child_of(list).config.algorithm, "") << list;
  }
  for (const char* rule : {"", "ring", "^ring,tree", "*rd", "allreduce:0-64k=rd,64k-inf=ring;broadcast:^tree,direct"}) {
    const CommunicatorSettings child = child_of(rule);
    EXPECT_EQ(child.config.algorithm, rule);
    for (const Config::Value& value : child.config.values) {
      if (std::string_view(value.name) != "TRESTLE_ALGO") continue;
      EXPECT_EQ(value.text, rule) << "ranks compare it";
    }
  }
}

TEST(ChildSettings, RailsOfDimensionsBecomeThoseOfAny) {
  const struct {
    const char* parent;
    const char* child;
  } cases[] = {
      {"", ""},        {"eth0,eth1@25g", "eth0,eth1@25g"},     {"shm", "shm"},
      {"shm;tcp", ""}, {"shm;eth0@25g,eth1", "eth0@25g,eth1"}, {"eth0@2.5g;eth1,eth0@1g;eth2", "eth0@2500m,eth1,eth2"}};
  for (const auto& c : cases) {
    const auto parent = make_settings(parse_config({{"TRESTLE_RAILS", c.parent}}), {});
    ASSERT_TRUE(parent.ok());
    EXPECT_EQ(make_child_settings(parent.value(), {}).value().config.rails, c.child) << c.parent;
  }
}

}  // namespace
}  // namespace trestle
