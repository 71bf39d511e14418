// The parts around the perf binaries' table: statistics of iterations, JSON, splits, variables.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "perf/driver/environment.h"
#include "perf/driver/split.h"
#include "perf/report/json.h"
#include "perf/report/json_file.h"
#include "perf/report/json_report.h"
#include "perf/report/tails.h"

namespace trestle::perf {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PerfTails, AreByNearestRank) {
  std::vector<double> samples = {1000};  // not counted
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Tails tails = tails_of(samples, 1);
  EXPECT_EQ(tails.min, 1);
  EXPECT_EQ(tails.max, 100);
  EXPECT_EQ(tails.mean, 50.5);
  EXPECT_EQ(tails.p50, 50);
  EXPECT_EQ(tails.p95, 95);
  EXPECT_EQ(tails.p99, 99);
  EXPECT_NEAR(tails.deviation, 28.866, 0.001);
  EXPECT_NEAR(tails.cv_percent, 57.161, 0.001);
}

TEST(PerfTails, OfFewSamples) {
  EXPECT_EQ(tails_of({7}, 0).p99, 7);
  EXPECT_EQ(tails_of({7}, 0).cv_percent, 0);
  EXPECT_EQ(tails_of({7}, 1).max, 0);
  EXPECT_EQ(tails_of({}, 0).mean, 0);
}

TEST(PerfJson, WritesWhatJsonAllows) {
  Json json;
  json.open('{').key("a\"b").text("line\nend\\").key("n").open('[').number(0.5).number(std::nan("")).integer(-3);
  json.number(std::numeric_limits<double>::infinity()).truth(true).null().open('{').close('}').close(']');
  json.key("last").truth(false).close('}');
  EXPECT_EQ(json.str(), R"({"a\"b":"line\u000aend\\","n":[0.5,null,-3,null,true,null,{}],"last":false})");
}

TEST(PerfJson, ReportsOfRunsThatFailAreComplete) {
  const std::string path = ::testing::TempDir() + "perf_failed_test." + std::to_string(getpid()) + ".json";
  JsonFile file;
  ASSERT_EQ(file.create(path), "");
  setenv("TRESTLE_SECRET", "hunter2", 1);
  char name[] = "x_perf", flag[] = "-P", four[] = "4", zero[] = "0";
  char* argv[] = {name, flag, four, flag, zero};
  JsonReport report(5, argv, "x_perf", file);
  unsetenv("TRESTLE_SECRET");
  Half half;
  half.time_us = 2;
  report.row({1024, 256, "float", "sum", -1}, half, nullptr, Options{});
  EXPECT_EQ(report.finish({0, 0, std::nullopt, "rank 3 died"}), "");
  EXPECT_EQ(report.finish({}), "");  // only the first call counts
  const std::string text = contents(path);
  unlink(path.c_str());
  EXPECT_NE(text.find(R"("args":["x_perf","-P","4"])"), std::string::npos) << text;
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  EXPECT_EQ(text.find("PATH="), std::string::npos);
  EXPECT_NE(text.find(R"("config":null)"), std::string::npos);
  EXPECT_NE(text.find(R"("nwrong":null},"in_place":null)"), std::string::npos);
  EXPECT_NE(text.find(R"("errors":["rank 3 died"])"), std::string::npos);
}

TEST(PerfSplit, UnderstandsWordsSignsAndBases) {
  const struct {
    const char *split, *mask;
    int process, color;
  } kCases[] = {{"MOD 8", "", 11, 3},   {"%8", "", 11, 3}, {"DIV 4", "", 11, 2}, {"/0x4", "", 11, 2},
                {"AND 0b10", "", 7, 2}, {"&2", "", 5, 0},  {"or 1", "", 4, 5},   {"| 0x8", "", 1, 9},
                {"", "0x3", 6, 2},      {"", "c", 6, 4},   {"mod=3", "", 5, 2},  {"DIV 2", "f", 5, 2},
                {"", "", 5, 0}};
  for (const auto& c : kCases) {
    const Split split = parse_split(c.split, c.mask);
    EXPECT_EQ(split.problem, "") << c.split;
    EXPECT_EQ(split.color(c.process), c.color) << c.split << " " << c.mask;
  }
}

TEST(PerfSplit, RefusesWithASentence) {
  for (const char* bad : {"MOD", "MOD 0", "DIV 0", "8", "XOR 3", "MOD -1", "MOD 3x", "& 0b2", "MOD 0x"}) {
    EXPECT_NE(parse_split(bad, "").problem.find("NCCL_TESTS_SPLIT is AND"), std::string::npos) << bad;
  }
  EXPECT_NE(parse_split("", "zz").problem.find("hexadecimal"), std::string::npos);
}

TEST(PerfSplit, GroupsAreNumberedInOrder) {
  const Split split = parse_split("MOD 3", "");
  const Layout group = group_layout({5, 8, 2, 3}, split);  // processes 2 and 5 of 8
  EXPECT_EQ(group.process, 1);
  EXPECT_EQ(group.processes, 2);
  EXPECT_EQ(group.nranks(), 12);
  EXPECT_EQ(group.first_rank(1), 9);
  const Layout all = group_layout({5, 8, 2, 3}, Split{});
  EXPECT_EQ(all.process, 5);
  EXPECT_EQ(all.processes, 8);
}

TEST(PerfEnvironment, OurNamesHold) {
  setenv("NCCL_TESTS_MIN_BW", "1", 1);
  setenv("TRESTLE_TESTS_MIN_BW", "2", 1);
  setenv("TRESTLE_TESTS_SPLIT", "", 1);
  adopt_test_variables();
  EXPECT_EQ(test_variable("MIN_BW"), "2");
  EXPECT_EQ(test_variable("SPLIT"), "");
  EXPECT_EQ(std::getenv("TRESTLE_TESTS_MIN_BW"), nullptr);
  unsetenv("NCCL_TESTS_MIN_BW");
}

}  // namespace
}  // namespace trestle::perf
