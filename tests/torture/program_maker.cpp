#include "torture/program.h"

#include <algorithm>

#include "torture/random.h"

namespace torture {
namespace {

constexpr size_t kMostGroupBytes = size_t{1} << 20;
constexpr int kMostComms = 5;  // at the same time, per thread

class Maker {
 public:
  Maker(const JobPlan& plan, int thread) : plan_(plan), random_(mix(plan.seed, 0x9409, static_cast<uint64_t>(thread))) {
    std::vector<int> all;
    for (int r = 0; r < plan.ranks; ++r) all.push_back(r);
    program_.comms.push_back(all);
    alive_.push_back(0);
  }

  Program make() {
    for (int i = 0; i < plan_.actions; ++i) program_.actions.push_back(any());
    Action end{.act = Act::kEnd};
    end.calls = {barrier(0)};
    program_.actions.push_back(end);
    return std::move(program_);
  }

 private:
  int any_comm() { return random_.one_in(2) ? 0 : random_.in(alive_); }
  int any_stream() { return random_.one_in(8) ? kAnyStream : random_.from_to(0, plan_.streams); }
  int some_stream() { return random_.from_to(1, plan_.streams); }
  size_t most(const Call& call, size_t parts) const {
    return std::max<size_t>(1, plan_.most_bytes / size_of(call.type) / parts);
  }
  size_t count(const Call& call, size_t parts);
  Call fresh(int comm);
  Call collective(int comm);
  Call vector_call(int comm);
  Call message(int comm, int from, int to);
  Call barrier(int comm);
  void choose_operator(Call& call);
  std::vector<Call> messages(int comm);
  Action any();
  Action one_call();
  Action group();
  Action persistent();
  Action decomposed();
  Action chain();
  Action split();
  Action drop();
  Action order(Act act);

  const JobPlan& plan_;
  Random random_;
  Program program_;
  std::vector<int> alive_;
  int next_id_ = 0;
};

// Chooses sizes near special values: nothing, one, the number of ranks, powers of two, the library's limits.
size_t Maker::count(const Call& call, size_t parts) {
  const size_t limit = most(call, parts);
  const size_t size = size_of(call.type);
  const size_t around =
      random_.of<size_t>({8, 16, 64, 256, 1021, 1024, 4096, 8192 / size, 16'384 / size, 65'536 / size});
  const size_t edge = around + random_.below(3) - 1;
  const size_t tiny = random_.below(static_cast<size_t>(plan_.ranks) + 4);
  const size_t any = random_.below(limit + 1);
  const size_t n = random_.of<size_t>({0, 1, tiny, tiny, edge, edge, edge, edge, any, any >> random_.below(16), limit});
  return std::min(n, limit);
}

Call Maker::fresh(int comm) {
  Call call;
  call.id = next_id_++;
  call.comm = comm;
  call.stream = any_stream();
  call.seed = random_.next();
  call.type = static_cast<trestleDataType_t>(random_.below(trestleNumTypes));
  call.config = random_.one_in(6) ? random_.from_to(1, 5) : 0;
  return call;
}

void Maker::choose_operator(Call& call) {
  call.op = static_cast<Op>(random_.below(kOps));
  if (call.op == Op::kAffine && !plan_.ordered_operators) call.op = Op::kXor;
  // A fifth of the float sums and averages have arbitrary inputs, whose results have no reference.
  call.exact = !(is_float(call.type) && call.op <= Op::kAvg && random_.one_in(5));
}

Call Maker::collective(int comm) {
  if (random_.one_in(4)) return vector_call(comm);
  Call call = fresh(comm);
  call.collective = random_.of({trestleCollAllReduce, trestleCollAllReduce, trestleCollAllReduce,
                                trestleCollReduceScatter, trestleCollAllGather, trestleCollBroadcast, trestleCollReduce,
                                trestleCollAllToAll, trestleCollGather, trestleCollScatter});
  choose_operator(call);
  const int n = program_.size_of(comm);
  const bool whole = call.collective == trestleCollAllReduce || call.collective == trestleCollBroadcast ||
                     call.collective == trestleCollReduce;
  call.count = count(call, whole ? 1 : static_cast<size_t>(n));
  call.root = random_.from_to(0, n - 1);
  call.in_place = random_.of({0, 0, 0, 1, 1, 2});
  return call;
}

Call Maker::vector_call(int comm) {
  Call call = fresh(comm);
  call.collective = random_.of({trestleCollAllGatherV, trestleCollReduceScatterV, trestleCollAllToAllV,
                                trestleCollGatherV, trestleCollScatterV});
  choose_operator(call);
  const int n = program_.size_of(comm);
  call.root = random_.from_to(0, n - 1);
  call.in_place = random_.of({0, 0, 1, 2});
  call.gaps = random_.one_in(2);
  const bool pairs = call.collective == trestleCollAllToAllV;
  call.counts.resize(static_cast<size_t>(pairs ? n * n : n));
  for (size_t& length : call.counts) length = random_.one_in(5) ? 0 : count(call, static_cast<size_t>(n));
  if (!pairs || call.in_place == 0) return call;
  // In place both lists of a rank are the same.
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < a; ++b)
      call.counts[static_cast<size_t>(a * n + b)] = call.counts[static_cast<size_t>(b * n + a)];
  }
  return call;
}

