// TRESTLE_ALGO's grammar, and its effect on selection.
#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "sched/model/algo_rules.h"
#include "sched/select/select.h"

namespace trestle {
namespace rules_test {
namespace {

std::string names(const AlgorithmRules::Entry* entry) {
  if (entry == nullptr) return "free";
  std::string text = entry->rule.exclude ? "^" : entry->rule.flat ? "*" : "";
  for (const uint16_t a : entry->rule.algorithms) {
    if (text.size() > 1) text += ",";
    text += algorithms()[a].name;
  }
  return text;
}

TEST(AlgorithmRules, Find) {
  const struct {
    const char* text;
    Collective collective;
    uint64_t bytes;
    const char* expected;
  } cases[] = {
      {"", Collective::kAllReduce, 8, "free"},
      {"ring", Collective::kAllReduce, 8, "ring"},
      {"ring", Collective::kBroadcast, 8, "ring"},
      {"ring,hd", Collective::kAllGather, 8, "ring,hd"},
      {"^ring", Collective::kReduce, 8, "^ring"},
      {"^ring,hd", Collective::kReduce, 8, "^ring,hd"},
      {"*rd", Collective::kAllReduce, 8, "*rd"},
      {"allreduce:0-64k=*rd,64k-inf=hd", Collective::kAllReduce, 8, "*rd"},
      {"allreduce:ring,hd;broadcast:tree", Collective::kAllReduce, 8, "ring,hd"},
      {"allreduce:ring,hd;broadcast:tree", Collective::kBroadcast, 8, "tree"},
      {"allreduce:ring,hd;broadcast:tree", Collective::kReduce, 8, "free"},
      {"direct;allreduce:ring", Collective::kReduce, 8, "direct"},
      {"allreduce:ring;direct", Collective::kAllReduce, 8, "ring"},
      {"allreduce:0-64k=rd,64k-inf=hd", Collective::kAllReduce, 0, "rd"},
      {"allreduce:0-64k=rd,64k-inf=hd", Collective::kAllReduce, 65535, "rd"},
      {"allreduce:0-64k=rd,64k-inf=hd", Collective::kAllReduce, 65536, "hd"},
      {"allreduce:0-64k=rd,64k-inf=hd", Collective::kAllReduce, UINT64_MAX, "hd"},
      {"allreduce:0-64k=rd,64k-inf=hd", Collective::kAllGather, 8, "free"},
      {"allreduce:64k-1M=rd;ring", Collective::kAllReduce, 8, "free"},
      {"8-16=rd,32-64=hd", Collective::kReduce, 40, "hd"},
      {"8-16=rd,32-64=hd", Collective::kReduce, 20, "free"},
  };
  for (const auto& c : cases) {
    const auto rules = AlgorithmRules::parse(c.text);
    ASSERT_TRUE(rules.ok()) << c.text << ": " << rules.error().message;
    EXPECT_EQ(names(rules.value().find(c.collective, c.bytes)), c.expected) << c.text << " " << c.bytes;
  }
}

TEST(AlgorithmRules, BadTextsAreQuoted) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"rnig", "'rnig' is not an algorithm; did you mean ring? There are ring, direct, hd, rd, tree, dbtree"},
      {"ring,", "the name of an algorithm is missing"},
      {"ring,,hd", "the name of an algorithm is missing"},
      {"^", "'^': the name of an algorithm is missing"},
      {"*", "'*': the name of an algorithm is missing"},
      {"*ring,hd", "'*ring,hd': after a * there is one name"},
      {"ring,*hd", "'ring,*hd': a * may stand only before a single name"},
      {"ring,^hd", "'ring,^hd': a ^ may stand only before the first name"},
      {"allreduce:", "'allreduce:': the name of an algorithm is missing"},
      {"allreduce:ring;", "the name of an algorithm is missing"},
      {"all_reduced:ring", "'all_reduced' is not a collective; did you mean allreduce?"},
      {"allreduce:ring;allreduce:hd", "allreduce has a clause already"},
      {"ring;hd", "a clause for all collectives already"},
      {"sendrecv:ring", "point-to-point messages have no algorithms"},
      {"allreduce:0-64k=rd,hd", "'hd': expected sizes=name"},
      {"allreduce:0-64k=rd,32k-inf=hd", "'32k-inf=hd': overlaps"},
      {"allreduce:64k-64k=rd", "must grow"},
      {"allreduce:64k-8=rd", "must grow"},
      {"allreduce:64k=rd", "expected a range of sizes"},
      {"allreduce:-64k=rd", "'' is not a number of bytes"},
      {"allreduce:0-64q=rd", "'64q' is not a number of bytes"},
      {"allreduce:0-=rd", "is not a number of bytes"},
      {"allreduce:0-inf=", "the name of an algorithm is missing"},
      {"allreduce:0-inf=^rd", "'^rd' is not an algorithm; did you mean rd?"},
      {"RING", "did you mean ring?"},
      {" ring", "did you mean ring?"},
  };
  for (const auto& c : cases) {
    const auto rules = AlgorithmRules::parse(c.text);
    ASSERT_FALSE(rules.ok()) << c.text;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument);
    EXPECT_NE(rules.error().message.find(c.said), std::string::npos) << rules.error().message;
    EXPECT_TRUE(rules.error().message.starts_with("TRESTLE_ALGO: ")) << rules.error().message;
  }
}

