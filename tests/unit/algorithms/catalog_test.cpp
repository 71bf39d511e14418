// The catalog: names, the phases that each row serves, errors that list the rows, and plans that stay the same.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/hash.h"
#include "plan/builder.h"
#include "support/plan_groups.h"

namespace trestle {
namespace {

TEST(Catalog, NamesAreThoseOfTheConfiguration) {
  std::vector<std::string> names;
  for (const Algorithm& row : algorithms()) names.emplace_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ring", "direct", "hd", "rd", "tree", "dbtree", "binomial", "bruck",
                                             "dissemination", "chain", "rabenseifner", "otree", "line", "pairwise"}));
  for (const std::string& name : names) EXPECT_EQ(find_algorithm(name).value()->name, name);
}

TEST(Catalog, AnUnknownNameListsTheNames) {
  const auto found = find_algorithm("rign");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kInvalidArgument);
  EXPECT_EQ(
      found.error().message,
      "'rign' is not an algorithm; did you mean ring? There are ring, direct, hd, rd, tree, dbtree, binomial, bruck, "
      "dissemination, chain, rabenseifner, otree, line, pairwise");
}

// What runs on a GPU relies on it: its kernels add so many sources at once.
TEST(Catalog, NoReduceHasMoreSourcesThanItsRowSays) {
  for (const Algorithm& row : algorithms()) {
    for (const PhaseKind kind : kAllKinds) {
      for (const int32_t size : {2, 3, 7, 8, 64, 100}) {
        if (!reduces(kind) || !row.serves(kind, size)) continue;
        uint32_t most = 1;
        for (const Plan& plan : plans_of_group(row, kind, size, 0, InPlace::kOddRanks)) {
          for (const Step& step : plan.steps) most = std::max(most, step.sources);
        }
        EXPECT_LE(most, most_sources(row, kind, size)) << row.name << " " << to_string(kind) << " " << size;
      }
    }
  }
}

TEST(Catalog, RowsServeExactlyWhatTheyCanBuild) {
  const std::map<std::string_view, std::set<PhaseKind>> expected = {
      {"ring",
       {PhaseKind::kReduceScatter, PhaseKind::kAllGather, PhaseKind::kAllReduce, PhaseKind::kReduce,
        PhaseKind::kBroadcast}},
      {"direct", {std::begin(kAllKinds), std::prev(std::end(kAllKinds))}},  // all but a barrier
      {"hd", {PhaseKind::kReduceScatter, PhaseKind::kAllGather, PhaseKind::kAllReduce}},
      {"rd", {PhaseKind::kAllGather, PhaseKind::kAllReduce}},
      {"tree", {PhaseKind::kReduce, PhaseKind::kBroadcast, PhaseKind::kAllReduce}},
      {"dbtree", {PhaseKind::kReduce, PhaseKind::kBroadcast, PhaseKind::kAllReduce}},
      {"binomial", {PhaseKind::kGather, PhaseKind::kScatter}},
      {"bruck", {PhaseKind::kAllGather, PhaseKind::kAllToAll}},
      {"dissemination", {PhaseKind::kBarrier}},
      {"chain", {PhaseKind::kReduce, PhaseKind::kBroadcast}},
      {"rabenseifner", {PhaseKind::kAllReduce, PhaseKind::kReduce}},
      {"otree", {PhaseKind::kAllReduce, PhaseKind::kReduce}},
      {"line", {PhaseKind::kReduceScatter, PhaseKind::kReduce}},
      {"pairwise", {PhaseKind::kAllToAll, PhaseKind::kAllToAllV}},
  };
  for (const Algorithm& row : algorithms()) {
    for (PhaseKind kind : kAllKinds) {
      for (int32_t size : {0, 1, 2, 3, 64}) {
        const bool pair = kind == PhaseKind::kSend || kind == PhaseKind::kRecv;
        const bool served = expected.at(row.name).contains(kind) && size >= 1 && (!pair || size == 2);
        EXPECT_EQ(row.serves(kind, size), served) << row.name << " " << to_string(kind) << " " << size;
      }
    }
  }
}

