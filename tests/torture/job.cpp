#include "torture/job.h"

#include <algorithm>
#include <sstream>

namespace torture {
namespace {

constexpr const char* kFaultNames[] = {"none", "kill", "freeze", "blink", "exit", "abort", "idle", "leave", "flood"};

FaultKind kind_of(const std::string& faults, Random& random) {
  using K = FaultKind;
  const K any = random.of({K::kKill, K::kKill, K::kFreeze, K::kBlink, K::kExit, K::kAbort, K::kIdle, K::kLeave});
  if (faults == "all") return any;
  for (int k = 0; k <= static_cast<int>(K::kFlood); ++k) {
    if (faults == kFaultNames[k]) return static_cast<K>(k);
  }
  return K::kNone;
}

Layout layout_of(const std::string& name, Random& random) {
  const Layout any = random.in(layouts());
  for (const Layout& layout : layouts()) {
    if (layout.name == name) return layout;
  }
  return any;
}

void set(JobPlan& plan, const char* variable, const std::string& value) {
  plan.environment[std::string("TRESTLE_") + variable] = value;
}

// Chooses extreme settings. If segments are tiny the data is small, so that a call ends in time.
void choose_sizes(JobPlan& plan, Random& random) {
  plan.most_bytes = random.of<size_t>({4096, 65'536, 300'000, 1u << 20, 3u << 20});
  if (random.one_in(3)) {
    const int segment = random.of({1, 8, 64, 1000, 4096, 65'536, 1 << 20});
    set(plan, "SEGMENT", std::to_string(segment));
    plan.most_bytes = std::min(plan.most_bytes, static_cast<size_t>(segment) * 512);
  }
  if (random.one_in(3)) set(plan, "EAGER", random.of<std::string>({"0", "100", "4096", "1M"}));
  if (random.one_in(3)) set(plan, "EXPRESS", random.of<std::string>({"0", "1"}));
  if (random.one_in(4)) set(plan, "EXPRESS_BYTES", random.of<std::string>({"0", "1", "8", "1000"}));
  if (random.one_in(4)) set(plan, "INFLIGHT", random.of<std::string>({"1", "1", "2", "1024"}));
  if (random.one_in(4)) set(plan, "STAGING", "1M");
  if (random.one_in(4)) set(plan, "CHUNKS", random.of<std::string>({"1", "2", "7", "33"}));
}

void choose_ways(JobPlan& plan, Random& random) {
  if (random.one_in(3)) set(plan, "SPIN", random.of<std::string>({"0", "1", "1000", "100000"}));
  if (random.one_in(3)) set(plan, "CHECK", "1");
  if (random.one_in(6)) set(plan, "CHECK_PLANS", "1");
  if (random.one_in(4)) set(plan, "SHM_MAP", "0");
  if (random.one_in(4)) set(plan, "SCHED", random.of<std::string>({"baseline", "themis", "auto"}));
  if (random.one_in(6)) set(plan, "INTRA", "fifo");
  plan.progress_thread = !random.one_in(4);
  if (!plan.progress_thread) set(plan, "PROGRESS_THREAD", "0");
  if (random.one_in(4)) {
    set(plan, "ALGO",
        random.of<std::string>({"allreduce:ring;broadcast:tree", "allreduce:0-64k=*rd,64k-inf=ring",
                                "allreduce:*dbtree;reduce:*tree;barrier:dissemination", "^ring", "^bruck",
                                "allreduce:*hd;allgather:*bruck;alltoall:*bruck"}));
    plan.ordered_operators = false;
  }
}

// Copies and reductions that are done late, as a device would. Its numbers are its own, so that known seeds still give
// the same programs. Many tiny segments would take forever.
void choose_work(JobPlan& plan) {
  Random random(~plan.seed);
  if (plan.environment.contains("TRESTLE_SEGMENT") || !random.one_in(4)) return;
  plan.environment["TESTS_WORK_DELAY_US"] = random.of<std::string>({"1", "50", "500"});
}

// Several helper threads, for the ranks and communicators of a process. Its numbers are its own, too.
void choose_helpers(JobPlan& plan) {
  Random random(plan.seed ^ 0x9e3779b97f4a7c15);
  if (random.one_in(3)) set(plan, "PROGRESS_THREADS", random.of<std::string>({"1", "2", "3", "64"}));
}

void choose_ends(JobPlan& plan, Random& random) {
  plan.blocking = !random.one_in(4);
  plan.init_all = plan.per_process >= plan.ranks && plan.layout.hosts.empty() && random.one_in(2);
  plan.finalize = random.one_in(2);
  const auto any =
      random.of({Rendezvous::kId, Rendezvous::kId, Rendezvous::kCommId, Rendezvous::kStore, Rendezvous::kLauncher});
  if (plan.threads == 1 && plan.processes() > 1) plan.rendezvous = any;
  if (plan.per_process > 1 && any == Rendezvous::kLauncher) plan.rendezvous = Rendezvous::kId;
}

// The victim of an exit, abort or idle fault causes it itself and alone. The others must hear of it without asking.
void choose_fault(JobPlan& plan, const Fixed& fixed, Random& random) {
  Fault& fault = plan.fault;
  fault.kind = kind_of(fixed.faults, random);
  fault.victim = random.from_to(0, plan.ranks - 1);
  fault.at = random.one_in(6) ? -1 : static_cast<double>(random.below(1000)) / 1000;
  fault.spin = random.below(uint64_t{1} << random.from_to(4, 24));
  fault.variant = random.one_in(2);
  const int64_t frozen_ms = 4000;
  if (!fails_others(fault.kind) && fault.kind != FaultKind::kLeave) return;
  plan.progress_thread = true;
  plan.environment.erase("TRESTLE_PROGRESS_THREAD");
  plan.init_all = false;
  if (fault.kind == FaultKind::kKill || fault.kind == FaultKind::kFreeze) {
    if (plan.per_process >= plan.ranks) plan.per_process = 1;
  } else {
    plan.threads = 1;
    plan.per_process = 1;
    if (fault.at < 0) fault.at = 0;
  }
  if (plan.per_process == 1 && plan.layout.per_process != 1) plan.layout.transport = "";
  if (fault.kind == FaultKind::kFreeze || fault.kind == FaultKind::kIdle || fault.at < 0) plan.deadline_ms = frozen_ms;
  if (fails_others(fault.kind) && fixed.deadline_ms > 0) plan.deadline_ms = fixed.deadline_ms;
}

}  // namespace

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"plain", 0, "", "", "", 1},
      {"shm", 0, "", "shm", "", 1},
      {"tcp", 0, "", "tcp", "", 1},
      {"threads", 0, "", "", "", 0},
      {"pairs", 4, "", "", "", 2},
      {"pairs-tcp", 6, "", "tcp", "", 2},
      {"2x2", 4, "2x2", "shm,tcp", "", 1},
      {"2x2-shm", 4, "2x2", "shm", "", 1},
      {"4x2", 8, "4x2", "shm,tcp", "", 1},
      {"3x2", 6, "3x2", "tcp,shm", "", 1},
      {"2x2x2", 8, "2x2x2", "shm,shm,tcp", "", 1},
      {"2x2x2-threads", 8, "2x2x2", "", "", 0},
      {"2x2-pairs", 4, "2x2", "loopback,tcp", "", 2},
      {"3+2", 5, "", "", "aaabb", 1},
      {"3+3", 6, "", "", "aaabbb", 1},
      {"1+3", 4, "", "", "abbb", 1},
  };
  return all;
}