Topology grid(const std::vector<int32_t>& sizes) {
  Topology topology;
  for (const int32_t size : sizes) {
    topology.dimensions.emplace_back().size = size;
    topology.dimensions.back().transport = topology.dimensions.size() == 1 ? TransportKind::kShm : TransportKind::kTcp;
  }
  return topology;
}

// The phases of the first chunk, such as "RS1:ring AG1:ring"; "*" stands for all ranks.
std::string phases(const Schedule& schedule) {
  std::string text;
  for (const PhaseChoice& phase : schedule.chunks[0].phases) {
    if (!text.empty()) text += " ";
    switch (phase.kind) {
      case PhaseKind::kReduceScatter:
        text += "RS";
        break;
      case PhaseKind::kAllGather:
        text += "AG";
        break;
      default:
        text += to_string(phase.kind);
    }
    text += phase.dimension == kFlat ? "*" : std::to_string(phase.dimension + 1);
    text.append(":").append(algorithms()[phase.algorithm].name);
  }
  return text;
}

TEST(SelectByRule, UsesWhatIsAskedFor) {
  const struct {
    std::vector<int32_t> sizes;
    Collective collective;
    uint64_t bytes;
    bool decoupled;
    const char* algo;
    const char* expected;
  } cases[] = {
      {{4, 2}, Collective::kAllReduce, 64 << 20, false, "ring,hd", "RS1:ring RS2:hd AG2:hd AG1:ring"},
      {{4, 2}, Collective::kAllReduce, 8, false, "ring,hd", "RS1:ring RS2:hd AG2:hd AG1:ring"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, true, "hd", "RS1:hd RS2:hd AG2:hd AG1:hd"},
      {{4, 2}, Collective::kReduceScatter, 64 << 20, false, "hd,ring", "RS1:hd RS2:ring"},
      {{4, 2}, Collective::kAllGather, 64 << 20, false, "hd,ring", "AG2:ring AG1:hd"},
      {{4, 2, 2}, Collective::kAllGather, 64 << 20, false, "hd,ring", "AG3:ring AG2:ring AG1:hd"},
      {{8}, Collective::kAllGather, 64 << 20, false, "hd,ring", "AG1:hd"},
      {{8}, Collective::kAllGather, 64 << 20, false, "tree,ring", "AG*:ring"},
      {{4, 2}, Collective::kAllReduce, 8, false, "rd", "all-reduce1:rd all-reduce2:rd"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, false, "rd", "all-reduce1:rd all-reduce2:rd"},
      {{4, 2}, Collective::kAllReduce, 8, false, "*rd", "all-reduce*:rd"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, false, "*ring", "all-reduce*:ring"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, true, "*ring", "RS*:ring AG*:ring"},
      {{4, 2}, Collective::kAllGather, 64 << 20, false, "*ring", "AG*:ring"},
      {{8}, Collective::kAllReduce, 8, false, "rd", "all-reduce*:rd"},
      {{4, 2}, Collective::kAllReduce, 65535 & ~7, false, "allreduce:0-64k=*rd,64k-inf=hd", "all-reduce*:rd"},
      {{4, 2}, Collective::kAllReduce, 8, false, "ring,rd", "RS1:ring all-reduce2:rd AG1:ring"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, false, "ring,rd", "RS1:ring all-reduce2:rd AG1:ring"},
      {{4, 2}, Collective::kAllReduce, 64 << 20, false, "rd,ring", "all-reduce1:rd all-reduce2:ring"},
      {{4, 2}, Collective::kAllReduce, 8, false, "tree,rd", "all-reduce1:tree all-reduce2:rd"},
      {{2, 3, 2}, Collective::kAllReduce, 8, false, "hd,ring,tree", "RS1:hd RS2:ring all-reduce3:tree AG2:ring AG1:hd"},
      {{2, 3, 2}, Collective::kAllReduce, 8, false, "hd,tree,hd", "RS1:hd all-reduce2:tree all-reduce3:hd AG1:hd"},
      {{4, 2}, Collective::kAllReduce, 8, true, "ring,hd", "RS1:ring RS2:hd AG2:hd AG1:ring"},
      {{4, 2}, Collective::kBroadcast, 1 << 20, false, "hd,tree", "broadcast*:tree"},
      {{4, 2}, Collective::kBroadcast, 8, false, "tree,direct", "broadcast2:direct broadcast1:tree"},
      {{2, 3, 2},
       Collective::kBroadcast,
       8,
       false,
       "tree,ring,dbtree",
       "broadcast3:dbtree broadcast2:ring broadcast1:tree"},
      {{8}, Collective::kBroadcast, 64 << 20, false, "chain", "broadcast*:chain"},
      {{8}, Collective::kBroadcast, 64 << 20, false, "broadcast:^ring,direct,tree,dbtree", "broadcast*:chain"},
      {{4, 2}, Collective::kReduce, 8, false, "reduce:chain,direct", "reduce1:chain reduce2:direct"},
      {{4, 2}, Collective::kReduce, 1 << 20, false, "reduce:*dbtree", "reduce*:dbtree"},
      {{4, 2}, Collective::kReduce, 8, false, "reduce:tree,direct", "reduce1:tree reduce2:direct"},
      {{4, 2}, Collective::kAllToAll, 1 << 19, false, "", "all-to-all*:direct"},
      {{4, 2}, Collective::kAllToAll, 1 << 20, false, "direct,bruck", "all-to-all1:direct all-to-all2:bruck"},
      {{4, 2}, Collective::kAllToAll, 8, false, "alltoall:bruck,direct", "all-to-all1:bruck all-to-all2:direct"},
      {{4, 2}, Collective::kAllToAll, 8, false, "*direct", "all-to-all*:direct"},
      {{4, 2}, Collective::kAllToAll, 64, false, "", "all-to-all1:direct all-to-all2:direct"},
      {{4, 2}, Collective::kAllToAllV, 0, false, "", "all-to-all-v*:direct"},
      {{4, 2}, Collective::kBarrier, 0, false, "barrier:*rd", "all-reduce*:rd"},
      {{4, 2}, Collective::kBarrier, 0, false, "barrier:rd,tree", "all-reduce1:rd all-reduce2:tree"},
      {{4, 2}, Collective::kBarrier, 0, false, "barrier:ring,ring", "all-reduce1:ring all-reduce2:ring"},
      {{8}, Collective::kBarrier, 0, false, "barrier:dissemination", "barrier*:dissemination"},
      {{4, 2}, Collective::kBarrier, 0, false, "barrier:*dissemination", "barrier*:dissemination"},
      {{4, 2}, Collective::kBarrier, 0, false, "barrier:rd,dissemination", "all-reduce1:rd barrier2:dissemination"},
  };
  for (const auto& c : cases) {
    SelectionRequest request;
    request.collective = c.collective;
    request.bytes = c.bytes;
    request.element_bytes = 4;
    request.decoupled = c.decoupled;
    SelectionConfig config;
    config.algo = c.algo;
    const auto schedule = select_schedule(request, grid(c.sizes), config);
    ASSERT_TRUE(schedule.ok()) << c.algo << ": " << schedule.error().message;
    EXPECT_EQ(phases(schedule.value()), c.expected) << c.algo << " " << c.bytes;
    EXPECT_TRUE(validate(config, grid(c.sizes)).ok()) << c.algo;
  }
}

