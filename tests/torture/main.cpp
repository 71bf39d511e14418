// A torture test of the library through its public header: random programs on many ranks, with every element of every
// buffer compared. Meanwhile ranks die, stop or leave, and strangers connect.
//
//   torture [--seed N] [--jobs N | --seconds N] [--faults KIND] [--layout NAME] [--ranks N] [--deadline MS]
//           [--watchdog S] [--verbose] [--stacks] [--list]
//
// --seed     of the first job; the next jobs use the following ones (default 1; the variable TORTURE_SEED overrides it)
// --jobs     that many jobs
// --seconds  instead: runs all jobs that begin in that time (default 10, or the variable TORTURE_SECONDS)
// --faults   none (default), kill, freeze, blink, exit, abort, idle, leave, flood;
//            all: the seed chooses one of these, except flood
// --layout   one of --list; else the seed chooses
// --ranks    number of ranks, if the layout does not fix it
// --deadline of operations in jobs in which a rank fails (milliseconds)
// --watchdog a job without progress for this time hangs (seconds)
// --verbose  prints a line per job, and the output of its ranks
// --stacks   prints the stacks of processes that hang, with gdb
// --list     prints the layouts
//
// A job's seed determines everything except timing. A failed job prints the errors, the output of its ranks and the
// command that repeats it. The last line has the totals. Exit status 1: a job failed.
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "torture/run_job.h"

namespace torture {
namespace {

struct Options {
  uint64_t seed = 1;
  int jobs = 0;
  int seconds = 10;
  bool verbose = false;
  Fixed fixed;
  Watch watch;
};

struct Totals {
  int jobs = 0;
  int failed = 0;
  uint64_t calls = 0;
  uint64_t strangers = 0;
  int leaks = 0;
  std::map<FaultKind, int> struck;
  Verdict verdict;
};

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr, "torture: %s; see the beginning of tests/torture/main.cpp\n", why.c_str());
  std::exit(2);
}

uint64_t number(const char* option, const char* text) {
  char* end = nullptr;
  const uint64_t value = text == nullptr ? 0 : std::strtoull(text, &end, 10);
  if (text == nullptr || *text == '\0' || *end != '\0') usage(std::string(option) + " needs a number");
  return value;
}

void list_layouts() {
  for (const Layout& layout : layouts()) {
    std::printf("%-14s ranks %s, dims '%s', transport '%s', hosts '%s', ranks per process %d\n", layout.name.c_str(),
                layout.ranks == 0 ? "any" : std::to_string(layout.ranks).c_str(), layout.dims.c_str(),
                layout.transport.c_str(), layout.hosts.c_str(), layout.per_process);
  }
  std::exit(0);
}

void read_option(const std::string& option, const char* value, Options& options) {
  const auto n = [&] { return number(option.c_str(), value); };
  if (option == "--seed") {
    options.seed = n();
  } else if (option == "--jobs") {
    options.jobs = static_cast<int>(n());
  } else if (option == "--seconds") {
    options.seconds = static_cast<int>(n());
  } else if (option == "--ranks") {
    options.fixed.ranks = static_cast<int>(n());
  } else if (option == "--deadline") {
    options.fixed.deadline_ms = static_cast<int64_t>(n());
  } else if (option == "--watchdog") {
    options.watch.seconds = static_cast<int>(n());
  } else if (option == "--faults") {
    options.fixed.faults = value == nullptr ? "" : value;
    if (!is_known_faults(options.fixed.faults)) usage("there are no faults '" + options.fixed.faults + "'");
  } else if (option == "--layout") {
    options.fixed.layout = value == nullptr ? "" : value;
    bool known = false;
    for (const Layout& layout : layouts()) known = known || layout.name == options.fixed.layout;
    if (!known) usage("there is no layout '" + options.fixed.layout + "'");
  } else {
    usage("there is no option " + option);
  }
}

Options read_options(int argc, char** argv) {
  Options options;
  if (const char* seconds = std::getenv("TORTURE_SECONDS"))
    options.seconds = static_cast<int>(number("TORTURE_SECONDS", seconds));
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      options.verbose = true;
    } else if (option == "--stacks") {
      options.watch.stacks = true;
    } else if (option == "--list") {
      list_layouts();
    } else {
      read_option(option, argv[i + 1], options);
      ++i;
    }
  }
  // The variable is read last, for tests whose command line is fixed.
  if (const char* seed = std::getenv("TORTURE_SEED")) options.seed = number("TORTURE_SEED", seed);
  if (options.fixed.ranks < 0 || options.fixed.ranks > 8) usage("--ranks is at most 8");
  return options;
}

