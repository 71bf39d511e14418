// The output of `trestle sim` for one operation: JSON, Chrome trace, SVG and text.
#include <algorithm>
#include <set>

#include "cli/sim/lanes_text.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_svg.h"
#include "cli/sim/sim_text.h"
#include "cli/sim/variants.h"
#include "study/paper_systems.h"
#include "support/grids.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

SimCase small_case(SimModel model) {
  SimCase sim_case;
  sim_case.model = model;
  sim_case.operation.bytes = uint64_t{8} << 20;
  sim_case.operation.chunks = 4;
  sim_case.operation.topology = grid_of({{4, 80'000, 1000}, {4, 40'000, 1000}});
  return sim_case;
}

SimView run(const SimCase& sim_case) {
  const auto view = run_case(sim_case);
  EXPECT_TRUE(view.ok()) << view.error().message;
  return view.ok() ? view.value() : SimView{};
}

constexpr SimModel kModels[] = {SimModel::kPaper, SimModel::kSteps, SimModel::kEngine};

TEST(SimJson, HasExactlyWhatIsDocumentedInEveryModel) {
  for (const SimModel model : kModels) {
    const SimView view = run(small_case(model));
    Json json = read_json(sim_json(view));
    EXPECT_EQ(keys_of(json), "time_ns utilization ideal_time_ns fluid_bound_ns sched chunks dimensions");
    EXPECT_NEAR(json["time_ns"], view.time_ns, 0.01);
    EXPECT_NEAR(json["utilization"], 0.65, 0.35);
    EXPECT_LE(json["ideal_time_ns"], json["fluid_bound_ns"].get<double>() * (1 + 1e-5));
    EXPECT_EQ(json["sched"], "themis");
    double bytes = 0;
    for (Json& chunk : json["chunks"]) {
      EXPECT_EQ(keys_of(chunk), "bytes rs ag");
      bytes += chunk["bytes"].get<double>();
      EXPECT_EQ(chunk["rs"].size(), 2u);
      EXPECT_EQ(chunk["rs"][0].get<int>() + chunk["rs"][1].get<int>(), 3) << "dimensions from 1";
    }
    EXPECT_NEAR(bytes, 8 << 20, 1);
    ASSERT_EQ(json["dimensions"].size(), 2u);
    std::set<std::string> phases;
    for (Json& dimension : json["dimensions"]) {
      EXPECT_EQ(keys_of(dimension), "busy_ns bytes order");
      for (const Json& phase : dimension["order"]) phases.insert(phase.dump());
    }
    EXPECT_EQ(phases.size(), 4u * 4u) << "each phase once";
    size_t events = 0;
    const Json trace = read_json(sim_trace(view));
    for (const Json& event : trace.at("traceEvents")) events += event.at("ph") == "X" && event.at("dur") >= 0;
    EXPECT_EQ(events, phases.size());
    const std::string svg = sim_svg(view);
    EXPECT_EQ(xml_fault(svg), "");
    expect_parts(svg, {"dimension 1: 4 ranks", "dimension 2: 4 ranks", "all-gather", "utilisation", "chunk 3"});
  }
  EXPECT_EQ(xml_fault(sim_svg(SimView{})), "");
}

TEST(SimJson, HalvesThatACollectiveHasNotAreEmpty) {
  SimCase sim_case = small_case(SimModel::kSteps);
  sim_case.operation.collective = Collective::kAllGather;
  const Json json = read_json(sim_json(run(sim_case)));
  double bytes = 0;
  for (const Json& chunk : json.at("chunks")) {
    EXPECT_TRUE(chunk.at("rs").empty());
    EXPECT_EQ(chunk.at("ag").size(), 2u);
    bytes += chunk.at("bytes").get<double>();
  }
  EXPECT_NEAR(bytes, 8 << 20, 1) << "resident before the operation";
}

SimCase case_with_rails(SimModel model) {
  SimCase sim_case = small_case(model);
  sim_case.operation.topology.dimensions[1].rails = {{"eth1", 30'000}, {"eth2", 10'000}};
  return sim_case;
}