TEST(SelectByRule, ExcludedAlgorithmsAreNotUsed) {
  for (const Algorithm& excluded : algorithms()) {
    for (uint64_t bytes = 8; bytes <= 64 << 20; bytes *= 8) {
      SelectionRequest request;
      request.bytes = bytes;
      SelectionConfig config;
      config.algo = "^";
      config.algo.append(excluded.name);
      const Schedule schedule = select_schedule(request, grid({4, 2}), config).value();
      for (const PhaseChoice& phase : schedule.chunks[0].phases) {
        EXPECT_NE(algorithms()[phase.algorithm].name, excluded.name) << phases(schedule);
      }
    }
  }
}

TEST(SelectByRule, ErrorsListThoseThatCan) {
  const struct {
    Collective collective;
    bool decoupled;
    const char* algo;
    const char* said;
  } cases[] = {
      {Collective::kAllToAll, false, "ring",
       "'ring' cannot serve alltoall of 8 ranks; those that can: direct bruck pairwise"},
      {Collective::kAllGather, false, "tree",
       "'tree' cannot serve allgather of 8 ranks; those that can: ring direct hd rd bruck"},
      {Collective::kAllReduce, true, "rd",
       "cannot serve allreduce in two halves of 8 ranks; those that can: ring direct hd"},
      {Collective::kAllToAll, false, "alltoall:^direct,bruck,pairwise",
       "'^direct,bruck,pairwise' leaves no algorithm for alltoall"},
      {Collective::kAllReduce, false, "allreduce:tee", "did you mean tree?"},
      {Collective::kBarrier, false, "barrier:bruck",
       "'bruck' cannot serve barrier of 8 ranks; those that can: ring direct hd rd tree dbtree dissemination"},
      {Collective::kAllReduce, false, "dissemination", "'dissemination' cannot serve allreduce of 8 ranks; those that"},
  };
  for (const auto& c : cases) {
    SelectionRequest request;
    request.collective = c.collective;
    request.decoupled = c.decoupled;
    request.bytes = 1024;
    SelectionConfig config;
    config.algo = c.algo;
    const auto schedule = select_schedule(request, grid({4, 2}), config);
    ASSERT_FALSE(schedule.ok()) << c.algo;
    EXPECT_EQ(schedule.error().code, Code::kInvalidArgument);
    EXPECT_NE(schedule.error().message.find(c.said), std::string::npos) << schedule.error().message;
  }
}

