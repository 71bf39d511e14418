// The built-in networks, and what messages cost.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

TEST(Networks, HaveThePublishedNumbersOfTensorsAndParameters) {
  struct Size {
    size_t tensors;
    uint64_t parameters;
  };
  const std::map<std::string, Size> sizes = {
      {"resnet18", {62, 11'689'512}},     {"resnet50", {161, 25'557'032}},      {"resnet101", {314, 44'549'160}},
      {"resnet152", {467, 60'192'808}},   {"vgg19", {38, 143'667'240}},         {"alexnet", {16, 61'100'840}},
      {"densenet161", {484, 28'681'000}}, {"densenet201", {604, 20'013'928}},   {"inceptionv4", {449, 42'679'816}},
      {"googlenet", {173, 6'624'904}},    {"googlenet_aux", {187, 13'004'888}}, {"bert_base", {206, 110'106'428}},
      {"bert_large", {398, 336'226'108}}, {"gpt2", {148, 124'439'808}},         {"gpt2_chinese10", {124, 81'894'144}},
      {"vgg19_nobias", {19, 143'652'544}}};
  EXPECT_EQ(network_names().size(), sizes.size());
  for (const std::string_view name : network_names()) {
    const Network network = find_network(name).value();
    const auto size = sizes.find(std::string(name));
    ASSERT_NE(size, sizes.end()) << name;
    EXPECT_EQ(network.tensors.size(), size->second.tensors) << name;
    EXPECT_EQ(network.parameters(), size->second.parameters) << name;
    EXPECT_FALSE(network.title.empty()) << name;
  }
}

TEST(Networks, ShareTheComputeTimeByWork) {
  for (const NamedComputeTime& each : compute_times()) {
    const GradientWorkload workload = built_in_workload(each.name).value();
    EXPECT_NEAR(workload.forward_s(), each.time.forward_s, 1e-12) << each.name;
    EXPECT_NEAR(workload.backward_s(), each.time.backward_s, 1e-12) << each.name;
    EXPECT_EQ(workload.bytes(), 4 * find_network(each.network).value().parameters());
    EXPECT_FALSE(each.source.empty());
  }
  EXPECT_EQ(built_in_workload("resnet50").value().forward_s(), built_in_workload("resnet50@dear").value().forward_s());
}

TEST(Networks, AreFoundByNameOnly) {
  EXPECT_NE(find_network("resnet").error().message.find("resnet152, vgg19"), std::string::npos);
  EXPECT_NE(built_in_workload("resnet").error().message.find("resnet50@k80"), std::string::npos);
  EXPECT_EQ(built_in_workload("alexnet").error().message,
            "alexnet has no compute time; say forward and backward seconds");
}

TEST(Networks, BecomeCompactWithoutLosingBytesOrTime) {
  const GradientWorkload workload = built_in_workload("resnet50@dear").value();
  const GradientWorkload joined = compact(workload);
  EXPECT_EQ(joined.tensors.size(), 107u);
  EXPECT_EQ(joined.bytes(), workload.bytes());
  EXPECT_NEAR(joined.backward_s(), workload.backward_s(), 1e-12);
  EXPECT_EQ(joined.tensors[1].bytes, 2u * 64 * 4) << "weight and bias of a norm";
}

void expect_cost(const MessageCost& got, double startup_s, double per_byte_s, const char* what) {
  EXPECT_NEAR(got.startup_s, startup_s, 1e-12 * startup_s) << what;
  EXPECT_NEAR(got.per_byte_s, per_byte_s, 1e-12 * per_byte_s) << what;
}

// MG-WFBP's table II by hand.
TEST(NetworkCost, IsThatOfTheTable) {
  const NetworkModel eight{1e-4, 1e-9, 1e-10, 8};
  expect_cost(all_reduce_cost(eight, AllReduceAlgorithm::kBinaryTree), 6e-4, 6.3e-9, "binary_tree");
  expect_cost(all_reduce_cost(eight, AllReduceAlgorithm::kRecursiveDoubling), 3e-4, 3.3e-9, "recursive_doubling");
  expect_cost(all_reduce_cost(eight, AllReduceAlgorithm::kHalvingDoubling), 6e-4, 2.1e-9 * 7 / 8, "halving_doubling");
  expect_cost(all_reduce_cost(eight, AllReduceAlgorithm::kDoubleBinaryTree), 6e-4, 2.1e-9, "double_binary_tree");
  expect_cost(all_reduce_cost(eight, AllReduceAlgorithm::kRing), 1.4e-3, 2.1e-9 * 7 / 8, "ring");
  // Not a power of two.
  const double log_6 = std::log2(6.0);
  expect_cost(all_reduce_cost({1e-4, 1e-9, 0, 6}, AllReduceAlgorithm::kBinaryTree), 2e-4 * log_6, 2e-9 * log_6, "six");
}

TEST(NetworkCost, HasHalvesThatAddUp) {
  for (const char* name : {"binary_tree", "recursive_doubling", "halving_doubling", "double_binary_tree", "ring"}) {
    const AllReduceAlgorithm algorithm = parse_all_reduce_algorithm(name).value();
    EXPECT_STREQ(to_string(algorithm), name);
    const GradientLink link = network_link({1e-4, 1e-9, 1e-10, 12}, algorithm);
    expect_cost(link.all_reduce, link.reduce_scatter.startup_s + link.all_gather.startup_s,
                link.reduce_scatter.per_byte_s + link.all_gather.per_byte_s, name);
    EXPECT_EQ(network_link({1, 1, 1, 1}, algorithm).all_reduce, MessageCost{}) << "one worker sends nothing";
    EXPECT_EQ(network_link({1, 1, 1, 1}, algorithm).all_gather, MessageCost{});
  }
  // DeAR's equations 3 and 4.
  const GradientLink ring = network_link({1e-4, 1e-9, 0, 8}, AllReduceAlgorithm::kRing);
  expect_cost(ring.all_gather, 7e-4, 7e-9 / 8, "all-gather");
  expect_cost(ring.reduce_scatter, 7e-4, 7e-9 / 8, "reduce-scatter");
  EXPECT_NE(parse_all_reduce_algorithm("tree").error().message.find("double_binary_tree"), std::string::npos);
}

}  // namespace
}  // namespace trestle
