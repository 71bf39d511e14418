// TRESTLE_RAILS of several ranks: rates that all know become the dimension's bandwidth, each dimension has the
// interfaces that are named for it, and contradictions are refused on every rank.
//
// The ranks pretend to be on hosts of their own. Each host has loopback, which is a rail where it is named.
#include <gtest/gtest.h>
#include <trestle/trestle.h>

#include <string>
#include <vector>

#include "conformance/api_call.h"
#include "support/ranks.h"

namespace api {
namespace {

class ApiRails : public testing::Test {
 protected:
  void SetUp() override {
    if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes cannot prove that they belong to the job";
  }
};

// rails[r]: TRESTLE_RAILS of rank r.
ranks::Job job_with(const std::vector<std::string>& rails) {
  ranks::Job job;
  job.ranks = static_cast<int>(rails.size());
  job.env = [=](int rank) {
    ranks::Env env{{"TRESTLE_DEBUG", "INFO"}};
    if (!rails[static_cast<size_t>(rank)].empty()) env["TRESTLE_RAILS"] = rails[static_cast<size_t>(rank)];
    return env;
  };
  return job;
}

// Runs an all-reduce on these ranks, and returns what rank 0 has logged.
std::string logged_by(const std::vector<std::string>& rails, const ranks::Settings& settings) {
  ranks::Job job = job_with(rails);
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, settings, &comm)));
    run_and_verify({.count = 100'000}, process.rank, process.ranks, comm);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  const std::vector<ranks::Outcome> outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  return outcomes.front().output;
}

void expect_refused(const std::vector<std::string>& rails, const ranks::Settings& settings, trestleResult_t code,
                    const std::vector<std::string>& facts) {
  ranks::Job job = job_with(rails);
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    EXPECT_TRUE(ranks::refused(ranks::join(process, settings, &comm), code, facts)) << "rank " << process.rank;
    EXPECT_EQ(comm, nullptr);
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST_F(ApiRails, RatesThatAllKnowAreTheBandwidth) {
  const ranks::Settings settings{.ranks = 3, .hosts = "abc"};
  const std::string text = logged_by({"lo@25g", "lo@2.5g", "lo@10g"}, settings);
  EXPECT_TRUE(ranks::contains(text, "dimension 1 has the 2.5 Gb/s that its rails are known to carry")) << text;
}

TEST_F(ApiRails, ARateThatOneDoesNotKnowIsNominal) {
  const ranks::Settings settings{.ranks = 2, .hosts = "ab"};
  for (const std::vector<std::string>& rails : {std::vector<std::string>{"lo@1g", "lo"}, {"lo", "lo@1g"}}) {
    const std::string text = logged_by(rails, settings);
    EXPECT_TRUE(ranks::contains(text, "nominal")) << text;
    EXPECT_FALSE(ranks::contains(text, "are known to carry")) << text;
  }
}

TEST_F(ApiRails, EachDimensionHasItsOwn) {
  const ranks::Settings settings{.ranks = 4, .dims = "2x2", .hosts = "abcd"};
  const std::string text = logged_by({"lo@3g;lo@1g", "lo@2g;lo", "lo@4g;lo@1g", "lo@2g;lo@1g"}, settings);
  EXPECT_TRUE(ranks::contains(text, "dimension 1 has the 2 Gb/s that its rails are known to carry")) << text;
  EXPECT_FALSE(ranks::contains(text, "dimension 2 has")) << text;
}

// A part of the ranks has another shape, so the interfaces of all dimensions count for it.
TEST_F(ApiRails, OfDimensionsServeAPartOfTheRanksToo) {
  const ranks::Settings settings{.ranks = 4, .dims = "2x2", .hosts = "abcd"};
  ranks::Job job = job_with(std::vector<std::string>(4, "lo@1g;lo@2g"));
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, settings, &comm)));
    trestleComm_t part = nullptr;
    ASSERT_TRUE(
        ranks::succeeded(trestleCommSplit(comm, process.rank == 3 ? 1 : 0, process.rank, &part, nullptr), comm));
    if (process.rank < 3) run_and_verify({.count = 1000}, process.rank, 3, part);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(part)));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST_F(ApiRails, OfOtherDimensionsAreRefused) {
  const ranks::Settings settings{.ranks = 3, .timeout_ms = 20'000, .hosts = "abc"};
  expect_refused({"lo", "lo", "lo;lo"}, settings, trestleInvalidUsage,
                 {"rank 2 ", "TRESTLE_RAILS=lo;lo", "rank 0 ", "TRESTLE_RAILS=lo;", "must be the same on all ranks"});
  expect_refused({"lo", "tcp", "lo"}, settings, trestleInvalidUsage, {"rank 1 ", "TRESTLE_RAILS=tcp", "rank 0 "});
  expect_refused({"lo", "", "lo"}, settings, trestleInvalidUsage, {"rank 1 ", "TRESTLE_RAILS=(empty)", "rank 0 "});
}

TEST_F(ApiRails, ThatCannotBeReadAreRefusedWithTheRank) {
  const ranks::Settings settings{.ranks = 2, .timeout_ms = 20'000, .hosts = "ab"};
  expect_refused({"lo", "lo@fast"}, settings, trestleInvalidArgument, {"rank 1 ", "TRESTLE_RAILS=lo@fast", "'fast'"});
}

}  // namespace
}  // namespace api
