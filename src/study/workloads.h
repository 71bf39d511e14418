// The networks of the paper's end-to-end study (Themis, arXiv 2110.04478, sections 5.2 and 6.2) as tables of layers,
// with where each number comes from. Constant, any thread.
//
// The paper's layer tables, batches and compute times are not ours to know: shapes are of published models, everything
// else is an assumption of ours, and every assumption is a text here, so that whoever prints results prints it too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace trestle {

// One layer, or `repeat` equal ones in a row. Elements and operations of one sample and one pass forward.
struct WorkloadLayer {
  std::string_view name;
  uint64_t repeat = 1;
  uint64_t parameters = 0;
  uint64_t macs = 0;         // multiply-accumulates
  uint64_t activations = 0;  // elements read and written in memory, besides the parameters
};

// How the ranks share the work.
enum class Parallelism : uint8_t {
  kData,           // every rank has the whole model: gradients are all-reduced over all ranks
  kTablesAndData,  // tables are spread over all ranks: all-to-all; the layers besides as kData
  kModelAndData,   // the inner model_ranks ranks share a model: all-reduce of activations; gradients over the others
};

struct PaperSpeedups {
  double themis = 0;       // smallest chunk first, over the baseline, mean over the six systems
  double themis_most = 0;  // of the six
  double ideal = 0;        // a network whose links are busy always, mean
};

struct Workload {
  std::string_view name;
  std::string_view summary = {};  // of what is trained how, one line
  Parallelism parallelism = Parallelism::kData;
  std::span<const WorkloadLayer> layers = {};  // forward order
  uint32_t samples = 1;                        // per pass: of a rank, or of the ranks that share a model
  uint32_t model_ranks = 1;
  uint64_t activations_reduced = 0;     // kModelAndData: elements of a sample that an all-reduce of activations carries
  uint32_t reductions_per_layer = 0;    // all-reduces of them in a pass of one of reduced_layer
  std::string_view reduced_layer = {};  // the layers that have them
  size_t exchange_before = 0;           // kTablesAndData: index of the first layer that needs what is exchanged
  uint64_t elements_exchanged = 0;      // per sample and pass
  uint64_t elements_looked_up = 0;      // per sample, read from the tables forward
  PaperSpeedups paper;
  std::string_view source = {};
  std::span<const std::string_view> assumptions = {};
};

inline constexpr uint64_t kElementBytes = 2;  // half precision throughout: weights, activations, gradients

std::span<const Workload> workloads();
// Of all layers, without tables.
uint64_t parameters(const Workload& workload);
// What holds for all workloads, a sentence each.
std::span<const std::string_view> common_assumptions();

}  // namespace trestle
