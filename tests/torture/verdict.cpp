#include "torture/verdict.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "torture/program.h"

namespace torture {
namespace {

constexpr const char* kNamings[] = {"rightly", "not first", "wrongly", "nobody"};

bool has_any(const std::string& numbers, const std::vector<int>& victims) {
  static const std::regex number("[0-9]+");
  for (std::sregex_iterator at(numbers.begin(), numbers.end(), number), end; at != end; ++at) {
    if (std::find(victims.begin(), victims.end(), std::stoi(at->str())) != victims.end()) return true;
  }
  return false;
}

bool is_right_code(FaultKind kind, int result) {
  if (kind == FaultKind::kAbort) return result == trestleAborted;
  if (result == trestleRemoteError) return true;
  return result == trestleTimeout && (kind == FaultKind::kFreeze || kind == FaultKind::kIdle);
}

// Whether the thread had passed the last action in which other ranks need it.
bool had_finished(const JobPlan& plan, const Board& board, int rank, int thread, size_t actions) {
  const LaneBoard& lane = board.lane[rank][thread];
  if (plan.fault.kind == FaultKind::kExit || plan.fault.kind == FaultKind::kAbort) return false;
  return lane.state == static_cast<int>(LaneState::kDone) || lane.action >= static_cast<int>(actions) - 1;
}

// A communicator that fails while a split makes it may name ranks of its parent. Returns that parent, or -1.
int parent_of(const Program& program, const Failure& failure) {
  if (failure.comm < 0 || failure.action < 0) return -1;
  const Action& action = program.actions[static_cast<size_t>(failure.action)];
  const bool made = std::find(action.made.begin(), action.made.end(), failure.comm) != action.made.end();
  return made ? action.comm : -1;
}

// The ranks of a communicator in the victim's process, or all others.
std::vector<int> ranks_of(const JobPlan& plan, const Program& program, int comm, bool victims) {
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const bool victim = plan.process_of(rank) == plan.process_of(plan.fault.victim);
    if (victim == victims && program.rank_in(comm, rank) >= 0) ranks.push_back(program.rank_in(comm, rank));
  }
  return ranks;
}

// A rank that has its error also gives up its other communicators. There it is the one to blame.
bool is_given_up(const JobPlan& plan, const Program& program, const Failure& failure) {
  const int comm = failure.comm < 0 ? kNoComm - failure.comm : failure.comm;
  return (failure.result == trestleAborted || failure.result == trestleRemoteError) &&
         naming_of(failure.sentence, ranks_of(plan, program, comm, false), 0) == Naming::kRight;
}

void judge_failure(const JobPlan& plan, const Program& program, const Failure& failure, pid_t pid,
                   const std::string& who, Verdict& verdict) {
  const int comm = failure.comm < 0 ? kNoComm - failure.comm : failure.comm;
  const int parent = parent_of(program, failure);
  std::vector<int> victims = ranks_of(plan, program, comm, true);
  if (victims.empty()) return;
  if (parent >= 0) std::ranges::copy(ranks_of(plan, program, parent, true), std::back_inserter(victims));
  ++verdict.failures;
  std::ostringstream out;
  const Naming naming = naming_of(failure.sentence, victims, pid);
  ++verdict.naming[static_cast<int>(naming)];
  if (naming != Naming::kRight) out << who << " names " << kNamings[static_cast<int>(naming)] << "; ";
  // If a rank dies before another one has met it, the creation of a communicator fails only at the deadline.
  const bool joining = plan.fault.at < 0 && failure.action < 0 && failure.result == trestleTimeout;
  if (!is_right_code(plan.fault.kind, failure.result) && !joining) {
    ++verdict.codes;
    out << who << " has the wrong code; ";
  }
  if (failure.comm < 0) out << who << " has an error that no communicator has; ";
  verdict.wrong += out.str();
}

}  // namespace

Naming naming_of(const std::string& sentence, const std::vector<int>& victims, pid_t pid) {
  static const std::regex named(
      "\\branks? ([0-9]+(?:(?:, | and |, rank )[0-9]+)*)(?: \\(host [^,)]*, pid ([0-9]+)\\))?");
  bool any = false;
  bool there = false;
  for (std::sregex_iterator at(sentence.begin(), sentence.end(), named), end; at != end; ++at) {
    const bool other = pid != 0 && (*at)[2].matched && std::stol((*at)[2]) != pid;
    const bool victim = !other && has_any((*at)[1], victims);
    if (!any && victim) return Naming::kRight;
    any = true;
    there = there || victim;
  }
  return there ? Naming::kNotFirst : any ? Naming::kWrong : Naming::kMissing;
}

namespace {

bool tells_of_victim(const JobPlan& plan, const Program& program, const LaneBoard& lane) {
  for (int i = 0; i < lane.failures; ++i) {
    if (!is_given_up(plan, program, lane.failure[i])) return true;
  }
  return false;
}

// If one communicator of a thread names the victim, the others may name ranks that gave up. A deadline passes in one
// communicator first, so a rank that is in no such communicator hears only of ranks that gave up.
bool may_be_given_up(const JobPlan& plan, const Program& program, const Board& board, int rank, int thread) {
  if (tells_of_victim(plan, program, board.lane[rank][thread])) return true;
  if (plan.may_wait_forever()) return false;
  for (int other = 0; other < plan.ranks; ++other) {
    const bool survives = plan.process_of(other) != plan.process_of(plan.fault.victim);
    if (survives && tells_of_victim(plan, program, board.lane[other][thread])) return true;
  }
  return false;
}

void judge_thread(const JobPlan& plan, const Program& program, const LaneBoard& lane, bool given_up, pid_t pid,
                  const std::string& who, Verdict& verdict) {
  for (int i = 0; i < lane.failures; ++i) {
    if (given_up && is_given_up(plan, program, lane.failure[i])) continue;
    judge_failure(plan, program, lane.failure[i], pid, who, verdict);
  }
}

}  // namespace

Verdict judge(const JobPlan& plan, const Board& board, pid_t victim) {
  Verdict verdict;
  if (!fails_others(plan.fault.kind)) return verdict;
  for (int thread = 0; thread < plan.threads; ++thread) {
    const Program program = make_program(plan, thread);
    bool finished = false;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (plan.process_of(rank) != plan.process_of(plan.fault.victim)) continue;
      finished = finished || had_finished(plan, board, rank, thread, program.actions.size());
    }
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (plan.process_of(rank) == plan.process_of(plan.fault.victim)) continue;
      const LaneBoard& lane = board.lane[rank][thread];
      const std::string who =
          "rank " + std::to_string(rank) + (plan.threads > 1 ? " thread " + std::to_string(thread) : "");
      ++verdict.survivors;
      if (lane.failures == 0 && !finished && board.id_made[thread] != kNoId) {
        ++verdict.unfailed;
        verdict.wrong += who + " has got no error; ";
      }
      judge_thread(plan, program, lane, may_be_given_up(plan, program, board, rank, thread), victim, who, verdict);
    }
  }
  return verdict;
}

}  // namespace torture
