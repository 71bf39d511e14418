// What messages cost in `trestle train`: several links for deft, and the library's model of a topology.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/plan/info.h"
#include "cli/train/train.h"
#include "sched/model/predict.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

// A file that is gone with its test.
class NamedFile {
 public:
  NamedFile(const std::string& name, const std::string& text)
      : path_(testing::TempDir() + "trestle_" + std::to_string(::getpid()) + "_" + name) {
    std::ofstream(path_) << text;
  }
  ~NamedFile() { std::filesystem::remove(path_); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// VGG-19 as DeFT's table II has it, with the corrected bucket 4. A byte takes a microsecond, so each tensor is a
// bucket.
constexpr const char* kVgg19 = R"({"tensors": [
  {"bytes": 1968, "forward_s": 0.001238, "backward_s": 0.072496},
  {"bytes": 11262, "forward_s": 0.028799, "backward_s": 0.012786},
  {"bytes": 15447, "forward_s": 0.004801, "backward_s": 0.004872},
  {"bytes": 188643, "forward_s": 0.001899, "backward_s": 0.002319},
  {"bytes": 31754, "forward_s": 0.000326, "backward_s": 0.000484},
  {"bytes": 8651, "forward_s": 0.000103, "backward_s": 0.000162}]})";

TrainOptions vgg19(const NamedFile& file, const char* links) {
  TrainOptions options;
  options.workload = file.path();
  options.cost = "0,1e-6";
  options.policies = "deft:1";
  options.links = links;
  return options;
}

TEST(TrainLinks, CarryDelayedUpdatesAsThePapersExample) {
  const NamedFile file("vgg19.json", kVgg19);
  const TrainReport one = predict_training(vgg19(file, "")).value();
  EXPECT_NEAR(one.steps[0].time.iteration_s, 0.130285, 1e-12);
  EXPECT_NEAR(one.steps[0].updates_per_iteration, 0.43, 0.005);
  EXPECT_EQ(one.steps[0].batches, (std::vector<uint32_t>{2, 2, 3}));
  const TrainReport two = predict_training(vgg19(file, "1,1.65")).value();
  EXPECT_NEAR(two.steps[0].time.iteration_s, 0.130285, 1e-12);
  EXPECT_NEAR(two.steps[0].updates_per_iteration, 0.748, 0.0006);
  EXPECT_EQ(two.steps[0].batches, (std::vector<uint32_t>{1, 1, 2}));
}

TEST(TrainLinks, MayLeaveOutTheFirst) {
  EXPECT_EQ(train_link_ratios("1.65").value(), std::vector<double>{1.65});
  EXPECT_EQ(train_link_ratios("1,1.65").value(), std::vector<double>{1.65});
  EXPECT_EQ(train_link_ratios("1,1").value(), std::vector<double>{1});
  EXPECT_EQ(train_link_ratios("1.5,2").value(), (std::vector<double>{1.5, 2}));
  EXPECT_TRUE(train_link_ratios("1").value().empty());
  EXPECT_TRUE(train_link_ratios("").value().empty());
}

TEST(TrainLinks, ThatAreWrongAreNamed) {
  const auto fault = [](const char* links) {
    const auto ratios = train_link_ratios(links);
    return ratios.ok() ? "accepted" : ratios.error().message;
  };
  EXPECT_EQ(fault("0"), "--links: a mu of 0 is not above 0");
  EXPECT_EQ(fault("1,-2"), "--links: -2 is negative");
  EXPECT_EQ(fault("1,0.5"), "--links: a mu of 0.5 is below 1; the first link must be the fastest");
  EXPECT_EQ(fault("1,2000"), "--links: a mu of 2000 is above 1000");
  EXPECT_EQ(fault("1,,2"), "--links: \"\" is not a number");
  EXPECT_EQ(fault("gloo"), "--links: \"gloo\" is not a number");
}

TEST(TrainLinks, AreShown) {
  const NamedFile file("vgg19.json", kVgg19);
  TrainOptions options = vgg19(file, "1,1.65");
  EXPECT_NE(train(options).value().find("link 1 takes 1.65 times as long"), std::string::npos);
  options.json = true;
  const JsonValue json = read_json(train(options).value());
  ASSERT_EQ(member(json, "link_ratios").items.size(), 1u);
  EXPECT_EQ(member(json, "link_ratios").items[0].number, 1.65);
}

constexpr const char* kGrid = R"({"dimensions": [{"size": 4, "bandwidth_gbps": 100, "latency_ns": 2000},
                                                 {"size": 4, "bandwidth_gbps": 10, "latency_ns": 20000}]})";

