// What messages cost in `trestle train`: several links for deft, and the library's model of a topology.
#include <cmath>

#include "cli/plan/info.h"
#include "cli/train/train.h"
#include "sched/model/predict.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

TEST(TrainLinks, CarryDelayedUpdatesAsThePapersExample) {
  const NamedFile file("vgg19.json", kVgg19);
  TrainOptions options;
  options.workload = file.path();
  options.cost = "0,1e-6";
  options.policies = "deft:1";
  const PlannedStep one = predict_training(options).value().steps[0];
  EXPECT_NEAR(one.time.iteration_s, 0.130285, 1e-12);
  EXPECT_NEAR(one.updates_per_iteration, 0.43, 0.005);
  EXPECT_EQ(one.batches, (std::vector<uint32_t>{2, 2, 3}));
  options.links = "1,1.65";
  const PlannedStep two = predict_training(options).value().steps[0];
  EXPECT_NEAR(two.time.iteration_s, 0.130285, 1e-12);
  EXPECT_NEAR(two.updates_per_iteration, 0.748, 0.0006);
  EXPECT_EQ(two.batches, (std::vector<uint32_t>{1, 1, 2}));
  expect_parts(train(options).value(), {"link 1 takes 1.65 times as long"});
  options.json = true;
  EXPECT_EQ(read_json(train(options).value())["link_ratios"], Json::array({1.65}));
}

TEST(TrainLinks, MayLeaveOutTheFirst) {
  EXPECT_EQ(train_link_ratios("1.65").value(), std::vector<double>{1.65});
  EXPECT_EQ(train_link_ratios("1,1.65").value(), std::vector<double>{1.65});
  EXPECT_EQ(train_link_ratios("1,1").value(), std::vector<double>{1});
  EXPECT_EQ(train_link_ratios("1.5,2").value(), (std::vector<double>{1.5, 2}));
  EXPECT_TRUE(train_link_ratios("1").value().empty());
  EXPECT_TRUE(train_link_ratios("").value().empty());
}

TrainOptions on_topology(const NamedFile& file) {
  TrainOptions options;
  options.workload = "resnet50@dear";
  options.topo = file.path();
  options.policies = "wfbp,optimal";
  options.config = parse_config({}).value();
  return options;
}

constexpr const char* kGrid = R"({"dimensions": [{"size": 4, "bandwidth_gbps": 100, "latency_ns": 2000},
                                                 {"size": 4, "bandwidth_gbps": 10, "latency_ns": 20000}]})";

// The line has the least squares of the relative errors: no other one near it is better.
void expect_best_line(const FittedCost& fitted) {
  const auto squares = [&fitted](double startup, double per_byte) {
    double sum = 0;
    for (const CostPoint& point : fitted.points) {
      const MessageCost tried{startup * fitted.cost.startup_s, per_byte * fitted.cost.per_byte_s};
      sum += std::pow(tried.of(point.bytes) / point.predicted_s - 1, 2);
    }
    return sum;
  };
  EXPECT_GT(fitted.cost.startup_s, 0);
  EXPECT_GT(fitted.cost.per_byte_s, 0);
  for (const double off : {0.95, 1.05}) {
    EXPECT_LT(squares(1, 1), squares(off, 1));
    EXPECT_LT(squares(1, 1), squares(1, off));
  }
}

TEST(TrainTopology, CostsAreTheLibrarysPredictions) {
  const NamedFile file("grid.json", kGrid);
  TrainOptions options = on_topology(file);
  const TrainReport report = predict_training(options).value();
  const TopologyCost& fitted = report.link.fitted.value();
  EXPECT_EQ(fitted.workers, 16);
  const Topology topology = topology_of({"", file.path(), 0}, options.config).value();
  for (const auto& [collective, cost] : {std::pair(Collective::kAllReduce, &fitted.all_reduce),
                                         std::pair(Collective::kReduceScatter, &fitted.reduce_scatter),
                                         std::pair(Collective::kAllGather, &fitted.all_gather)}) {
    EXPECT_EQ(cost->points.size(), 8u);
    for (const CostPoint& point : cost->points) {
      SelectionRequest request;
      request.collective = collective;
      request.bytes = point.bytes;
      request.element_bytes = 4;
      const Schedule schedule = select_schedule(request, topology, selection_of(options.config)).value();
      EXPECT_EQ(point.predicted_s, 1e-9 * static_cast<double>(predict_ns(schedule, topology)));
    }
    expect_best_line(*cost);
  }
  EXPECT_LT(report.link.link.reduce_scatter.per_byte_s, report.link.link.all_reduce.per_byte_s);
  EXPECT_LE(report.steps[1].time.iteration_s, report.steps[0].time.iteration_s);
  expect_parts(train(options).value(), {"fitted to the library's model of 16 ranks at 8 sizes"});
  options.json = true;
  Json fits = read_json(train(options).value())["fits"];
  ASSERT_EQ(fits.size(), 3u);
  EXPECT_EQ(fits[1]["collective"], "reducescatter");
  EXPECT_EQ(keys_of(fits[0]["points"][0]), "bytes predicted_s fitted_s");
}

TEST(TrainTopology, OfOneRankCostsNothing) {
  const NamedFile file("one.json", R"({"dimensions": [{"size": 1, "bandwidth_gbps": 100}]})");
  EXPECT_EQ(predict_training(on_topology(file)).value().link.link.all_reduce, MessageCost{});
  expect_parts(train(on_topology(file)).value(), {"one rank exchanges nothing"});
}

}  // namespace
}  // namespace trestle
