// The settings that a communicator takes over from the one that it is made of.
#include "comm/setup/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "topology/topology.h"

namespace trestle {
namespace settings_test {
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

class ControlRails : public testing::Test {
 protected:
  void SetUp() override {
    if (!parse_topology(R"({"dimensions":[{"size":2}]})", "t").ok()) GTEST_SKIP() << "topology files are not built in";
  }
  void TearDown() override { ::unlink(file_.c_str()); }
  // Over which the ranks of a job meet that has this variable and this topology.
  CommunicatorSettings with(const std::string& rails, const std::string& dimensions) {
    std::FILE* const file = std::fopen(file_.c_str(), "w");
    std::fputs(("{\"dimensions\":[" + dimensions + "]}").c_str(), file);
    std::fclose(file);
    const auto made = make_settings(parse_config({{"TRESTLE_RAILS", rails}, {"TRESTLE_TOPO_FILE", file_}}), {});
    EXPECT_TRUE(made.ok());
    return made.value();
  }

  const std::string file_ = testing::TempDir() + "control_rails." + std::to_string(::getpid());
};

TEST_F(ControlRails, AreThoseOfTheVariableAndOfTheTopologyFile) {
  const std::string named = R"({"size":4,"rails":[{"interface":"eth1","bandwidth_gbps":25},{"interface":"eth2"}]})";
  EXPECT_EQ(with("", named).control_rails, "eth1@25g,eth2");
  EXPECT_EQ(with("eth0;eth3", named).control_rails, "eth0;eth3;eth1@25g,eth2");
  EXPECT_EQ(with("eth0", R"({"size":4})").control_rails, "eth0");
  EXPECT_EQ(with("", R"({"size":4,"interface":"eth1"},{"size":2,"interface":"eth2"})").control_rails, "eth1;eth2");
  EXPECT_EQ(with("", R"({"size":4,"transport":"shm","interface":"eth1"})").control_rails, "");
}

// Such files are refused later, where the error can say more. What else is named counts until then.
TEST_F(ControlRails, OfAWrongFileAreNone) {
  EXPECT_EQ(with("eth0", R"({"size":4,"interface":"eth1;eth2"})").control_rails, "eth0");
  EXPECT_EQ(with("eth0", R"({"size":)").control_rails, "eth0");
  const auto missing = make_settings(parse_config({{"TRESTLE_TOPO_FILE", "/does/not/exist"}}), {});
  EXPECT_EQ(missing.value().control_rails, "");
}

// It has dimensions of its own, but the same hosts.
TEST_F(ControlRails, OfASplitOffCommunicatorAreItsParents) {
  const CommunicatorSettings parent = with("", R"({"size":4,"interface":"eth1,eth2"})");
  const CommunicatorSettings child = make_child_settings(parent, {}).value();
  EXPECT_EQ(child.control_rails, "eth1,eth2");
  EXPECT_EQ(make_child_settings(child, {}).value().control_rails, "eth1,eth2");
  SettingsOverride own;
  own.values.push_back({"TRESTLE_RAILS", "eth3"});
  EXPECT_EQ(make_child_settings(parent, own).value().control_rails, "eth3");
}

}  // namespace
}  // namespace settings_test
}  // namespace trestle