TEST(SimJson, HasRailsWhereTheyAreSimulated) {
  const SimView view = run(case_with_rails(SimModel::kEngine));
  Json dimensions = read_json(sim_json(view))["dimensions"];
  EXPECT_EQ(keys_of(dimensions[0]), "busy_ns bytes order");
  EXPECT_EQ(keys_of(dimensions[1]), "busy_ns bytes order rails");
  ASSERT_EQ(dimensions[1]["rails"].size(), 2u);
  double share = 0;
  double bytes = 0;
  for (const Json& rail : dimensions[1]["rails"]) {
    EXPECT_EQ(keys_of(rail), "interface bytes share busy_ns again_bytes losses");
    EXPECT_LE(rail.at("busy_ns"), view.time_ns);
    share += rail.at("share").get<double>();
    bytes += rail.at("bytes").get<double>();
  }
  EXPECT_EQ(dimensions[1]["rails"][1]["interface"], "eth2");
  EXPECT_NEAR(share, 1, 1e-5);
  EXPECT_GE(bytes, dimensions[1]["bytes"].get<double>());
  expect_parts(sim_text(view), {"dimension 2, eth2, 10 Gb/s"});
  EXPECT_EQ(xml_fault(sim_svg(view)), "");
  for (const SimModel model : {SimModel::kPaper, SimModel::kSteps}) {
    const SimView one_link = run(case_with_rails(model));
    EXPECT_TRUE(one_link.lanes[1].rails.empty());
    expect_parts(sim_text(one_link), {"--model engine simulates them one by one"});
  }
}

TEST(SimRun, RailsThatFailTakeLongerAndAreCounted) {
  SimCase sim_case = case_with_rails(SimModel::kEngine);
  const double quiet_ns = run(sim_case).time_ns;
  sim_case.rails = {parse_sim_rail("eth1:drop@0.0001").value()};
  sim_case.rail_silence_ns = 100'000;
  const SimView view = run(sim_case);
  EXPECT_GT(view.time_ns, 1.5 * quiet_ns);
  EXPECT_EQ(view.lanes[1].rails[0].losses, 1u);
  EXPECT_EQ(view.lanes[1].rails[1].losses, 0u);
}

TEST(SimText, SaysTimesAndNotes) {
  SimCase sim_case = small_case(SimModel::kSteps);
  sim_case.operation.bytes = 3 * 16 * 4;
  const SimView view = run(sim_case);
  EXPECT_EQ(view.chunks.size(), 3u) << "no messages without data";
  expect_parts(sim_text(view), {"time ", "utilisation", "fluid bound", "note: 3 chunks instead of 4", "model steps"});
}

TEST(SimView, ActivityAddsUpToTheBusyTime) {
  for (const SimModel model : kModels) {
    const SimView view = run(small_case(model));
    for (const SimLane& lane : view.lanes) {
      double sum_ns = 0;
      for (const double share : activity(lane, view.time_ns, 50)) sum_ns += share * view.time_ns / 50;
      if (model != SimModel::kEngine) {
        EXPECT_NEAR(sum_ns, lane.busy_ns, 1e-6 * view.time_ns);
      }
      EXPECT_LE(sum_ns, lane.busy_ns * (1 + 1e-6));
      const std::vector<uint32_t> rows = rows_of(lane);
      ASSERT_EQ(rows.size(), lane.phases.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (rows[i] != rows[j]) continue;
          EXPECT_LE(lane.phases[j].end_ns, lane.phases[i].start_ns);
        }
      }
    }
  }
}

TEST(SimRun, RefusesWhatTheEngineCannotHold) {
  SimCase ranks = small_case(SimModel::kEngine);
  ranks.operation.topology.dimensions[0].size = 100'000;
  expect_parts(refusal_of(run_case(ranks)), {"at most 2048 ranks"});
  SimCase segments = small_case(SimModel::kEngine);
  segments.operation.bytes = uint64_t{1} << 43;
  expect_parts(refusal_of(run_case(segments)), {"16000000 segments are possible"});
  SimCase switches = small_case(SimModel::kSteps);
  switches.operation.topology.dimensions[0].in_network_reduction = true;
  EXPECT_FALSE(run_case(switches).ok());
}

