// The networks of the paper's end-to-end study (Themis, arXiv 2110.04478, sections 5.2 and 6.2) as tables of layers,
// with the source of each number. Constants, any thread.
//
// The paper's layer tables, batches and compute times are not known. Shapes are those of published models; everything
// else is an assumption. Every assumption is a text in these tables, so that results can be printed together with it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace trestle {

// One layer, or `repeat` equal ones in a row. Elements and operations are those of one sample in one forward pass.
struct WorkloadLayer {
  std::string_view name;
  uint64_t repeat = 1;
  uint64_t parameters = 0;
  uint64_t macs = 0;         // multiply-accumulates
  uint64_t activations = 0;  // elements read and written in memory, besides the parameters
};

// How the ranks divide the work.
enum class Parallelism : uint8_t {
  kData,           // every rank has the whole model; gradients are all-reduced over all ranks
  kTablesAndData,  // tables are spread over all ranks: all-to-all; the other layers as kData
  // The inner model_ranks ranks share a model: all-reduce of activations. Gradients: all-reduce over the other ranks.
  kModelAndData,
};

struct PaperSpeedups {
  double themis = 0;       // smallest chunk first: speed-up over the baseline, mean over the six systems
  double themis_most = 0;  // largest of the six
  double ideal = 0;        // with a network whose links are always busy, mean
};

struct Workload {
  std::string_view name;
  std::string_view summary = {};  // the model and how it is trained, one line
  Parallelism parallelism = Parallelism::kData;
  std::span<const WorkloadLayer> layers = {};  // forward order
  uint32_t samples = 1;                        // per pass; of a rank, or of the ranks that share a model
  uint32_t model_ranks = 1;
  // kModelAndData: elements per sample that one all-reduce of activations carries.
  uint64_t activations_reduced = 0;
  // Such all-reduces per pass of one layer named reduced_layer.
  uint32_t reductions_per_layer = 0;
  std::string_view reduced_layer = {};  // name of the layers that have them
  size_t exchange_before = 0;           // kTablesAndData: index of the first layer that needs the exchanged data
  uint64_t elements_exchanged = 0;      // per sample and pass
  uint64_t elements_looked_up = 0;      // per sample, read from the tables in the forward pass
  PaperSpeedups paper;
  std::string_view source = {};
  std::span<const std::string_view> assumptions = {};
};

inline constexpr uint64_t kElementBytes = 2;  // half precision: weights, activations, gradients

std::span<const Workload> workloads();
// Parameters of all layers, without tables.
uint64_t parameters(const Workload& workload);
// Assumptions common to all workloads, one sentence each.
std::span<const std::string_view> common_assumptions();

}  // namespace trestle
