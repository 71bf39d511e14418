#include "perf/report/report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "perf/driver/ending.h"
#include "perf/driver/measure.h"
#include "perf/report/rails.h"
#include "perf/report/table.h"

namespace trestle::perf {
namespace {

// Over all ranks.
Creation creation_of(Ranks& ranks, const Creation& mine) {
  const std::vector<double> all = ranks.combine({mine.seconds, static_cast<double>(mine.memory_bytes)}, Combine::kMax);
  return {all[0], static_cast<uint64_t>(all[1])};
}

// What a rank tells the others about itself: numbers, the host's name, the GPU's bus, and last a text that may contain
// spaces.
std::string place_of(const RankState& state, int color, int per_process) {
  const std::string head =
      std::to_string(state.rank) + " " + std::to_string(color) + " " + std::to_string(getpid()) + " ";
  if (state.gpu == nullptr) {
    return head + std::to_string(state.rank % per_process) + " " + host_name() + " 0000:00:00 host memory";
  }
  const GpuInfo& gpu = state.gpu->info();
  const std::string bus = gpu.pci.substr(0, gpu.pci.rfind('.'));  // as nccl-tests writes it
  return head + std::to_string(gpu.index) + " " + host_name() + " " + bus + " " + gpu.name;
}

JsonReport::Device device_from(const std::string& text) {
  JsonReport::Device device{};
  std::istringstream words(text);
  words >> device.rank >> device.group >> device.process_id >> device.device >> device.host >> device.bus >> std::ws;
  std::getline(words, device.info);
  return device;
}

void report_settings(const Options& options, const std::string& program, const Creation& creation, bool on_gpus) {
  int version = 0;
  require(trestleGetVersion(&version));
  print_line("# trestle-perf version " + std::to_string(TRESTLE_MAJOR) + "." + std::to_string(TRESTLE_MINOR) + "." +
             std::to_string(TRESTLE_PATCH) + " trestle-headers=" + std::to_string(TRESTLE_VERSION_CODE) +
             " trestle-library=" + std::to_string(version));
  print_line("# Collective test starting: " + program);
  print_line(settings_line(options));
  constexpr const char* kBlocking[] = {"", "wait and barrier after each iteration", "wait after each iteration",
                                       "wait after each iteration, then a barrier that is not timed"};
  if (options.blocking > 0) print_line(std::string("# Blocking: ") + kBlocking[options.blocking]);
  if (options.per_iteration) {
    print_line("# Per-iteration timing: every iteration is waited for; the statistics leave out the first " +
               std::to_string(options.skipped_iterations));
  }
  constexpr const char* kAverages[] = {"of rank 0", "", "of the fastest rank", "of the slowest rank"};
  if (options.average != 1) print_line(std::string("# Times: ") + kAverages[options.average]);
  if (options.null_stream) print_line("# Stream: the communicators' own");
  if (options.parallel_init) print_line("# Parallel init: each thread initialises its own ranks");
  if (options.local_register > 0 && on_gpus) {
    print_line("# Buffers: memory of GPUs, which Trestle does not register: -R does nothing for it");
  } else if (options.local_register > 0) {
    print_line(std::string("# Buffers: memory that the host's other ranks can map, of ") +
               (options.local_register == 1 ? "trestleCommRegister" : "trestleMemAlloc"));
  }
  for (const std::string& remark : options.remarks) print_line("# " + remark);
  print_line(creation_line(creation));
  print_line("#");
  print_line("# Using devices");
}

// The rails so far. A thread of the library may add rails between the two calls; then the last rows are left out.
std::vector<RailRow> rails_of(const RankState& state) {
  trestleCommRailStats_t stats = TRESTLE_RAIL_STATS_INITIALIZER;
  require(trestleCommGetRailStats(state.comm, &stats), state.comm);
  std::vector<trestleRailStats_t> rows(static_cast<size_t>(stats.count));
  stats.rows = rows.data();
  stats.capacity = stats.count;
  require(trestleCommGetRailStats(state.comm, &stats), state.comm);
  std::vector<RailRow> rails;
  for (const trestleRailStats_t& row : rows) rails.push_back(rail_row(state.rank, row));
  return rails;
}

// The rails of all ranks, in rank order. One gather carries one row of each rank.
std::vector<RailRow> rails_of_all(Ranks& ranks) {
  std::vector<std::vector<RailRow>> mine;
  size_t most = 0;
  for (const RankState& state : ranks.states()) most = std::max(most, mine.emplace_back(rails_of(state)).size());
  most = static_cast<size_t>(ranks.combine(static_cast<double>(most), Combine::kMax));
  std::vector<RailRow> all;
  for (size_t at = 0; at < most; ++at) {
    std::vector<std::string> lines;
    for (const auto& rows : mine) lines.push_back(at < rows.size() ? encode(rows[at]) : "");
    for (const std::string& line : ranks.gather(lines)) {
      RailRow row;
      if (decode(line, row)) all.push_back(row);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const RailRow& a, const RailRow& b) { return a.rank < b.rank; });
  return all;
}

}  // namespace

void print_line(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

uint64_t most_memory(const std::vector<trestleComm_t>& comms) {
  uint64_t most = 0;
  for (const trestleComm_t comm : comms) {
    uint64_t bytes = 0;
    require(trestleCommMemStats(comm, trestleMemTotal, &bytes), comm);
    most = std::max(most, bytes);
  }
  return most;
}

void report_beginning(Ranks& ranks, const Options& options, const std::string& program, int color,
                      const Creation& creation, JsonReport* report) {
  const Creation slowest = creation_of(ranks, creation);
  std::vector<std::string> mine;
  const int per_process = ranks.layout().threads * ranks.layout().ranks_per_thread;
  for (const RankState& state : ranks.states()) mine.push_back(place_of(state, color, per_process));
  const std::vector<std::string> all = ranks.gather(mine);
  if (!ranks.prints()) return;
  report_settings(options, program, slowest, ranks.on_gpus());
  std::vector<JsonReport::Device> devices;
  for (const std::string& text : all) {
    const JsonReport::Device& device = devices.emplace_back(device_from(text));
    char line[512];
    std::snprintf(line, sizeof line, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s", device.rank,
                  device.group, device.process_id, device.host.c_str(), device.device, device.bus.c_str(),
                  device.info.c_str());
    print_line(line);
  }
  if (report != nullptr) report->begin(options, devices, slowest);
}

void report_predictions(Ranks& ranks, Backend& backend, const Collective& collective, const Options& options,
                        size_t buffer_bytes) {
  if (options.predict_bytes.empty()) return;
  const bool prints = ranks.prints();
  char line[160];
  if (prints) {
    print_line("#");
    print_line("# predicted beside measured (median of single operations)");
    std::snprintf(line, sizeof line, "# %10s  %12s  %12s  %9s", "size (B)", "predicted us", "measured us", "ratio");
    print_line(line);
  }
  for (const size_t bytes : options.predict_bytes) {
    const Row row = make_row(collective, options, options.types.front(), options.ops.front(), options.root,
                             ranks.layout().nranks(), bytes, buffer_bytes);
    warm_up(backend, row, std::max(1, options.warmup_iters));
    const double measured_us = measure_calls(ranks, backend, row, false).launch_us;
    if (!prints) continue;
    double predicted_us = 0;
    const trestleComm_t comm = ranks.states().front().comm;
    require(trestlePredictTime(comm, collective.kind, row.call.count, row.call.type, &predicted_us), comm);
    std::snprintf(line, sizeof line, "# %10zu  %12.2f  %12.2f  %9.2f", row.size_bytes, predicted_us, measured_us,
                  predicted_us > 0 ? measured_us / predicted_us : 0);
    print_line(line);
  }
}

void report_rails(Ranks& ranks, const Options& options, JsonReport* report) {
  if (options.rail_stats == 0) return;
  std::vector<RailRow> rows;
  if (options.rail_stats == 2) {
    rows = rails_of_all(ranks);
  } else if (ranks.prints()) {
    rows = rails_of(ranks.states().front());
  }
  if (!ranks.prints()) return;
  print_line("#");
  for (const std::string& line : rail_lines(rows)) print_line(line);
  if (report != nullptr) report->rails(rows);
}

void report_end(Ranks& ranks, const std::string& program, uint64_t failed_checks, const std::vector<Score>& scores,
                std::optional<double> min_busbw, JsonReport* report) {
  if (!ranks.prints()) return;
  const double mean_busbw = scores.empty() ? 0 : scores.front().mean_busbw();
  print_line(wrong_line(failed_checks));
  print_line(busbw_line(mean_busbw, min_busbw));
  std::vector<JsonReport::Compared> compared;
  for (size_t i = 1; i < scores.size(); ++i) {
    const Score& score = scores[i];
    std::optional<double> ratio;
    if (score.halves > 0) ratio = std::exp(score.log_ratio_sum / static_cast<double>(score.halves));
    print_line(compared_line(score.backend, score.mean_busbw(), ratio));
    compared.push_back({score.backend, score.mean_busbw(), ratio});
  }
  print_line("#");
  print_line("# Collective test concluded: " + program);
  print_line("#");
  // The thread's last error message may come from a query whose answer was simply no (whether a launcher started this).
  const trestleComm_t comm = ranks.states().front().comm;
  trestleResult_t failure = trestleSuccess;
  const bool asked = trestleCommGetAsyncError(comm, &failure) == trestleSuccess;
  const std::string error = asked && failure == trestleSuccess ? "" : trestleGetLastError(comm);
  print_line(error.empty() ? "" : "# error: " + error);
  if (report == nullptr) return;
  const std::string problem = report->finish({failed_checks, mean_busbw, min_busbw, error, compared});
  if (!problem.empty()) fail(kExitInternal, problem);
}

}  // namespace trestle::perf