// With whole messages the model of whole phases is inaccurate.
SimCase whole_messages(SimModel model, const ScheduleVariant& variant) {
  SimCase sim_case;
  sim_case.model = model;
  sim_case.segments.per_message = 1;
  sim_case.operation.bytes = uint64_t{100} << 20;
  sim_case.operation.policy = variant.policy;
  sim_case.operation.intra = variant.intra;
  sim_case.operation.topology = even_grid({4, 2, 2}, {.bandwidth_mbps = 800'000, .latency_ns = 700});
  return sim_case;
}

// A case on the 1024 ranks of a system of the paper.
SimCase of_the_paper(const ScheduleVariant& variant) {
  SimCase sim_case = whole_messages(SimModel::kSteps, variant);
  sim_case.operation.topology = to_topology(paper_systems()[1]);
  return sim_case;
}

TEST(SimPlan, AutoIsNoSlowerThanAnyPolicyInTheModelOfSteps) {
  double auto_ns = 0;
  double fastest_ns = 1e18;
  for (const ScheduleVariant& variant : schedule_variants()) {
    const double ns = run(of_the_paper(variant)).time_ns;
    if (variant.policy == "auto") auto_ns = ns;
    fastest_ns = std::min(fastest_ns, ns);
  }
  EXPECT_LE(auto_ns, fastest_ns * (1 + 1e-9));
  // The best schedule of whole phases is not the best one of steps.
  const SimCase sim_case = of_the_paper({"auto", "auto", "scf"});
  const PaperResult by_phases = run_paper(sim_case.operation).value();
  SimulateOptions options;
  options.segments = sim_case.segments;
  const auto report = simulate_schedule(SimModel::kSteps, schedule_in_bytes(by_phases), by_phases.topology, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_LT(auto_ns, static_cast<double>(report.value().time_ps) / 1000 / 1.05);
}

TEST(SimPlan, IsThePapersOnlyInThePapersModel) {
  const ScheduleVariant variant{"auto", "auto", "scf"};
  SimCase by_phases = of_the_paper(variant);
  by_phases.model = SimModel::kPaper;
  const SimView paper = run(by_phases);
  const PaperResult result = run_paper(by_phases.operation).value();
  EXPECT_DOUBLE_EQ(paper.time_ns, result.time.ns());
  const SimView steps = run(whole_messages(SimModel::kSteps, variant));
  const SimView engine = run(whole_messages(SimModel::kEngine, variant));
  const auto orders = [](const SimView& view) {
    std::vector<std::vector<PhaseId>> lanes;
    for (const SimLane& lane : view.lanes) {
      for (lanes.emplace_back(); const SimPhaseView& phase : lane.phases) lanes.back().push_back(phase.id);
    }
    return lanes;
  };
  EXPECT_TRUE(orders(steps) == orders(engine)) << "both planned by steps";
  EXPECT_FALSE(orders(run(of_the_paper(variant))) == orders(paper));
}

TEST(SimPlan, KeepsAsManyPhasesInFlightAsAskedFor) {
  SimCase sim_case = of_the_paper({"themis+fifo", "themis", "fifo", true});
  const double policy_ns = run(sim_case).time_ns;
  sim_case.in_flight = 1;
  EXPECT_GT(run(sim_case).time_ns, 1.2 * policy_ns);
}

TEST(LanesText, ShowsWhichChunkHasTheLink) {
  SimLane lane;
  lane.name = "link";
  lane.busy_ns = 75;
  lane.phases = {{{0, 0}, PhaseKind::kReduceScatter, 0, 50}, {{1, 1}, PhaseKind::kAllGather, 75, 100}};
  EXPECT_EQ(lanes_text({lane}, 100, 8), "  link, busy 75.0 %\n  |0000..11|\n  |>>>>  <<|\n  0  100 ns\n");
  EXPECT_EQ(sparkline({0, 0.5, 1}), " ▄█");
}

}  // namespace
}  // namespace trestle
