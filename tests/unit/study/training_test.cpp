// Tables of layers, the roofline, the steps of an iteration and the study over systems.
#include "study/training.h"

#include <gtest/gtest.h>

#include "study/model_split.h"
#include "study/paper_systems.h"
#include "unit/sched/systems.h"

namespace trestle {
namespace {

const Workload& named(std::string_view name) {
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
  }
  ADD_FAILURE() << "no " << name;
  return workloads().front();
}

Topology two(int32_t inner, int32_t outer) {
  Topology topology;
  topology.dimensions = {paper_dimension(inner, DimensionKind::kSwitch, 1200, 700),
                         paper_dimension(outer, DimensionKind::kSwitch, 800, 1700)};
  return topology;
}

TEST(Workloads, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameters(named("ResNet-152")), 60'192'808u);
  EXPECT_EQ(parameters(named("GNMT")), 160'671'297u);
  EXPECT_EQ(parameters(named("DLRM")) * kElementBytes, 114'823'168u);
  EXPECT_NEAR(static_cast<double>(parameters(named("Transformer-1T"))), 1.008e12, 0.0005e12);
}

TEST(Workloads, HaveThePublishedNumbersOfOperations) {
  uint64_t macs = 0;
  for (const WorkloadLayer& layer : named("ResNet-152").layers) macs += layer.repeat * layer.macs;
  EXPECT_NEAR(static_cast<double>(macs), 11.5e9, 0.1e9);
  // Narayanan et al., equation 3 without the recomputation of activations: 72 B s l h^2 (1 + s/6h + V/12lh).
  double operations = 0;
  for (const WorkloadLayer& layer : named("Transformer-1T").layers) {
    operations += 3 * 2 * static_cast<double>(layer.repeat) * static_cast<double>(layer.macs);
  }
  const double expected =
      72.0 * 2048 * 128 * 25600 * 25600 * (1 + 2048.0 / (6 * 25600) + 51200.0 / (12.0 * 128 * 25600));
  EXPECT_NEAR(operations / expected, 1, 0.001);
}

TEST(Workloads, SayWhatIsAssumed) {
  for (const Workload& workload : workloads()) {
    EXPECT_FALSE(workload.source.empty()) << workload.name;
    EXPECT_FALSE(workload.assumptions.empty()) << workload.name;
    EXPECT_GE(workload.paper.ideal, workload.paper.themis) << workload.name;
  }
}