// Moves to its own network and /dev/shm, if allowed, so that everything left there belongs to the job.
bool isolate() {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (mount("none", "/dev/shm", "tmpfs", 0, nullptr) != 0) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq up{};
  std::strncpy(up.ifr_name, "lo", sizeof up.ifr_name - 1);
  up.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool ok = ioctl(fd, SIOCSIFFLAGS, &up) == 0;
  close(fd);
  return ok;
}

std::string command(const Options& options, uint64_t seed) {
  std::string text = "torture --seed " + std::to_string(seed) + " --jobs 1 --faults " + options.fixed.faults;
  if (!options.fixed.layout.empty()) text += " --layout " + options.fixed.layout;
  if (options.fixed.ranks != 0) text += " --ranks " + std::to_string(options.fixed.ranks);
  if (options.fixed.deadline_ms != 0) text += " --deadline " + std::to_string(options.fixed.deadline_ms);
  return text;
}

void add(Totals& totals, const JobPlan& plan, const JobResult& result) {
  ++totals.jobs;
  totals.failed += !result.wrong.empty();
  totals.calls += result.calls;
  totals.strangers += static_cast<uint64_t>(result.strangers);
  totals.leaks += result.leaks;
  totals.struck[plan.fault.kind] += result.struck;
  totals.verdict.survivors += result.verdict.survivors;
  totals.verdict.failures += result.verdict.failures;
  totals.verdict.unfailed += result.verdict.unfailed;
  totals.verdict.codes += result.verdict.codes;
  for (int i = 0; i < 4; ++i) totals.verdict.naming[i] += result.verdict.naming[i];
}

void run_one(const Options& options, uint64_t seed, Totals& totals) {
  const JobPlan plan = plan_job(seed, options.fixed);
  if (options.verbose) std::printf("%s\n", to_string(plan).c_str());
  std::fflush(nullptr);
  JobResult result = run_job(plan, options.watch);
  // Every run of a seed must give the same bits.
  if (seed % 8 == 0 && result.wrong.empty() && plan.fault.kind == FaultKind::kNone) {
    const JobResult again = run_job(plan, options.watch);
    if (again.wrong.empty() && again.checksums != result.checksums)
      result.wrong.push_back("a second run has given other bits");
    for (const std::string& text : again.wrong) result.wrong.push_back("the second run: " + text);
  }
  add(totals, plan, result);
  if (!result.wrong.empty()) {
    if (!options.verbose) std::printf("%s\n", to_string(plan).c_str());
    std::printf("FAILED");
    for (const std::string& text : result.wrong) std::printf("  %s\n", text.c_str());
  }
  if (!result.wrong.empty() || options.verbose) {
    for (const std::string& text : result.details) std::printf("  %s\n", text.c_str());
  }
  if (!result.wrong.empty()) std::printf("  repeat: %s\n", command(options, seed).c_str());
  std::fflush(nullptr);
}

void summarize(const Totals& totals) {
  const Verdict& v = totals.verdict;
  std::printf("torture: %d jobs, %llu calls of ranks", totals.jobs, static_cast<unsigned long long>(totals.calls));
  for (const auto& [kind, count] : totals.struck) {
    if (count != 0) std::printf(", %d %s", count, name(kind).c_str());
  }
  if (totals.strangers != 0)
    std::printf(", %llu visits of strangers", static_cast<unsigned long long>(totals.strangers));
  if (v.survivors != 0) {
    std::printf(
        "; %d survivors, %d failures: %d name the victim first, %d not first, %d another rank, %d nobody; %d without "
        "an error, %d wrong codes",
        v.survivors, v.failures, v.naming[0], v.naming[1], v.naming[2], v.naming[3], v.unfailed, v.codes);
  }
  if (totals.leaks != 0) std::printf("; %d processes have left something in themselves", totals.leaks);
  std::printf("; %d jobs failed\n", totals.failed);
}

int run(int argc, char** argv) {
  Options options = read_options(argc, argv);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  options.watch.isolated = isolate();
  if (!options.watch.isolated) std::printf("torture: no namespaces of its own: /dev/shm is not looked at\n");
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(options.seconds);
  Totals totals;
  for (uint64_t seed = options.seed; options.jobs > 0 ? totals.jobs < options.jobs : Clock::now() < end; ++seed) {
    run_one(options, seed, totals);
  }
  summarize(totals);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace torture

int main(int argc, char** argv) {
  return torture::run(argc, argv);
}
