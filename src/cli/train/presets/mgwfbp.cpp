// MG-WFBP's simulations of many workers (arXiv 1912.09268, figures 10 and 11).
#include <algorithm>

#include "cli/text_line.h"
#include "cli/train/presets/presets.h"
#include "cli/train/scale.h"
#include "gradient/networks.h"

namespace trestle {
namespace {

// From its own two message times: on 8 workers 200 KB take 1.5 ms, 400 KB 1.8 ms, so a = 1.2 ms = 14 alpha and
// b = 1.5 ns = 14/8 beta in a ring.
constexpr double kMgwfbpStartup_s = 1.2e-3 / 14;
constexpr double kPerByte_s = 1.5e-9 * 8 / 14;

constexpr const char* kPolicies[] = {"wfbp", "sync", "mgwfbp_paper", "optimal"};
enum Column : size_t { kWfbp, kSync, kPaper, kOptimal };

ScaleReport scaled(const GradientWorkload& workload, AllReduceAlgorithm algorithm, ScaleRange range) {
  std::vector<ChosenPolicy> policies;
  for (const char* name : kPolicies) policies.push_back(parse_gradient_policy(name).value());
  const TrainNetwork network{{kMgwfbpStartup_s, kPerByte_s, 0, 1}, algorithm};
  return scale_training({"resnet50@k80", workload, network, range, policies, kLibertyNone, {}});
}

double ms(const ScaleReport& report, Column column, size_t row) {
  return 1e3 * report.curves[column].points[row]->iteration_s;
}

// What was calculated before, for one number of workers. A time of 0 or a number of messages of -1: not calculated.
struct Known {
  uint32_t workers = 0;
  double paper_ms = 0;
  double paper_messages = -1;
  double optimal_ms = 0;
  double optimal_messages = -1;
};

PresetTable times(const ScaleReport& report, const std::vector<Known>& all_known) {
  PresetTable table{"time per step, ms, and number of messages",
                    all_known.empty() ? "" : kRecalculated,
                    {"WFBP", "SyncEASGD", "Algorithm 1", "messages", "optimal", "messages"},
                    1,
                    {}};
  for (size_t row = 0; row < report.workers.size(); ++row) {
    Known known;
    for (const Known& each : all_known) {
      if (each.workers == report.workers[row]) known = each;
    }
    const auto messages = [&](Column column) { return 1.0 * report.curves[column].points[row]->messages; };
    table.rows.push_back(
        {std::to_string(report.workers[row]) + " workers",
         {PresetCell(ms(report, kWfbp, row)), PresetCell(ms(report, kSync, row)),
          cell_of(ms(report, kPaper, row), known.paper_ms), PresetCell::count(messages(kPaper), known.paper_messages),
          cell_of(ms(report, kOptimal, row), known.optimal_ms),
          PresetCell::count(messages(kOptimal), known.optimal_messages)}});
  }
  return table;
}

std::vector<std::string> conditions(const char* algorithm) {
  return {"ResNet-50, forward 205 ms, backward 410 ms: assumed, because the paper has no layer times of its K80.",
          line("alpha %.2f us, beta %.4f ns: from the paper's two message times on 8 workers.", 1e6 * kMgwfbpStartup_s,
               1e9 * kPerByte_s),
          algorithm};
}

// The least number of workers, up to 64, for which one message is faster than single tensors; 0: none.
uint32_t crossing(const GradientWorkload& workload) {
  for (uint32_t workers = 2; workers <= 64; ++workers) {
    const ScaleReport at = scaled(workload, AllReduceAlgorithm::kRing, {workers, workers});
    if (ms(at, kSync, 0) < ms(at, kWfbp, 0)) return workers;
  }
  return 0;
}

// Entry of a number of workers that the report has.
size_t row_of(const ScaleReport& report, uint32_t workers) {
  size_t row = 0;
  while (report.workers[row] != workers) ++row;
  return row;
}

}  // namespace

Result<PresetReport> mgwfbp_ring() {
  const GradientWorkload workload = TRY(built_in_workload("resnet50@k80"));
  const ScaleReport report = scaled(workload, AllReduceAlgorithm::kRing, {4, 2048});
  PresetReport preset;
  preset.conditions = conditions("Ring all-reduces.");
  preset.tables.push_back(times(report, {{128, 810.7, 1, 637.1, 10}, {256, 833.3, 1, 659.7, 6}}));
  const size_t at_64 = row_of(report, 64);
  const size_t at_256 = row_of(report, 256);
  const size_t at_1024 = row_of(report, 1024);
  const uint32_t overtakes = crossing(workload);
  preset.tables.push_back(
      {"what must be seen",
       kRecalculated,
       {"ours"},
       2,
       {{"workers from which SyncEASGD is faster than WFBP (near)", {PresetCell::count(overtakes, 16)}},
        {"WFBP / Algorithm 1, 64 workers", {PresetCell(ms(report, kWfbp, at_64) / ms(report, kPaper, at_64), 3.4)}},
        {"SyncEASGD / Algorithm 1, 64 workers",
         {PresetCell(ms(report, kSync, at_64) / ms(report, kPaper, at_64), 1.28)}},
        {"Algorithm 1 / optimal, 1024 workers",
         {PresetCell(ms(report, kPaper, at_1024) / ms(report, kOptimal, at_1024), 1.15)}}}});
  preset.findings = {
      line("The paper concludes that one message is best for 256 workers and more. That is a fault of Algorithm 1: it "
           "ends in one message and %.1f ms, and the optimum takes %.1f ms in %u messages.",
           ms(report, kPaper, at_256), ms(report, kOptimal, at_256), report.curves[kOptimal].points[at_256]->messages),
      "Theorem 1 says that Algorithm 1 is optimal. It is not: each step adds a wait below a startup, and the waits add "
      "up.",
      "The paper's own figures of gains are lost in the stored text, so there are none to compare with."};
  preset.svg = scale_svg(report);
  return preset;
}

Result<PresetReport> mgwfbp_double_tree() {
  const GradientWorkload workload = TRY(built_in_workload("resnet50@k80"));
  const ScaleReport report = scaled(workload, AllReduceAlgorithm::kDoubleBinaryTree, {4, 2048});
  PresetReport preset;
  preset.conditions =
      conditions("Double binary trees: a = 2 alpha lg N, b = 2 beta + gamma. The row of the paper's table II is lost.");
  preset.tables.push_back(times(report, {}));
  const size_t last = row_of(report, 2048);
  double least_lead = 1e300;
  for (size_t row = 0; row < report.workers.size(); ++row)
    least_lead = std::min(least_lead, ms(report, kSync, row) / ms(report, kWfbp, row));
  preset.tables.push_back(
      {"what must be seen",
       kRecalculated,
       {"ours"},
       2,
       {{"WFBP / optimal, 2048 workers", {PresetCell(ms(report, kWfbp, last) / ms(report, kOptimal, last), 1.11)}},
        {"least SyncEASGD / WFBP, 4 to 2048 workers", {PresetCell(least_lead)}}}});
  preset.findings = {
      "Single tensors stay ahead of one message up to 2048 workers, because a startup grows with the logarithm only.",
      "What is remembered of the lost row, b = beta + gamma, is less than any all-reduce needs."};
  preset.svg = scale_svg(report);
  return preset;
}

}  // namespace trestle
