#include "cli/study/design_commands.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <vector>

#include "base/config/value_text.h"
#include "cli/study/advice_text.h"
#include "cli/train/study_text.h"
#include "study/paper_systems.h"

namespace trestle {

// As on the command line; "" or 0 if not given.
struct DesignCommandOptions {
  CLI::App* advise = nullptr;
  CLI::App* train = nullptr;
  std::string topology_file;
  std::string bytes = "256M";
  std::string chunks = "64";
  std::string workload;
  std::string batch;
  std::string overlap = "none";
  Accelerator accelerator;
  bool json = false;
};

namespace {

Error bad(const std::string& what) {
  return Error{Code::kInvalidArgument, what};
}

Result<uint32_t> count_of(const std::string& option, const std::string& text, int64_t most) {
  const Result<int64_t> count = parse_integer(text);
  if (!count.ok()) return bad(option + ": " + count.error().message);
  if (count.value() < 1 || count.value() > most) {
    return bad(option + ": " + text + " is not from 1 to " + std::to_string(most));
  }
  return static_cast<uint32_t>(count.value());
}

constexpr int64_t kMostChunks = 65536;
constexpr int64_t kMostSamples = 1 << 20;

Result<std::vector<NamedTopology>> systems_of(const DesignCommandOptions& options) {
  std::vector<NamedTopology> systems;
  if (!options.topology_file.empty()) {
    systems.push_back({options.topology_file, TRY(read_topology_file(options.topology_file))});
    return systems;
  }
  for (const PaperSystem& system : paper_systems()) {
    systems.push_back({std::string(system.name), to_topology(system)});
  }
  return systems;
}

Result<std::string> run_advise(const DesignCommandOptions& options) {
  const Result<int64_t> bytes = parse_bytes(options.bytes);
  if (!bytes.ok()) return bad("--bytes: " + bytes.error().message);
  if (bytes.value() < 1) return bad("--bytes: must be at least 1");
  AdviceRequest request;
  request.bytes = static_cast<uint64_t>(bytes.value());
  request.chunks = TRY(count_of("--chunks", options.chunks, kMostChunks));
  std::vector<NamedAdvice> all;
  for (const NamedTopology& system : TRY(systems_of(options))) {
    request.topology = system.topology;
    const Result<Advice> advice = advise(request);
    if (!advice.ok()) return bad(system.name + ": " + advice.error().message);
    all.push_back({system.name, advice.value()});
  }
  return options.json ? advice_json(all) : advice_text(all);
}

Result<std::string> run_train(const DesignCommandOptions& options) {
  TrainingRequest request;
  if (!options.topology_file.empty()) request.systems = TRY(systems_of(options));
  request.workload = options.workload;
  request.accelerator = options.accelerator;
  request.chunks = TRY(count_of("--chunks", options.chunks, kMostChunks));
  if (!options.batch.empty()) request.samples = TRY(count_of("--batch", options.batch, kMostSamples));
  if (options.overlap != "none" && options.overlap != "buckets") {
    return bad("--overlap: \"" + options.overlap + "\" is neither none nor buckets");
  }
  if (options.overlap == "buckets") request.overlap = GradientOverlap::kBuckets;
  const TrainingStudy study = TRY(study_training(request));
  return options.json ? training_json(study) : training_text(study);
}

}  // namespace

DesignCommands::DesignCommands(CLI::App& sim) : options_(std::make_unique<DesignCommandOptions>()) {
  DesignCommandOptions& o = *options_;
  const auto add_shared = [&o](CLI::App* command) {
    command->add_option("--topo", o.topology_file, "JSON topology file (the paper's six systems)");
    command->add_option("--chunks", o.chunks, "Number of chunks (64)");
    command->add_flag("--json", o.json, "Print one JSON object");
  };
  o.advise = sim.add_subcommand("advise", "Show whether the dimensions' bandwidths fit, and where more would help");
  add_shared(o.advise);
  o.advise->add_option("--bytes", o.bytes, "Bytes per rank of the all-reduce (256M)");
  o.train = sim.add_subcommand("train", "Predict training iterations of four networks under every policy");
  add_shared(o.train);
  o.train->add_option("--workload", o.workload, "One of the four networks (all)");
  o.train->add_option("--batch", o.batch,
                      "Samples per rank, or per group of ranks that share a model; for one workload");
  o.train->add_option("--overlap", o.overlap,
                      "Overlap gradients with the backward pass: none, or buckets of 25 MiB (none)");
  o.train->add_option("--tflops", o.accelerator.peak_tflops, "Speed of a rank, 10^12 operations per second (312)");
  o.train->add_option("--attained", o.accelerator.attained, "Fraction of that speed that layers reach, 0 to 1 (0.75)");
  o.train->add_option("--memory", o.accelerator.memory_gbytes, "Memory bandwidth of a rank, GB/s (2039)");
}

DesignCommands::~DesignCommands() = default;

bool DesignCommands::parsed() const {
  return options_->advise->parsed() || options_->train->parsed();
}

Result<std::string> DesignCommands::run() const {
  return options_->advise->parsed() ? run_advise(*options_) : run_train(*options_);
}

}  // namespace trestle
