// train_step_perf: training steps over real communicators, measured beside simulated. Every rank replays a workload's
// forward and backward passes as timed compute under each policy of the scheduler of gradients.
#include <cstdio>
#include <cstring>
#include <vector>

#include "perf/driver/ending.h"
#include "perf/driver/environment.h"
#include "perf/driver/flags.h"
#include "perf/driver/memory.h"
#include "perf/driver/ranks.h"
#include "perf/driver/threads.h"
#include "perf/launch/launch.h"
#include "perf/report/report.h"
#include "perf/report/table.h"
#include "perf/train_step/gradients.h"
#include "perf/train_step/rounds.h"
#include "perf/train_step/workload.h"

namespace trestle::perf {
namespace {

// What every thread of this process needs; constant while they run.
struct Job {
  const TrainStepArguments& arguments;
  const GradientWorkload& workload;
  Layout layout;
  std::string program;
  trestleUniqueId id;
  trestleConfig_t config;
};

void print_report(const TrainStepReport& report, const std::string& program) {
  if (report.arguments.json) {
    print_line(report_json(report));
    return;
  }
  for (const std::string& text : table_lines(report)) print_line(text);
  if (report.arguments.check) print_line(wrong_line(wrong_elements(report)));
  print_line("# Training steps concluded: " + program);
}

// One rank, from the first call to the last. Returns the exit code.
int run_rank(const Job& job, int thread) {
  std::vector<trestleComm_t> comms(1);
  const int rank = job.layout.first_rank(thread);
  join(comms, rank, job.layout.nranks(), job.id, job.config);
  const Options options;
  Ranks ranks(job.layout, options, rank, comms, rank == 0);
  GradientWorkload workload = job.workload;  // --balance scales each rank's own
  const TrainStepReport report = measure_train_steps(ranks, job.arguments, workload);
  if (ranks.prints()) print_report(report, job.program);
  ranks.barrier();  // no rank may leave while others still work
  return wrong_elements(report) > 0 ? kExitWrong : kExitFine;
}

int run_job(Job& job) {
  const Layout& layout = job.layout;
  job.config = TRESTLE_CONFIG_INITIALIZER;
  if (job.arguments.timeout_s > 0) job.config.timeoutMs = int64_t{1000} * job.arguments.timeout_s;
  std::memset(&job.id, 0, sizeof job.id);  // zeros: the launcher's rendezvous
  if (layout.processes == 1) require(trestleGetUniqueId(&job.id));
  return run_threads(layout.threads, [&job](int thread) { return run_rank(job, thread); });
}

std::string too_large(const TrainStepArguments& arguments, const GradientWorkload& workload, int processes) {
  const double bytes = StepGradients::bytes_needed(workload, arguments.check);
  // The scheduler's buffers and the plain all-reduce each need as much as the gradients. Policies that delay updates
  // also need two sums of gradients; those that compress also need residuals and their messages.
  const int copies = arguments.allow == 0 ? 2 : 4;
  const double all =
      (bytes + copies * static_cast<double>(workload.bytes())) * arguments.threads * local_processes(processes);
  const auto available = static_cast<double>(available_memory_bytes());
  if (all <= 0.7 * available) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "the ranks of this host need %.0f MB, and %.0f MB are free: give a smaller --scale-bytes", 1e-6 * all,
                1e-6 * available);
  return text;
}

int refuse(const std::string& program, const std::string& sentence, bool prints) {
  if (prints) std::printf("%s: %s\n", program.c_str(), sentence.c_str());
  return kExitArguments;
}

int train_step_main(int argc, char** argv) {
  const std::string program = program_name(argc, argv, "train_step_perf");
  std::vector<char*> words(argv, argv + argc);  // getopt reorders them, and -P passes them on
  words.push_back(nullptr);
  const ParsedTrainStep parsed = parse_train_step(argc, words.data());
  const TrainStepArguments& arguments = parsed.arguments;
  adopt_test_variables();
  int process = 0, processes = 1;
  const bool launched = trestleLauncherInfo(&process, &processes, nullptr) == trestleSuccess;
  const bool prints = process == 0;
  if (!parsed.error.empty()) return refuse(program, parsed.error, prints);
  if (arguments.help) {
    if (prints) std::fputs(train_step_usage(program).c_str(), stdout);
    return kExitFine;
  }
  if (arguments.processes > 0 && launched && processes > 1) {
    return refuse(program, "-P starts processes, but a launcher has started " + std::to_string(processes), prints);
  }
  const Result<GradientWorkload> workload = replayed_workload(arguments);
  if (!workload.ok()) return refuse(program, workload.error().message, prints);
  if (arguments.processes > 0) processes = arguments.processes;
  const std::string too_much = too_large(arguments, workload.value(), processes);
  if (!too_much.empty()) return refuse(program, too_much, prints);
  if (arguments.processes > 0)
    return run_local_processes(argc, argv, processes, arguments.bind && arguments.threads == 1);
  Job job{arguments, workload.value(), {process, processes, arguments.threads, 1}, program, {}, {}};
  return run_job(job);
}

}  // namespace
}  // namespace trestle::perf

int main(int argc, char** argv) {
  return trestle::perf::train_step_main(argc, argv);
}