TEST(Roofline, IsTheLongerOfArithmeticAndMemory) {
  const Accelerator accelerator{.peak_tflops = 200, .attained = 0.5, .memory_gbytes = 1000};
  Workload workload;
  workload.samples = 4;
  const WorkloadLayer arithmetic{"a", 1, 1000, 1'000'000'000, 1000};
  // 2 * 4 * 10^9 operations at 100 * 10^12 per second.
  EXPECT_NEAR(roofline_ns(arithmetic, workload, accelerator, 1), 80'000, 1e-6);
  EXPECT_NEAR(roofline_ns(arithmetic, workload, accelerator, 2), 160'000, 1e-6);
  const WorkloadLayer memory{"m", 1, 1'000'000, 1000, 250'000};
  // 2 bytes of (4 * 250,000 + 1,000,000) elements at 10^12 bytes per second.
  EXPECT_NEAR(roofline_ns(memory, workload, accelerator, 1), 4000, 1e-6);
  workload.model_ranks = 4;
  EXPECT_NEAR(roofline_ns(memory, workload, accelerator, 1), 1000, 1e-6);
}

TEST(TrainingSteps, ReduceEveryGradientOnce) {
  for (const Workload& workload : workloads()) {
    for (const GradientOverlap overlap : {GradientOverlap::kNone, GradientOverlap::kBuckets}) {
      uint64_t bytes = 0;
      uint64_t pieces = 0;
      for (const TrainingStep& step : training_steps(workload, {}, overlap)) {
        bytes += step.kind == TrainingStepKind::kGradients ? step.bytes : 0;
        pieces += step.kind == TrainingStepKind::kGradients ? 1 : 0;
      }
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(parameters(workload) * 2 / workload.model_ranks), 256)
          << workload.name;
      if (overlap == GradientOverlap::kNone) {
        EXPECT_EQ(pieces, 1u);
      }
    }
  }
}

TEST(Replay, OverlapsWhatIsStartedAndWaitsForWhatIsNeeded) {
  const std::vector<TrainingStep> steps = {
      {TrainingStepKind::kExchange, 0, 1},      {TrainingStepKind::kCompute, 10, 0},
      {TrainingStepKind::kAwaitExchange, 0, 0}, {TrainingStepKind::kActivations, 0, 1},
      {TrainingStepKind::kGradients, 0, 1},     {TrainingStepKind::kCompute, 10, 0},
      {TrainingStepKind::kGradients, 0, 1}};
  // The exchange takes 0 to 15, activations end at 20, gradients take 20 to 40 and 40 to 47, compute takes 20 to 30.
  const std::vector<double> times = {15, 0, 0, 5, 20, 0, 7};
  const IterationTime iteration = replay(steps, times);
  EXPECT_DOUBLE_EQ(iteration.time_ns, 47);
  EXPECT_DOUBLE_EQ(iteration.compute_ns, 20);
  EXPECT_DOUBLE_EQ(iteration.exposed_ns(), 27);
  EXPECT_DOUBLE_EQ(replay(steps, times, 10).time_ns, 100 + 5 + 100 + 7);
}

TEST(ModelSplit, CutsDimensions) {
  const ModelSplit cut = split_model_ranks(two(16, 64), 128).value();
  ASSERT_EQ(cut.model.dimensions.size(), 2u);
  EXPECT_EQ(cut.model.dimensions[1].size, 8);
  ASSERT_EQ(cut.data.dimensions.size(), 1u);
  EXPECT_EQ(cut.data.dimensions[0].size, 8);
  EXPECT_EQ(cut.data.dimensions[0].bandwidth_mbps, 800'000u);
  EXPECT_TRUE(split_model_ranks(two(16, 64), 1).value().model.dimensions.empty());
  EXPECT_TRUE(split_model_ranks(two(16, 64), 1024).value().data.dimensions.empty());
  EXPECT_FALSE(split_model_ranks(two(12, 64), 128).ok());
  EXPECT_FALSE(split_model_ranks(two(4, 4), 128).ok());
}

TEST(Exchange, IsBoundByTheSlowestDimension) {
  // 63/64 of a million bytes at 800 Gb/s, and both latencies.
  EXPECT_NEAR(exchange_ns(two(16, 64), 1'000'000), 8e6 * 63 / 64 / 800 + 2400, 1e-6);
  Topology ring = two(16, 64);
  ring.dimensions[1].kind = DimensionKind::kRing;
  EXPECT_NEAR(exchange_ns(ring, 1'000'000), 8e6 * 1024 / 64 / 800 + 700 + 32 * 1700, 1e-6);
}

void expect_ordered(const TrainingStudy& study) {
  for (const WorkloadTraining& training : study.workloads) {
    ASSERT_TRUE(training.refused.empty()) << training.refused;
    for (const SystemTraining& system : training.systems) {
      ASSERT_EQ(system.times.size(), study.variants.size());
      const double ideal_ns = system.times.back().iteration.time_ns;
      double auto_ns = 0;
      double others_ns = system.times.front().iteration.time_ns;
      for (size_t v = 0; v < study.variants.size(); ++v) {
        const IterationTime& time = system.times[v].iteration;
        EXPECT_GE(time.time_ns, time.compute_ns);
        EXPECT_GE(time.time_ns, ideal_ns) << system.system << " " << study.variants[v];
        if (study.variants[v] == "auto") auto_ns = time.time_ns;
        if (study.variants[v] == "themis") others_ns = std::min(others_ns, time.time_ns);
      }
      EXPECT_LE(auto_ns, others_ns) << training.workload->name << " on " << system.system;
    }
  }
}

TEST(Training, IdealIsFastestAndAutoNoSlowerThanTheOthers) {
  TrainingRequest request;
  request.systems = {{"2D", to_topology(paper_systems()[0])}, {"hetero", to_topology(paper_systems()[2])}};
  request.chunks = 16;
  const TrainingStudy study = study_training(request).value();
  EXPECT_EQ(study.workloads.size(), workloads().size());
  EXPECT_EQ(study.variants.front(), "baseline");
  expect_ordered(study);
  EXPECT_FALSE(study.papers_systems);
  for (const WorkloadTraining& training : study.workloads) EXPECT_FALSE(training.fitted_scale.has_value());
}

// If compute is scaled so that the ideal network gains as much as in the paper, Themis also gains as much as in the
// paper.
TEST(Training, HasTheShapeOfThePaper) {
  const TrainingStudy study = study_training({}).value();
  expect_ordered(study);
  for (const WorkloadTraining& training : study.workloads) {
    const PaperSpeedups& paper = training.workload->paper;
    ASSERT_TRUE(training.fitted_scale.has_value()) << training.workload->name;
    EXPECT_NEAR(training.fitted.back().speedup, paper.ideal, 1e-6) << training.workload->name;
    for (size_t v = 0; v < study.variants.size(); ++v) {
      if (study.variants[v] != "themis") continue;
      EXPECT_NEAR(training.fitted[v].speedup, paper.themis, 0.02) << training.workload->name;
      EXPECT_NEAR(training.means[v].speedup, paper.themis, 0.06) << training.workload->name;
    }
    EXPECT_NEAR(training.means.back().speedup, paper.ideal, 0.06) << training.workload->name;
  }
}

TEST(Training, OverlapHidesCommunication) {
  TrainingRequest request;
  request.systems = {{"2D", to_topology(paper_systems()[0])}};
  request.chunks = 4;
  request.workload = "ResNet-152";
  request.samples = 64;
  const TrainingStudy after = study_training(request).value();
  request.overlap = GradientOverlap::kBuckets;
  const TrainingStudy beside = study_training(request).value();
  expect_ordered(beside);
  EXPECT_LT(beside.workloads[0].means[0].exposed_share, after.workloads[0].means[0].exposed_share / 2);
}

TEST(Training, RefusesWhatItCannotDo) {
  TrainingRequest request;
  request.workload = "ResNet-151";
  EXPECT_EQ(study_training(request).error().message,
            "'ResNet-151' is not a workload; did you mean ResNet-152? There are ResNet-152, GNMT, DLRM, Transformer-1T");
  request.workload = "";
  request.samples = 3;
  EXPECT_FALSE(study_training(request).ok());
  request.samples = 0;
  request.accelerator.peak_tflops = 0;
  EXPECT_FALSE(study_training(request).ok());
  request.accelerator = {};
  request.systems = {{"small", two(4, 4)}};
  request.workload = "Transformer-1T";
  EXPECT_NE(study_training(request).value().workloads[0].refused.find("small: a model on 128 ranks"),
            std::string::npos);
  request.systems[0].topology.dimensions[0].bandwidth_mbps = 0;
  EXPECT_FALSE(study_training(request).ok());
}

}  // namespace
}  // namespace trestle
