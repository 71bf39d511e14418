// How many helper threads a process has, on which processors, and which of them drives a rank.
#include "engine/run/progress_places.h"

#include <gtest/gtest.h>

#include "support/node_files.h"

namespace trestle {
namespace progress_places_test {
namespace {

using Lists = std::vector<std::vector<int>>;

// ---- how many there are

constexpr uint64_t kAll = ~uint64_t{0};

ProgressPlaces places_of(const std::vector<std::string>& nodes, uint64_t mask = kAll, int64_t wanted = 0) {
  const NodeFiles files(nodes);
  return choose_progress_places(wanted, files.path(), {mask});
}

TEST(ProgressPlaces, AreOnePerNodeOfTheProcess) {
  EXPECT_EQ(places_of({"0-3"}).processors, Lists{{}});
  const ProgressPlaces two = places_of({"0-1,4", "2-3"});
  EXPECT_EQ(two.processors, (Lists{{0, 1, 4}, {2, 3}}));
  EXPECT_EQ(two.why, "one for each NUMA node");
  EXPECT_EQ(places_of({"0-3", "4-7"}, 0x42).processors, (Lists{{1}, {6}}));
  EXPECT_EQ(places_of({"0-3", "4-7"}, 0xf0).processors, Lists{{}}) << "its mask has one of two";
  EXPECT_EQ(places_of({"0-1", "", "2-3"}).processors, (Lists{{0, 1}, {2, 3}})) << "one has memory only";
}

TEST(ProgressPlaces, AreOneWhereTheNodesAreNotKnown) {
  for (const ProgressPlaces& places :
       {places_of({}), places_of({"0-1", "2-"}), places_of({"0-1", "2-3"}, 0), places_of({"", ""})}) {
    EXPECT_EQ(places.processors, Lists{{}});
    EXPECT_NE(places.why.find("known"), std::string::npos) << places.why;
  }
}

TEST(ProgressPlaces, AreAtMostEight) {
  std::vector<std::string> nodes;
  for (int node = 0; node < 12; ++node) nodes.push_back(std::to_string(node));
  const ProgressPlaces places = places_of(nodes);
  EXPECT_EQ(places.processors, (Lists{{0, 1}, {2}, {3, 4}, {5}, {6, 7}, {8}, {9, 10}, {11}}));
  EXPECT_EQ(places.why, "they share 12 NUMA nodes");
}

TEST(ProgressPlaces, AreAsManyAsTheVariableSays) {
  for (const std::vector<std::string>& nodes : {std::vector<std::string>{}, {"0-1", "2-3"}}) {
    const ProgressPlaces places = places_of(nodes, kAll, 3);
    EXPECT_EQ(places.processors, Lists(3)) << "not bound";
    EXPECT_EQ(places.why, "TRESTLE_PROGRESS_THREADS");
  }
  EXPECT_EQ(places_of({"0-1", "2-3"}, kAll, 1).processors, Lists(1));
}

TEST(ProgressPlaces, KnowTheirNodes) {
  EXPECT_EQ(places_of({"0-1", "", "2-3"}).nodes, (Lists{{0}, {2}}));
  EXPECT_EQ(places_of({"0-3", "4-7"}, 0xf0).nodes, Lists{{1}}) << "it is not bound, but its node is known";
  EXPECT_EQ(places_of({}).nodes, Lists{});
  EXPECT_EQ(places_of({"0-1", "2-3"}, kAll, 2).nodes, Lists{}) << "not bound";
  std::vector<std::string> nodes;
  for (int node = 0; node < 12; ++node) nodes.push_back(std::to_string(node));
  EXPECT_EQ(places_of(nodes).nodes, (Lists{{0, 1}, {2}, {3, 4}, {5}, {6, 7}, {8}, {9, 10}, {11}}));
}

// ---- which of them drives a rank

struct Case {
  const char* what;
  RankSite site;
  std::optional<size_t> helper;
  const char* why;
};

void expect_choices(const ProgressPlaces& places, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const HelperChoice choice = choose_helper(places, c.site);
    EXPECT_EQ(choice.helper, c.helper) << c.what;
    EXPECT_EQ(choice.why, c.why) << c.what;
  }
}

TEST(RankSites, NearRailsAreDrivenThere) {
  const std::vector<int> all = {0, 1, 2, 3};
  expect_choices(places_of({"0-1", "2-3"}),
                 {{"rails at the node", {2, all, 1}, 1, "its rails are at NUMA node 1"},
                  {"made elsewhere", {0, all, 1}, 1, "its rails are at NUMA node 1"},
                  {"rails of no known node", {2, all, -1}, 1, ""},
                  {"made at the first node", {1, all, -1}, 0, ""},
                  {"a node without processors of the process",
                   {0, all, 5},
                   0,
                   "its rails are at NUMA node 5, where this process may not run"},
                  {"bound to a part of both", {2, {1, 2}, 0}, 0, "its rails are at NUMA node 0"},
                  {"nothing is known", {-1, {}, -1}, std::nullopt, ""},
                  {"only rails are known", {-1, {}, 1}, 1, "its rails are at NUMA node 1"}});
}

TEST(RankSites, WhatTheUserHasBoundStaysThere) {
  expect_choices(places_of({"0-1", "2-3"}),
                 {{"to one processor", {0, {0}, 1}, 0, "its rails are at NUMA node 1, but the rank is bound elsewhere"},
                  {"to a node", {3, {2, 3}, 0}, 1, "its rails are at NUMA node 0, but the rank is bound elsewhere"},
                  {"to the node of its rails", {3, {2, 3}, 1}, 1, "its rails are at NUMA node 1"},
                  {"without known rails", {3, {2, 3}, -1}, 1, ""}});
}

TEST(RankSites, WhereOneDrivesOrNoneIsBound) {
  expect_choices(places_of({"0-3"}), {{"one node", {0, {0, 1}, 0}, 0, "its rails are at NUMA node 0"},
                                      {"no rails", {0, {0, 1}, -1}, std::nullopt, ""},
                                      {"rails at another node",
                                       {0, {0, 1}, 1},
                                       std::nullopt,
                                       "its rails are at NUMA node 1, where this process may not run"}});
  for (const ProgressPlaces& places : {places_of({"0-1", "2-3"}, kAll, 2), places_of({})})
    expect_choices(places, {{"no nodes", {0, {0, 1}, 1}, std::nullopt, ""}});
}

TEST(RankSites, NodesThatShareAThread) {
  std::vector<std::string> nodes;
  for (int node = 0; node < 12; ++node) nodes.push_back(std::to_string(node));
  expect_choices(places_of(nodes), {{"the second of two", {5, {0, 5}, 1}, 0, "its rails are at NUMA node 1"}});
}

}  // namespace
}  // namespace progress_places_test
}  // namespace trestle