TEST(SelectByRule, BarrierOutlivesRulesForOthers) {
  SelectionRequest request;
  request.collective = Collective::kBarrier;
  SelectionConfig config;
  for (const Algorithm& row : algorithms()) config.algo.append(config.algo.empty() ? "^" : ",").append(row.name);
  EXPECT_TRUE(select_schedule(request, grid({4, 2}), config).ok());
  config.algo.insert(0, "barrier:");
  EXPECT_FALSE(select_schedule(request, grid({4, 2}), config).ok());
}

TEST(Validate, ChecksNamesAndWhetherTheyCanServe) {
  const auto message = [](const std::string& algo, const std::string& policy = "baseline", uint32_t chunks = 0) {
    SelectionConfig config;
    config.algo = algo;
    config.policy = policy;
    config.chunks = chunks;
    const Status status = validate(config, grid({4, 2}));
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(message(""), "ok");
  EXPECT_EQ(message("ring,hd"), "ok");
  EXPECT_EQ(message("tree"), "ok");
  EXPECT_NE(message("rong").find("did you mean ring?"), std::string::npos);
  EXPECT_NE(message("alltoall:ring").find("those that can: direct bruck pairwise"), std::string::npos);
  EXPECT_NE(message("allgather:0-1k=tree").find("cannot serve allgather"), std::string::npos);
  EXPECT_NE(message("", "thamis").find("'thamis' is not a schedule policy; did you mean themis? There are baseline"),
            std::string::npos);
  EXPECT_NE(message("", "baseline", 1025).find("TRESTLE_CHUNKS"), std::string::npos);
}

TEST(SelectByRule, PointToPointIsRefused) {
  SelectionRequest request;
  request.collective = Collective::kSendRecv;
  const auto schedule = select_schedule(request, grid({4, 2}), {});
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.error().code, Code::kInvalidUsage);
}

}  // namespace
}  // namespace rules_test
}  // namespace trestle