TrainOptions on_topology(const std::string& path) {
  TrainOptions options;
  options.workload = "resnet50@dear";
  options.topo = path;
  options.policies = "wfbp,optimal";
  options.config = parse_config({}).value();
  return options;
}

TEST(TrainTopology, CostsAreTheLibrarysPredictions) {
  const NamedFile file("grid.json", kGrid);
  const TrainOptions options = on_topology(file.path());
  const TrainReport report = predict_training(options).value();
  ASSERT_TRUE(report.link.fitted.has_value());
  const TopologyCost& fitted = *report.link.fitted;
  EXPECT_EQ(fitted.workers, 16);
  const Topology topology = topology_of({"", file.path(), 0}, options.config).value();
  const std::pair<Collective, const FittedCost*> all[] = {{Collective::kAllReduce, &fitted.all_reduce},
                                                          {Collective::kReduceScatter, &fitted.reduce_scatter},
                                                          {Collective::kAllGather, &fitted.all_gather}};
  for (const auto& [collective, cost] : all) {
    EXPECT_EQ(cost->points.size(), 8u);
    for (const CostPoint& point : cost->points) {
      SelectionRequest request;
      request.collective = collective;
      request.bytes = point.bytes;
      request.element_bytes = 4;
      const Schedule schedule = select_schedule(request, topology, selection_of(options.config)).value();
      EXPECT_EQ(point.predicted_s, 1e-9 * static_cast<double>(predict_ns(schedule, topology)));
    }
    std::printf("%zu sizes, farthest %.1f %%\n", cost->points.size(), 100 * cost->worst());
    EXPECT_GT(cost->cost.startup_s, 0);
    EXPECT_GT(cost->cost.per_byte_s, 0);
    // The line has the least squares of the relative errors: no other one near it is better.
    const auto squares = [&cost = cost](double startup, double per_byte) {
      double sum = 0;
      for (const CostPoint& point : cost->points) {
        const MessageCost tried{startup * cost->cost.startup_s, per_byte * cost->cost.per_byte_s};
        sum += std::pow(tried.of(point.bytes) / point.predicted_s - 1, 2);
      }
      return sum;
    };
    for (const double off : {0.95, 1.05}) {
      EXPECT_LT(squares(1, 1), squares(off, 1));
      EXPECT_LT(squares(1, 1), squares(1, off));
    }
  }
  EXPECT_LT(report.link.link.reduce_scatter.per_byte_s, report.link.link.all_reduce.per_byte_s);
  EXPECT_LE(report.steps[1].time.iteration_s, report.steps[0].time.iteration_s);
}

TEST(TrainTopology, IsShownWithItsFit) {
  const NamedFile file("grid.json", kGrid);
  TrainOptions options = on_topology(file.path());
  EXPECT_NE(train(options).value().find("fitted to the library's model of 16 ranks at 8 sizes"), std::string::npos);
  options.json = true;
  const JsonValue fits = member(read_json(train(options).value()), "fits");
  ASSERT_EQ(fits.items.size(), 3u);
  EXPECT_EQ(member(fits.items[1], "collective").text, "reducescatter");
  EXPECT_EQ(keys_of(member(fits.items[0], "points").items[0]),
            (std::set<std::string>{"bytes", "predicted_s", "fitted_s"}));
}

TEST(TrainTopology, OfOneRankCostsNothing) {
  const NamedFile file("one.json", R"({"dimensions": [{"size": 1, "bandwidth_gbps": 100}]})");
  const TrainReport report = predict_training(on_topology(file.path())).value();
  EXPECT_EQ(report.link.link.all_reduce, MessageCost{});
  EXPECT_NE(train(on_topology(file.path())).value().find("one rank exchanges nothing"), std::string::npos);
}

TEST(TrainTopology, ThatIsMissingIsNamed) {
  TrainOptions options = on_topology("/nonexistent/topology.json");
  const std::string missing = train(options).error().message;
  EXPECT_TRUE(missing.starts_with("--topo: ")) << missing;
  EXPECT_NE(missing.find("/nonexistent/topology.json"), std::string::npos) << missing;
  EXPECT_NE(missing.find("No such file or directory"), std::string::npos) << missing;
  EXPECT_EQ(missing.find('\n'), std::string::npos);
  options.cost = "1,1";
  EXPECT_EQ(train(options).error().message, "what messages cost: give one of --cost, --network and --topo");
}

}  // namespace
}  // namespace trestle
