// The run of a perf binary: command line, processes, threads, ranks, all sizes, footer, exit code.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "perf/backend/equipment.h"
#include "perf/backend/trestle_backend.h"
#include "perf/driver/collective.h"
#include "perf/driver/ending.h"
#include "perf/driver/environment.h"
#include "perf/driver/flags.h"
#include "perf/driver/measure.h"
#include "perf/driver/memory.h"
#include "perf/driver/options.h"
#include "perf/driver/pattern.h"
#include "perf/driver/ranks.h"
#include "perf/driver/split.h"
#include "perf/driver/sweep.h"
#include "perf/driver/threads.h"
#include "perf/driver/types.h"
#include "perf/launch/launch.h"
#include "perf/report/report.h"
#include "perf/report/table.h"

namespace trestle::perf {
namespace {

// What every thread of this process needs; constant while they run.
struct Job {
  const Collective& collective;
  const Options& options;
  const Equipment& equipment;
  Layout layout;
  int local_process;  // among those of this host
  Split split;
  std::string program;
  std::optional<double> min_busbw;
  JsonReport* report;          // on the process that prints, if it writes a report
  std::string report_problem;  // why the report cannot be written
  trestleUniqueId id;
  trestleConfig_t config;
  // Of all threads, if they are made before the threads start; else empty.
  std::vector<trestleComm_t> comms;
  double init_seconds = 0;  // the time that making them took
};

// Ranks of this job on this host.
int local_ranks(const Job& job) {
  return local_processes(job.layout.processes) * job.layout.threads * job.layout.ranks_per_thread;
}

// The options with sizes reduced to the memory of all hosts and GPUs: two buffers per rank and backend must fit into
// 7/10 of it; the libraries get the rest.
Options fit_memory(Ranks& ranks, const Job& job, const Room& room) {
  Options options = job.options;
  const double limit = std::floor(ranks.combine(std::min(room.bytes, 9.0e15), Combine::kMin));
  const size_t bytes = static_cast<size_t>(limit);
  if (options.max_bytes > bytes) {
    if (options.min_bytes > bytes)
      fail(kExitArguments, "-b is more than the memory allows: " + std::to_string(bytes) + " bytes per buffer");
    options.max_bytes = bytes;
    if (ranks.prints())
      print_line("# -e is cut to " + std::to_string(bytes) + " bytes, " + std::to_string(room.buffers) +
                 " buffers of which fit for each rank");
  }
  std::erase_if(options.predict_bytes, [bytes](size_t size) { return size > bytes; });
  return options;
}

// The number of this thread's first rank among the ranks of this host.
int local_rank_of(const Job& job, int thread) {
  return (job.local_process * job.layout.threads + thread) * job.layout.ranks_per_thread;
}

struct Communicators {
  std::vector<trestleComm_t> comms;
  double init_seconds = 0;
};

// gpus: of the ranks; or empty.
Communicators communicators_of(const Job& job, int thread, const std::vector<std::unique_ptr<Gpu>>& gpus) {
  const size_t mine = static_cast<size_t>(job.layout.ranks_per_thread);
  if (!job.comms.empty()) {
    const auto first = job.comms.begin() + static_cast<std::ptrdiff_t>(mine) * thread;
    return {{first, first + static_cast<std::ptrdiff_t>(mine)}, job.init_seconds};
  }
  std::vector<trestleComm_t> comms(mine);
  std::vector<int> devices;
  for (const auto& gpu : gpus) devices.push_back(gpu->info().index);
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  join(comms, job.layout.first_rank(thread), job.layout.nranks(), job.id, job.config, devices);
  return {comms, seconds_since(start)};
}

// Prints why there is nothing to measure on this number of ranks, if that is so.
bool skip(Ranks& ranks, const Job& job) {
  const std::string why = job.collective.skips != nullptr ? job.collective.skips(ranks.layout().nranks()) : "";
  if (!why.empty() && ranks.prints()) print_line("# " + why);
  return !why.empty();
}

// This thread's ranks in one of the groups that measure at the same time.
std::unique_ptr<Ranks> split_ranks(Ranks& world, const Job& job, int thread,
                                   const std::vector<std::unique_ptr<Gpu>>& gpus) {
  const Layout layout = group_layout(job.layout, job.split);
  const int color = job.split.color(job.layout.process);
  std::vector<trestleComm_t> comms(world.states().size());
  require(trestleGroupStart());
  for (size_t i = 0; i < comms.size(); ++i) {
    const RankState& state = world.states()[i];
    require(trestleCommSplit(state.comm, color, state.rank, &comms[i], nullptr), state.comm);
  }
  require(trestleGroupEnd(), world.states().front().comm);
  return std::make_unique<Ranks>(layout, job.options, layout.first_rank(thread), comms, world.prints(), gpus);
}

// Makes what is measured beside Trestle. Prints what is compared, and what cannot be.
Compared compared_backend(Ranks& ranks, const Job& job, int thread) {
  Compared compared = make_compared(ranks, job.options, job.equipment, local_rank_of(job, thread));
  if (job.options.graph_launches != 0 && !ranks.on_gpus())
    compared.remarks.push_back("-G (CUDA graphs) does nothing on host memory");
  for (const std::string& remark : compared.remarks) {
    if (ranks.prints()) print_line("# " + remark);
  }
  return compared;
}

// options: with sizes that fit the memory.
Tally run_sweep(Ranks& ranks, Backend* compared, const Job& job, const Options& options) {
  if (ranks.prints() && job.collective.summary != nullptr) {
    for (const std::string& line : job.collective.summary(job.options, ranks.layout().nranks()))
      print_line("# " + line);
  }
  if (skip(ranks, job)) return {};
  size_t buffer_bytes = options.max_bytes;
  for (const size_t bytes : options.predict_bytes) buffer_bytes = std::max(buffer_bytes, bytes);
  TrestleBackend trestle(ranks, options);
  std::vector<Backend*> backends = {&trestle};
  if (compared != nullptr) backends.push_back(compared);
  for (Backend* backend : backends) backend->allocate(buffer_bytes);
  ranks.barrier();
  if (ranks.prints()) {
    print_line("#");
    for (const std::string& line : header_lines(options.report_cpu_time, columns_of(options))) print_line(line);
  }
  const Tally tally = Sweep(ranks, backends, job.collective, options, buffer_bytes, job.report).run();
  report_predictions(ranks, trestle, job.collective, options, buffer_bytes);
  return tally;
}

// Runs one thread with its ranks, from the first call to the last. Returns the exit code.
int run_thread(const Job& job, int thread) {
  const int first_rank = job.layout.first_rank(thread);
  const std::vector<std::unique_ptr<Gpu>> gpus =
      open_gpus(job.equipment, local_rank_of(job, thread), static_cast<size_t>(job.layout.ranks_per_thread));
  const Communicators made = communicators_of(job, thread, gpus);
  const uint64_t memory_bytes = most_memory(made.comms);
  Ranks world(job.layout, job.options, first_rank, made.comms, first_rank == 0, gpus);
  // Only after joining, because the other ranks wait until this rank has joined.
  if (world.prints() && !job.report_problem.empty()) fail(kExitArguments, job.report_problem);
  const int color = job.split.color(job.layout.process);
  report_beginning(world, job.options, job.program, color, {made.init_seconds, memory_bytes}, job.report);
  const std::unique_ptr<Ranks> group = job.split.op != 0 ? split_ranks(world, job, thread, gpus) : nullptr;
  Ranks& measuring = group ? *group : world;
  const Compared compared = compared_backend(measuring, job, thread);
  const Options options =
      fit_memory(world, job, room_for_buffers(measuring, job.equipment, compared, local_ranks(job)));
  const Tally tally = run_sweep(measuring, compared.backend.get(), job, options);
  report_rails(measuring, options, job.report);
  const uint64_t failed = static_cast<uint64_t>(world.combine(static_cast<double>(tally.failed_checks), Combine::kSum));
  const double mean_busbw = tally.scores.empty() ? 0 : tally.scores.front().mean_busbw();
  const bool measured = !tally.scores.empty() && tally.scores.front().halves > 0;
  const std::optional<double> min_busbw = measured ? job.min_busbw : std::nullopt;
  report_end(world, job.program, failed, tally.scores, min_busbw, job.report);
  world.barrier();  // no rank may leave while others still work
  const bool slow = world.prints() && busbw_fails(mean_busbw, min_busbw);
  return failed > 0 || slow ? kExitWrong : kExitFine;
}

int refuse(const std::string& program, const std::string& sentence, bool prints) {
  if (prints) std::printf("%s: %s\n", program.c_str(), sentence.c_str());
  return kExitArguments;
}

// Checks that need the number of ranks. Returns the error message, or "".
std::string check_ranks(const Collective& collective, const Layout& layout, const Options& options,
                        const Split& split) {
  if (!split.problem.empty()) return split.problem;
  const int64_t all = int64_t{layout.processes} * layout.threads * layout.ranks_per_thread;
  if (all > kMaxPatternRanks) return "at most " + std::to_string(kMaxPatternRanks) + " ranks";
  if (!options.predict_bytes.empty() && !collective.predicts)
    return "--predict: the library does not know this algorithm";
  Layout at = layout;
  for (at.process = 0; at.process < layout.processes; ++at.process) {
    const int nranks = group_layout(at, split).nranks();  // groups may differ in size
    if (options.root >= nranks) {
      return "-r " + std::to_string(options.root) + ": there are " + std::to_string(nranks) + " ranks";
    }
    const std::string problem = collective.check != nullptr ? collective.check(options, nranks) : "";
    if (!problem.empty() || split.op == 0) return problem;
  }
  return "";
}

int run_job(Job& job) {
  const Layout& layout = job.layout;
  job.config = TRESTLE_CONFIG_INITIALIZER;
  if (job.options.timeout_s > 0) job.config.timeoutMs = int64_t{1000} * job.options.timeout_s;
  std::memset(&job.id, 0, sizeof job.id);  // zeros: the launcher's rendezvous
  // Ranks on GPUs differ in their device setting. Only ranks that join one by one can have settings of their own.
  if (layout.processes == 1 && !job.options.parallel_init && !job.equipment.gpus) {
    job.comms.resize(static_cast<size_t>(layout.nranks()));
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    require(trestleCommInitAllConfig(job.comms.data(), layout.nranks(), &job.config));
    job.init_seconds = seconds_since(start);
  } else if (layout.processes == 1) {
    require(trestleGetUniqueId(&job.id));
  }
  return run_threads(layout.threads, [&job](int thread) { return run_thread(job, thread); });
}

}  // namespace

int perf_main(int argc, char** argv, const Collective& collective) {
  const std::string program = program_name(argc, argv, "perf");
  std::vector<char*> arguments(argv, argv + argc);  // getopt reorders them, and -P passes them on
  arguments.push_back(nullptr);
  const ParsedOptions parsed = parse_options(argc, arguments.data());
  const Options& options = parsed.options;
  adopt_test_variables();
  const std::string min_busbw = test_variable("MIN_BW");
  int process = 0, processes = 1, local_process = 0;
  const bool launched = trestleLauncherInfo(&process, &processes, &local_process) == trestleSuccess;
  if (!parsed.error.empty()) {
    if (process == 0) std::printf("%s\n", usage_text(program).c_str());
    return refuse(program, parsed.error, process == 0);
  }
  if (options.help) {
    if (process == 0) std::fputs(usage_text(program).c_str(), stdout);
    return kExitFine;
  }
  if (options.processes > 0 && launched && processes > 1) {
    return refuse(program, "-P starts processes, but a launcher has started " + std::to_string(processes),
                  process == 0);
  }
  if (options.processes > 0) processes = options.processes;
  const Layout layout = {process, processes, options.threads, options.ranks_per_thread};
  const Split split = parse_split(test_variable("SPLIT"), test_variable("SPLIT_MASK"));
  const std::string problem = check_ranks(collective, layout, options, split);
  if (!problem.empty()) return refuse(program, problem, process == 0);
  std::optional<double> least_busbw;
  if (!min_busbw.empty()) {
    char* end = nullptr;
    least_busbw = std::strtod(min_busbw.c_str(), &end);
    if (*end != '\0' || !(*least_busbw >= 0)) {
      return refuse(program, "TRESTLE_TESTS_MIN_BW is a number of GB/s, not '" + min_busbw + "'", process == 0);
    }
  }
  const Equipment equipment = find_equipment(options);
  if (!equipment.problem.empty()) return refuse(program, equipment.problem, process == 0);
  if (options.processes > 0) {
    const std::string unwritable = options.json_path.empty() ? "" : JsonFile::probe(options.json_path);
    if (!unwritable.empty()) return refuse(program, unwritable, true);
    const bool one_each = options.threads == 1 && options.ranks_per_thread == 1;
    return run_local_processes(argc, argv, options.processes, options.bind && one_each);
  }
  Job job{collective, options, equipment, layout, local_process, split, program, {}, nullptr, {}, {}, {}, {}};
  job.min_busbw = least_busbw;
  JsonFile file;
  if (process == 0 && !options.json_path.empty()) job.report_problem = file.create(options.json_path);
  if (processes == 1 && !job.report_problem.empty()) return refuse(program, job.report_problem, true);
  std::optional<JsonReport> report;
  if (file.is_open()) {
    job.report = &report.emplace(argc, argv, program, file);
    at_failure([&report](const std::string& sentence) { (void)report->finish({0, 0, std::nullopt, sentence, {}}); });
  }
  return run_job(job);
}

}  // namespace trestle::perf