Call Maker::message(int comm, int from, int to) {
  Call call = fresh(comm);
  call.collective = trestleCollSendRecv;
  call.root = from;
  call.peer = to;
  call.count = count(call, static_cast<size_t>(2 * program_.size_of(comm)));
  return call;
}

Call Maker::barrier(int comm) {
  Call call = fresh(comm);
  call.collective = trestleCollBarrier;
  return call;
}

// A ring, or messages between random ranks, including messages to itself.
std::vector<Call> Maker::messages(int comm) {
  std::vector<Call> calls;
  const int n = program_.size_of(comm);
  const int by = random_.from_to(0, n - 1);
  if (random_.one_in(2)) {
    const int stream = any_stream();
    for (int r = 0; r < n; ++r) calls.push_back(message(comm, r, (r + by) % n));
    for (Call& call : calls) call.stream = stream;
    return calls;
  }
  for (int i = random_.from_to(1, 2 * n); i > 0; --i) {
    calls.push_back(message(comm, random_.from_to(0, n - 1), random_.from_to(0, n - 1)));
  }
  return calls;
}

Action Maker::one_call() {
  Action action{.act = Act::kCall};
  action.comm = any_comm();
  const int n = program_.size_of(action.comm);
  if (n > 1 && random_.one_in(8)) {
    const int from = random_.from_to(0, n - 1);
    action.calls = {message(action.comm, from, (from + random_.from_to(1, n - 1)) % n)};
  } else {
    action.calls = {collective(action.comm)};
  }
  return action;
}

Action Maker::group() {
  Action action{.act = Act::kGroup};
  action.variant = random_.one_in(2);
  size_t bytes = 0;
  for (int i = random_.from_to(0, 4); i >= 0 && bytes < kMostGroupBytes; --i) {
    const int comm = any_comm();
    if (random_.one_in(2)) {
      action.calls.push_back(random_.one_in(8) ? barrier(comm) : collective(comm));
    } else {
      for (const Call& call : messages(comm)) action.calls.push_back(call);
    }
    bytes = 0;
    for (const Call& call : action.calls) bytes += largest_bytes(call, program_.size_of(call.comm));
  }
  return action;
}

Action Maker::persistent() {
  Action action{.act = Act::kPersistent};
  action.comm = any_comm();
  action.calls = {random_.one_in(8) ? barrier(action.comm) : collective(action.comm)};
  action.number = random_.from_to(1, 4);
  action.variant = random_.one_in(2);
  return action;
}