TEST(Catalog, BuildPlanChecksOnDemandAndNamesWhatIsWrong) {
  const Algorithm& hd = *find_algorithm("hd").value();
  for (bool check : {false, true}) {
    const auto plan = build_plan(hd, {.kind = PhaseKind::kAllReduce, .group_size = 6, .me = 4}, check);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan.value(), hd.build({.kind = PhaseKind::kAllReduce, .group_size = 6, .me = 4}));
  }
  auto message = [&](const PlanRequest& request) {
    const auto plan = build_plan(hd, request, false);
    return plan.ok() ? std::string() : plan.error().message;
  };
  EXPECT_EQ(message({.kind = PhaseKind::kBroadcast, .group_size = 4}),
            "algorithm hd has no broadcast for a group of 4; those that have: ring, direct, tree, dbtree, chain");
  EXPECT_EQ(message({.kind = PhaseKind::kAllReduce, .group_size = 4, .me = 4}), "index 4 is not in a group of 4");
  EXPECT_EQ(message({.kind = PhaseKind::kAllReduce, .group_size = 4, .root = -1}), "root -1 is not in a group of 4");
  const Algorithm& direct = *find_algorithm("direct").value();
  EXPECT_TRUE(build_plan(direct, {.kind = PhaseKind::kRecv, .group_size = 2, .me = 1}, true).ok());
  EXPECT_FALSE(build_plan(direct, {.kind = PhaseKind::kSend, .group_size = 2, .me = 1}, true).ok());
  EXPECT_FALSE(build_plan(direct, {.kind = PhaseKind::kSend, .group_size = 3}, true).ok());
}

// A row with wrong sums, which `check` must find.
Plan build_wrong(const PlanRequest& request) {
  PlanBuilder builder(request, 1);
  builder.copy(output(0), input(0), 0);
  return std::move(builder).finish();
}

TEST(Catalog, BuildPlanFindsAWrongAlgorithm) {
  const Algorithm wrong{"wrong", "", [](PhaseKind, int32_t) { return true; }, build_wrong, nullptr};
  const PlanRequest request{.kind = PhaseKind::kAllReduce, .group_size = 2};
  EXPECT_TRUE(build_plan(wrong, request, false).ok());
  const auto plan = build_plan(wrong, request, true);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "bad plan: rank 0, output block 0 lacks the contribution of rank 1 in the end");
}

void add(Hasher& hasher, const BlockRange& range) {
  hasher.integer(static_cast<uint64_t>(range.space)).integer(range.first).integer(range.count);
}

uint64_t hash(const Plan& plan) {
  Hasher hasher;
  hasher.integer(static_cast<uint64_t>(plan.kind)).integer(static_cast<uint64_t>(plan.group_size));
  hasher.integer(static_cast<uint64_t>(plan.me)).integer(static_cast<uint64_t>(plan.root));
  hasher.integer(plan.in_place ? 1 : 0).integer(plan.blocks).integer(plan.scratch);
  hasher.integer(plan.steps.size());
  for (const Step& step : plan.steps) {
    hasher.integer(static_cast<uint64_t>(step.kind)).integer(static_cast<uint64_t>(step.peer)).integer(step.message);
    add(hasher, step.destination);
    hasher.integer(step.logical_first).integer(step.blocks);
    hasher.integer(step.first_source).integer(step.sources);
    hasher.integer(step.first_dependency).integer(step.dependencies);
  }
  hasher.integer(plan.sources.size());
  for (const Source& source : plan.sources) {
    hasher.integer(static_cast<uint64_t>(source.peer));
    add(hasher, source.blocks);
    hasher.integer(source.message);
  }
  hasher.integer(plan.dependencies.size());
  for (const Dependency& d : plan.dependencies) {
    hasher.integer(d.step).integer(d.my_first).integer(d.its_first).integer(d.count);
  }
  // Hashes of plans without these stay as they were.
  if (plan.turned != 0) hasher.integer(plan.turned);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].after != kNoStep) hasher.integer(i).integer(plan.steps[i].after);
  }
  return hasher.digest();
}

// Ranks may run different builds of one version, so plans of the same name must not change unnoticed.
TEST(Catalog, PlansStayTheSame) {
  const std::map<std::string_view, uint64_t> expected = {{"ring", 4261764825535873189u},
                                                         {"direct", 8848006534516918337u},
                                                         {"hd", 1268469879359483922u},
                                                         {"rd", 15400587074468373541u},
                                                         {"tree", 6938877064390844580u},
                                                         {"dbtree", 17197634228303518113u},
                                                         {"binomial", 10363987139312809708u},
                                                         {"bruck", 14024302764386638166u},
                                                         {"dissemination", 16801488549646607670u},
                                                         {"chain", 5953120154432707629u},
                                                         {"rabenseifner", 1071340770403132757u},
                                                         {"otree", 133500940168992775u},
                                                         {"line", 13847624318631017151u},
                                                         {"pairwise", 10081593119911832997u}};
  for (const Algorithm& row : algorithms()) {
    uint64_t all = 0;
    for (const PhaseKind kind : kAllKinds) {
      for (const int32_t size : {2, 6, 7, 8, 10}) {
        const bool pair = kind == PhaseKind::kSend || kind == PhaseKind::kRecv;
        if (pair || !row.serves(kind, size)) continue;
        for (int32_t me = 0; me < size; ++me) {
          for (const bool in_place : {false, true}) {
            all = all * 31 + hash(row.build({kind, size, me, 0, in_place}));
          }
        }
      }
    }
    EXPECT_EQ(all, expected.at(row.name)) << row.name;
  }
}

}  // namespace
}  // namespace trestle
