// `trestle train choose`: the worked cases of the paper's costs, and options that are wrong.
#include "cli/train/choose.h"

#include <gtest/gtest.h>

#include "unit/cli/views_support.h"

namespace trestle {
namespace {

struct Case {
  const char* bytes;
  const char* ratio;
  const char* workers;
  const char* alpha;
  const char* beta;
  double all_gather_s, ring_s, tree_s;
  const char* chosen;
};

// Computed independently (FLEX, table I and equations 4a and 4b).
constexpr Case kCases[] = {
    {"46758048", "0.1", "8", "0.001", "8e-10", 0.05536901376, 0.03476805824, 0.042665794560000005, "ring"},
    {"46758048", "0.001", "8", "0.001", "8e-10", 0.0035236901376000003, 0.0171776805824, 0.009336657945600001,
     "all-gather"},
    {"102228128", "0.01", "8", "0.001", "1.6e-09", 0.025899100672, 0.024769337728000003, 0.023720850432, "tree"},
    {"100000000", "0.01", "2", "0.0001", "1e-09", 0.0021, 0.0023, 0.0033, "all-gather"},
};

ChooseOptions options_of(const Case& each) {
  return {each.bytes, each.ratio, each.workers, each.alpha, each.beta, true};
}

TEST(TrainChoose, HasTheCostsAndTheChoiceOfTheWorkedCases) {
  for (const Case& each : kCases) {
    const JsonValue json = read_json(choose_collective(options_of(each)).value());
    EXPECT_EQ(keys_of(json), (std::set<std::string>{"bytes", "ratio", "workers", "alpha_s", "beta_s", "costs", "rules",
                                                    "chosen", "dense_ring_s"}));
    EXPECT_EQ(member(json, "chosen").text, each.chosen);
    const std::vector<JsonValue>& costs = member(json, "costs").items;
    ASSERT_EQ(costs.size(), 3u);
    EXPECT_EQ(member(costs[0], "collective").text, each.chosen) << "the fastest is the first";
    for (const JsonValue& cost : costs) {
      const std::string name = member(cost, "collective").text;
      const double wanted = name == "ring" ? each.ring_s : name == "tree" ? each.tree_s : each.all_gather_s;
      EXPECT_NEAR(member(cost, "time_s").number, wanted, 1e-9 * wanted) << name;
    }
  }
}

TEST(TrainChoose, ShowsAllCostsAndTheRules) {
  ChooseOptions options = options_of(kCases[2]);
  options.json = false;
  const std::string text = choose_collective(options).value();
  for (const char* part :
       {"102.228 MB of gradients, 0.01 of them sent, 8 workers", "tree                           23.721  chosen",
        "ring                           24.769\n", "all-gather                     25.899\n",
        "rule 5a: ring before tree: no", "rule 5b: ring before all-gather: yes", "rule 5c: tree before all-gather: yes",
        "everything, uncompressed"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

std::string fault(std::string ChooseOptions::*member, const char* value) {
  ChooseOptions options = options_of(kCases[0]);
  options.*member = value;
  const Result<std::string> printed = choose_collective(options);
  return printed.ok() ? "accepted" : printed.error().message;
}

TEST(TrainChoose, NamesOptionsThatAreWrong) {
  EXPECT_EQ(fault(&ChooseOptions::ratio, "0"), "--ratio: 0 is not above 0 and at most 1");
  EXPECT_EQ(fault(&ChooseOptions::ratio, "1.01"), "--ratio: 1.01 is not above 0 and at most 1");
  EXPECT_EQ(fault(&ChooseOptions::ratio, "-0.1"), "--ratio: -0.1 is negative");
  EXPECT_EQ(fault(&ChooseOptions::ratio, "nan"), "--ratio: \"nan\" is not a number");
  EXPECT_EQ(fault(&ChooseOptions::ratio, "1"), "accepted");
  EXPECT_EQ(fault(&ChooseOptions::workers, "1"), "--workers: 1 is not from 2 to 1073741824");
  EXPECT_EQ(fault(&ChooseOptions::workers, "0"), "--workers: 0 is not from 2 to 1073741824");
  EXPECT_NE(fault(&ChooseOptions::workers, "eight"), "accepted");
  EXPECT_EQ(fault(&ChooseOptions::bytes, "0"), "--bytes: must be at least 1");
  EXPECT_EQ(fault(&ChooseOptions::bytes, ""), "--bytes: is needed to choose a collective");
  EXPECT_EQ(fault(&ChooseOptions::alpha, ""), "--alpha: is needed to choose a collective");
  EXPECT_EQ(fault(&ChooseOptions::beta, "-1"), "--beta: -1 is negative");
}

}  // namespace
}  // namespace trestle