Action Maker::decomposed() {
  Action action{.act = Act::kDecomposed};
  action.comm = any_comm();
  Call call = fresh(action.comm);
  choose_operator(call);
  call.count = count(call, 1);
  call.in_place = random_.of({0, 1, 2});
  action.calls = {call};
  // Whether the shard is awaited and changed, and how the halves are begun.
  action.number = random_.from_to(0, 3);
  return action;
}

Action Maker::chain() {
  Action action{.act = Act::kChain};
  action.comm = any_comm();
  Call first = fresh(action.comm);
  choose_operator(first);
  first.exact = true;
  first.count = count(first, static_cast<size_t>(program_.size_of(action.comm)));
  first.in_place = random_.of({0, 1});
  first.stream = some_stream();
  Call second = first;
  second.id = next_id_++;
  second.collective = random_.of({trestleCollAllGather, trestleCollBroadcast});
  second.of_result = true;
  second.in_place = 0;
  second.root = random_.from_to(0, program_.size_of(action.comm) - 1);
  second.stream = random_.one_in(2) ? first.stream : some_stream();
  action.calls = {first, second};
  action.number = random_.from_to(0, kEvents - 1);
  return action;
}

// Ranks that wait for a stopped rank must be able to name it. Then only communicators with all ranks contain it.
Action Maker::split() {
  const bool all = plan_.fault.kind == FaultKind::kFreeze || plan_.fault.kind == FaultKind::kIdle;
  Action action{.act = Act::kSplit};
  action.comm = random_.one_in(3) ? random_.in(alive_) : 0;
  action.variant = random_.one_in(2);
  const std::vector<int> parents = program_.comms[static_cast<size_t>(action.comm)];
  const int colors = random_.from_to(1, 3);
  for (size_t r = 0; r < parents.size(); ++r) {
    action.colors.push_back(all ? 0 : random_.one_in(8) ? -1 : random_.from_to(0, colors - 1));
    action.keys.push_back(random_.from_to(-3, 3));
  }
  for (int color = 0; color < colors; ++color) {
    std::vector<size_t> members;
    for (size_t r = 0; r < parents.size(); ++r) {
      if (action.colors[r] == color) members.push_back(r);
    }
    std::stable_sort(members.begin(), members.end(),
                     [&](size_t a, size_t b) { return action.keys[a] < action.keys[b]; });
    action.made.push_back(members.empty() ? -1 : static_cast<int>(program_.comms.size()));
    if (members.empty()) continue;
    std::vector<int> ranks;
    for (const size_t r : members) ranks.push_back(parents[r]);
    alive_.push_back(static_cast<int>(program_.comms.size()));
    program_.comms.push_back(ranks);
  }
  return action;
}

Action Maker::drop() {
  Action action{.act = Act::kDrop};
  action.variant = random_.one_in(2);
  const size_t place = 1 + random_.below(alive_.size() - 1);
  action.comm = alive_[place];
  alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(place));
  return action;
}

Action Maker::order(Act act) {
  Action action{.act = act};
  action.comm = any_comm();
  action.stream = some_stream();
  action.number = random_.from_to(0, kEvents - 1);
  action.variant = random_.one_in(2);
  if (act == Act::kBarrier) action.calls = {barrier(action.comm)};
  return action;
}

Action Maker::any() {
  const int which = random_.from_to(0, 99);
  if (which < 42) return one_call();
  if (which < 54) return group();
  if (which < 60) return persistent();
  if (which < 66) return decomposed();
  if (which < 70) return chain();
  if (which < 75) return order(Act::kRecord);
  if (which < 79) return order(Act::kWaitEvent);
  if (which < 83) return order(Act::kSyncEvent);
  if (which < 87) return order(Act::kSyncStream);
  if (which < 90) return order(Act::kSyncComm);
  if (which < 93) return order(Act::kBarrier);
  if (which < 94) return order(Act::kRefused);
  if (which < 96) return order(Act::kQuestions);
  if (alive_.size() > 1 && (which == 99 || alive_.size() >= kMostComms)) return drop();
  return split();
}

}  // namespace

Program make_program(const JobPlan& plan, int thread) {
  return Maker(plan, thread).make();
}

}  // namespace torture
