// Steps of DeFT's three networks (arXiv 2503.16815, figures 10, 14 and 15).
#include <cmath>

#include "cli/text_line.h"
#include "cli/train/presets/presets.h"
#include "gradient/deft/baselines.h"
#include "gradient/deft/simulate.h"

namespace trestle {
namespace {

constexpr uint32_t kIterations = 400;
constexpr uint32_t kDeftWorkers = 16;  // that the tables were measured on

// A network as its buckets.
struct DeftModel {
  const char* label;
  std::vector<DeftBucket> buckets;
  double part_us;  // ByteScheduler's parts, as time on link 0
};

// The totals of ResNet-101 are those of table I. The totals of GPT-2 are those that give both comparisons of section 5.
// The paper does not print their buckets, so equal buckets are assumed.
std::vector<DeftModel> models() {
  return {{"VGG-19", vgg19_buckets(), 13'031},
          {"ResNet-101", equal_buckets(8, {59'000, 118'000, 242'000}), 20'000},
          {"GPT-2", equal_buckets(13, {169'400, 380'600, 546'000}), 14'500}};
}

// Milliseconds, and updates per iteration.
struct Times {
  double compute = 0;
  double ddp = 0;
  double priority = 0;
  double one_link = 0;
  double two_links = 0;
  double one_link_updates = 0;
  double two_links_updates = 0;
};

Result<Times> times_of(const DeftModel& model) {
  Times times;
  times.compute = static_cast<double>(forward_us(model.buckets) + backward_us(model.buckets)) / 1e3;
  times.ddp = ddp_iteration_us(model.buckets) / 1e3;
  times.priority = byte_scheduler_iteration_us(model.buckets, model.part_us) / 1e3;
  const DeftRun one = TRY(simulate_deft({model.buckets, {DeftLink{}}}, kIterations));
  const DeftRun two = TRY(simulate_deft({model.buckets, {DeftLink{}, DeftLink{kGlooSlowdownPermille}}}, kIterations));
  times.one_link = one.iteration_us() / 1e3;
  times.two_links = two.iteration_us() / 1e3;
  times.one_link_updates = one.updates_per_iteration();
  times.two_links_updates = two.updates_per_iteration();
  return times;
}

// What is known of one network.
struct DeftTimes {
  Times recalculated;
  double over_ddp, over_priority;                  // recalculated
  double printed_over_ddp, printed_over_priority;  // printed
};

constexpr DeftTimes kKnown[] = {
    {{130.3, 295.1, 258.3, 130.3, 130.3, 0.43, 0.748}, 2.26, 1.98, 2.15, 1.90},
    {{177.0, 315.8, 264.1, 0, 177.0, 0, 0.83}, 1.78, 1.49, 1.73, 1.33},
    {{550, 744.7, 605.6, 0, 550, 0, 1.0}, 1.35, 1.10, 1.62, 1.29},
};

PresetRow times_row(const char* label, const Times& times, const Times& known) {
  return {
      label,
      {cell_of(times.compute, known.compute), cell_of(times.ddp, known.ddp), cell_of(times.priority, known.priority),
       cell_of(times.one_link, known.one_link), cell_of(times.two_links, known.two_links)}};
}

std::string cycle_text(const std::vector<uint32_t>& cycle) {
  std::string text;
  for (const uint32_t batches : cycle) text += (text.empty() ? "" : ", ") + std::to_string(batches);
  return text;
}

std::vector<std::string> conditions() {
  return {
      "DDP sends a bucket when it is ready. ByteScheduler and US-Byte are stood in for by parts, the lowest first.",
      "The second link takes 1.65 times as long. ResNet-101 has 8 equal buckets, GPT-2 13: theirs are not printed."};
}

constexpr const char* kUnknownFigure =
    "Neither what this figure draws nor its numbers are known here: so these are the runs of figure 10 with other "
    "messages, and nothing to compare them with.";

// The network of `model`, with messages that take `factor` times as long.
DeftModel scaled(const DeftModel& model, double factor) {
  DeftModel with = model;
  for (DeftBucket& bucket : with.buckets)
    bucket.comm_us = static_cast<uint64_t>(std::llround(static_cast<double>(bucket.comm_us) * factor));
  with.part_us *= factor;
  return with;
}

// One table per network, one row per factor.
Result<std::vector<PresetTable>> sweep(const std::vector<std::pair<std::string, double>>& factors) {
  std::vector<PresetTable> tables;
  for (const DeftModel& model : models()) {
    PresetTable table{std::string(model.label) + ": time per step, ms",
                      "",
                      {"compute", "DDP", "by priority", "DeFT, 1 link", "DeFT, 2 links", "updates, 1", "updates, 2"},
                      2,
                      {}};
    for (const auto& [label, factor] : factors) {
      const Times times = TRY(times_of(scaled(model, factor)));
      table.rows.push_back(
          {label,
           {PresetCell(times.compute), PresetCell(times.ddp), PresetCell(times.priority), PresetCell(times.one_link),
            PresetCell(times.two_links), PresetCell(times.one_link_updates), PresetCell(times.two_links_updates)}});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

Result<PresetReport> deft_speedups() {
  PresetReport preset;
  preset.conditions = conditions();
  PresetTable steps{
      "time per step, ms", kRecalculated, {"compute", "DDP", "by priority", "DeFT, 1 link", "DeFT, 2 links"}, 1, {}};
  PresetTable updates{"updates per step", kRecalculated, {"1 link", "2 links"}, 3, {}};
  PresetTable ours{"speed-up of DeFT with two links", kRecalculated, {"over DDP", "over by priority"}, 2, {}};
  PresetTable papers{"the same", kPrinted, {"over DDP", "over by priority"}, 2, {}};
  const std::vector<DeftModel> all = models();
  for (size_t i = 0; i < all.size(); ++i) {
    const DeftTimes& known = kKnown[i];
    const Times times = TRY(times_of(all[i]));
    steps.rows.push_back(times_row(all[i].label, times, known.recalculated));
    updates.rows.push_back({all[i].label,
                            {cell_of(times.one_link_updates, known.recalculated.one_link_updates),
                             cell_of(times.two_links_updates, known.recalculated.two_links_updates)}});
    const double over_ddp = times.ddp / times.two_links;
    const double over_priority = times.priority / times.two_links;
    ours.rows.push_back(
        {all[i].label, {PresetCell(over_ddp, known.over_ddp), PresetCell(over_priority, known.over_priority)}});
    papers.rows.push_back(
        {all[i].label,
         {PresetCell(over_ddp, known.printed_over_ddp), PresetCell(over_priority, known.printed_over_priority)}});
  }
  const Times misprinted = TRY(times_of({"", vgg19_buckets(Vgg19Table::kPrinted), 13'031}));
  ours.rows.push_back({"VGG-19, bucket 4 as printed",
                       {PresetCell(misprinted.ddp / misprinted.two_links, 2.19),
                        PresetCell(misprinted.priority / misprinted.two_links, 1.91)}});
  preset.tables = {steps, updates, ours, papers};
  const DeftSystem two{vgg19_buckets(), {DeftLink{}, DeftLink{kGlooSlowdownPermille}}};
  const DeftSystem one{vgg19_buckets(), {DeftLink{}}};
  preset.findings = {"Compute never waits with either number of links; further links only raise the number of updates.",
                     "VGG-19's updates have " + cycle_text(TRY(deft_cycle(two))) + " batches with two links and " +
                         cycle_text(TRY(deft_cycle(one))) + " with one, repeating.",
                     "GPT-2's buckets are not equal in the paper, so its speed-ups are others.",
                     "Table I's coverage of ResNet-101, 1.67, should be 242 / 177 = 1.37; the text says 1.4.",
                     "Every update uses gradients that are at least one step old, which the paper does not count."};
  return preset;
}

Result<PresetReport> deft_bandwidths() {
  PresetReport preset;
  preset.conditions = conditions();
  preset.conditions.emplace_back("All messages take less time in proportion to the bandwidth.");
  preset.tables = TRY(sweep({{"bandwidth x 0.25", 4}, {"x 0.5", 2}, {"x 1", 1}, {"x 2", 0.5}, {"x 4", 0.25}}));
  preset.findings = {kUnknownFigure,
                     "The less bandwidth, the more DeFT gains in time, and the fewer updates it makes."};
  return preset;
}

Result<PresetReport> deft_workers() {
  PresetReport preset;
  preset.conditions = conditions();
  preset.conditions.emplace_back(
      "Messages take (N - 1) / N of the time, as in a ring without startups; 16 as measured.");
  std::vector<std::pair<std::string, double>> factors;
  for (uint32_t workers = 2; workers <= 64; workers *= 2) {
    const auto share = [](double n) { return (n - 1) / n; };
    factors.emplace_back(std::to_string(workers) + " workers", share(workers) / share(kDeftWorkers));
  }
  preset.tables = TRY(sweep(factors));
  preset.findings = {kUnknownFigure, "From 8 workers on the time hardly changes: a ring's bytes per worker do not."};
  return preset;
}

}  // namespace trestle