std::string name(FaultKind kind) {
  return kFaultNames[static_cast<int>(kind)];
}

bool is_known_faults(const std::string& name) {
  return name == "all" || std::find(std::begin(kFaultNames), std::end(kFaultNames), name) != std::end(kFaultNames);
}

bool fails_others(FaultKind kind) {
  return kind == FaultKind::kKill || kind == FaultKind::kFreeze || kind == FaultKind::kExit ||
         kind == FaultKind::kAbort || kind == FaultKind::kIdle;
}

JobPlan plan_job(uint64_t seed, const Fixed& fixed) {
  Random random(mix(seed, 0x70b));
  JobPlan plan;
  plan.seed = seed;
  plan.layout = layout_of(fixed.layout, random);
  const int any = random.of({1, 2, 2, 2, 3, 3, 4, 4, 5, 7});
  plan.ranks = plan.layout.ranks != 0 ? plan.layout.ranks : fixed.ranks != 0 ? fixed.ranks : any;
  if (fixed.faults != "none" && plan.ranks < 2) plan.ranks = 2;
  plan.per_process = plan.layout.per_process == 0 ? plan.ranks : plan.layout.per_process;
  plan.threads = plan.ranks <= 4 ? random.of({1, 1, 1, 2, 3}) : 1;
  plan.actions = random.of({3, 20, 40, 40, 80, 150}) / (plan.ranks > 5 ? 2 : 1);
  plan.streams = random.from_to(1, 4);
  choose_sizes(plan, random);
  choose_ways(plan, random);
  choose_work(plan);
  choose_helpers(plan);
  choose_ends(plan, random);
  choose_fault(plan, fixed, random);
  return plan;
}

std::string to_string(const JobPlan& plan) {
  std::ostringstream out;
  out << "seed " << plan.seed << ": " << plan.ranks << " ranks, layout " << plan.layout.name << ", " << plan.threads
      << " threads per rank, " << plan.actions << " actions, data up to " << plan.most_bytes << " B";
  if (!plan.blocking) out << ", blocking 0";
  if (plan.init_all) out << ", CommInitAll";
  for (const auto& [name, value] : plan.environment) out << " " << name << "=" << value;
  if (plan.fault.kind == FaultKind::kNone) return out.str();
  out << "; " << name(plan.fault.kind) << " rank " << plan.fault.victim;
  if (plan.fault.at < 0) out << " while the communicator is made";
  return out.str() + ", deadline " + std::to_string(plan.deadline_ms) + " ms";
}

}  // namespace torture
