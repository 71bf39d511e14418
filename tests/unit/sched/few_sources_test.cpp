// Selection for places that add few sources at once, such as memory of a GPU.
#include <gtest/gtest.h>

#include <utility>

#include "sched/select/select.h"

namespace trestle {
namespace few_sources_test {
namespace {

TEST(FewSources, TakeTheNextNameOfAList) {
  Topology topology;
  topology.dimensions.emplace_back().size = 129;
  SelectionRequest request{.collective = Collective::kAllReduce, .bytes = 129 * 64, .element_bytes = 4};
  SelectionConfig config;
  config.algo = "direct,ring";
  for (const auto& [most, name] : {std::pair{0, "direct"}, {129, "direct"}, {128, "ring"}}) {
    request.most_sources = static_cast<uint32_t>(most);
    const Schedule schedule = select_schedule(request, topology, config).value();
    EXPECT_EQ(algorithm_name(schedule.chunks.front().phases.front()), name) << most;
  }
}

TEST(FewSources, RefuseAnAlgorithmThatNeedsMore) {
  Topology topology;
  topology.dimensions.emplace_back().size = 129;
  SelectionConfig config;
  config.algo = "direct";
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
    SelectionRequest request{.collective = collective, .bytes = 129 * 64, .element_bytes = 4};
    request.most_sources = 128;
    const Result<Schedule> refused = select_schedule(request, topology, config);
    ASSERT_FALSE(refused.ok()) << to_string(collective);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("129 ranks with at most 128 sources"), std::string::npos)
        << refused.error().message;
    EXPECT_EQ(refused.error().message.find(" direct", refused.error().message.find("that can:")), std::string::npos)
        << refused.error().message;
    request.most_sources = 129;
    EXPECT_TRUE(select_schedule(request, topology, config).ok());
  }
  SelectionRequest gathers{.collective = Collective::kAllGather, .bytes = 129 * 64, .element_bytes = 4};
  gathers.most_sources = 128;
  EXPECT_TRUE(select_schedule(gathers, topology, config).ok()) << "nothing is added";
}

}  // namespace
}  // namespace few_sources_test
}  // namespace trestle
