// `trestle train choose`: the worked cases of the paper's costs, and options that are wrong.
#include "cli/train/choose.h"

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
    Json json = read_json(choose_collective(options_of(each)).value());
    EXPECT_EQ(keys_of(json), "bytes ratio workers alpha_s beta_s costs rules chosen dense_ring_s");
    EXPECT_EQ(json["chosen"], each.chosen);
    ASSERT_EQ(json["costs"].size(), 3u);
    EXPECT_EQ(json["costs"][0]["collective"], each.chosen) << "the fastest is the first";
    for (const Json& cost : json["costs"]) {
      const Json& name = cost.at("collective");
      const double wanted = name == "ring" ? each.ring_s : name == "tree" ? each.tree_s : each.all_gather_s;
      EXPECT_NEAR(cost.at("time_s"), wanted, 1e-9 * wanted) << name;
    }
  }
  ChooseOptions options = options_of(kCases[2]);
  options.json = false;
  expect_parts(choose_collective(options).value(),
               {"tree                           23.721  chosen", "rule 5a: ring before tree: no", "uncompressed"});
}

TEST(TrainChoose, NamesOptionsThatAreWrong) {
  constexpr struct {
    std::string ChooseOptions::*member;
    const char* value;
    const char* sentence;
  } kRefusals[] = {
      {&ChooseOptions::ratio, "0", "--ratio: 0 is not above 0 and at most 1"},
      {&ChooseOptions::ratio, "1.01", "--ratio: 1.01 is not above 0 and at most 1"},
      {&ChooseOptions::ratio, "-0.1", "--ratio: -0.1 is negative"},
      {&ChooseOptions::ratio, "nan", "--ratio: \"nan\" is not a number"},
      {&ChooseOptions::ratio, "1", "accepted"},
      {&ChooseOptions::workers, "1", "--workers: 1 is not from 2 to 1073741824"},
      {&ChooseOptions::workers, "eight", "--workers: 'eight' is not an integer"},
      {&ChooseOptions::bytes, "0", "--bytes: must be at least 1"},
      {&ChooseOptions::bytes, "1.5M", "accepted"},
      {&ChooseOptions::bytes, "", "--bytes: is needed to choose a collective"},
      {&ChooseOptions::alpha, "", "--alpha: is needed to choose a collective"},
      {&ChooseOptions::beta, "-1", "--beta: -1 is negative"},
  };
  for (const auto& [member, value, sentence] : kRefusals) {
    ChooseOptions options = options_of(kCases[0]);
    options.*member = value;
    EXPECT_EQ(refusal_of(choose_collective(options)), sentence) << value;
  }
}

}  // namespace
}  // namespace trestle
