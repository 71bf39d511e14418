// Execution: all ranks run symbolically, block by block. The value of a block is (which logical block, whose
// contributions). A send is complete only when its receiver has read it, directly from the sender's memory at that
// moment.
//
// A node is one block position of one step of one rank. It is ready when everything it waits for is complete and, for a
// receiver, all its senders are ready. A ready node that is not a send runs, which also completes the sends it
// consumes. The order of running does not matter (checker_order.cpp), so nodes run from a stack.
#include <algorithm>

#include "base/check.h"
#include "plan/cells.h"
#include "plan/checker_parts.h"
#include "plan/message_rows.h"

namespace trestle::checking {

namespace {

constexpr uint32_t kUnset = ~0u;

// The symbolic memory of one rank: per cell the logical block it holds and a bit per contributing rank.
class Memory {
 public:
  Memory(const Plan& plan, size_t words)
      : words_(words),
        logical_(Cells(plan).buffer_cells() + plan.scratch, kUnset),
        contributions_(logical_.size() * words) {}

  uint32_t& logical(uint32_t cell) { return logical_[cell]; }
  uint64_t* contributions(uint32_t cell) { return contributions_.data() + cell * words_; }
  void set(uint32_t cell, uint32_t logical, uint32_t rank) {
    logical_[cell] = logical;
    contributions(cell)[rank / 64] |= uint64_t{1} << (rank % 64);
  }

 private:
  size_t words_;
  std::vector<uint32_t> logical_;
  std::vector<uint64_t> contributions_;
};

// A directed edge list made by counting: for each node, the nodes that wait for it.
class Waiters {
 public:
  explicit Waiters(size_t nodes) : first_(nodes + 1) {}
  void count(uint32_t before) { ++first_[before + 1]; }
  void close() {
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    fill_.assign(first_.begin(), first_.end() - 1);
    after_.resize(first_.back());
  }
  void add(uint32_t before, uint32_t after) { after_[fill_[before]++] = after; }
  template <class F>
  void each(uint32_t before, F&& f) const {
    for (uint32_t i = first_[before]; i < first_[before + 1]; ++i) f(after_[i]);
  }

 private:
  std::vector<uint32_t> first_, fill_, after_;
};

class Execution {
 public:
  Execution(const std::vector<Plan>& plans, const std::vector<Matches>& matches, SumOrder order)
      : plans_(plans), matches_(matches), order_(order), words_((plans.size() + 63) / 64), sum_(words_) {}

  Status run();

 private:
  struct Node {
    uint32_t rank = 0;
    uint32_t step = 0;
    uint32_t position = 0;
  };

  void number_nodes();
  void link();
  void set_inputs(const Plan& plan);
  template <class F>
  void each_dependency(const Node& node, F&& f) const;
  template <class F>
  void each_sender(const Node& node, F&& f) const;
  uint32_t id(uint32_t rank, uint32_t step, uint32_t position) const { return base_[rank][step] + position; }

  Status perform(const Node& node);
  Status take(const Node& at, const Node& reader, const Source& source);
  Status check_follows(const Node& reader, const uint64_t* add) const;
  Status check_straight(const Node& node) const;
  void complete(uint32_t node);
  void release(uint32_t node);
  Error stuck() const;
  std::string waits_for(const Node& node) const;
  Status check_outputs(const Plan& plan);
  Status check_output(const Plan& plan, uint32_t block, uint32_t logical, int32_t only_rank);

  const std::vector<Plan>& plans_;
  const std::vector<Matches>& matches_;
  const SumOrder order_;
  size_t words_;
  std::vector<Cells> cells_;
  std::vector<Memory> memories_;
  std::vector<std::vector<uint32_t>> base_;        // first node, by rank and step
  std::vector<std::vector<uint32_t>> row_before_;  // by rank and step (message_rows.h)
  std::vector<Node> nodes_;
  std::vector<uint32_t> pending_;  // how many others a node still waits for
  std::vector<bool> done_;
  Waiters waiters_{0};  // the nodes that wait for a node's completion
  std::vector<uint32_t> runnable_;
  std::vector<uint64_t> sum_;  // contributions of the step that is running
  uint32_t sum_logical_ = kUnset;
};

template <class F>
void Execution::each_dependency(const Node& node, F&& f) const {
  const Plan& plan = plans_[node.rank];
  const Step& step = plan.steps[node.step];
  for (uint32_t i = 0; i < step.dependencies; ++i) {
    const Dependency& d = plan.dependencies[step.first_dependency + i];
    if (node.position >= d.my_first && node.position - d.my_first < d.count) {
      f(id(node.rank, d.step, d.its_first + (node.position - d.my_first)));
    }
  }
  // Stricter than the engine: a message in a row waits for the end of the one before.
  const uint32_t before = row_before_[node.rank][node.step];
  if (before == kNoStep) return;
  for (uint32_t i = 0; i < plan.steps[before].blocks; ++i) f(id(node.rank, before, i));
}

template <class F>
void Execution::each_sender(const Node& node, F&& f) const {
  const Plan& plan = plans_[node.rank];
  const Step& step = plan.steps[node.step];
  const Matches& matches = matches_[node.rank];
  if (step.kind == StepKind::kRecv) f(id(static_cast<uint32_t>(step.peer), matches.sender[node.step], node.position));
  if (step.kind != StepKind::kReduce) return;
  for (uint32_t s = step.first_source; s < step.first_source + step.sources; ++s) {
    const int32_t peer = plan.sources[s].peer;
    if (peer != kLocal) f(id(static_cast<uint32_t>(peer), matches.sender_of_source[s], node.position));
  }
}

void Execution::number_nodes() {
  base_.resize(plans_.size());
  for (uint32_t r = 0; r < plans_.size(); ++r) {
    cells_.emplace_back(plans_[r]);
    memories_.emplace_back(plans_[r], words_);
    row_before_.push_back(previous_in_rows(plans_[r]));
    for (uint32_t s = 0; s < plans_[r].steps.size(); ++s) {
      base_[r].push_back(static_cast<uint32_t>(nodes_.size()));
      for (uint32_t i = 0; i < plans_[r].steps[s].blocks; ++i) nodes_.push_back({r, s, i});
    }
  }
}

void Execution::link() {
  pending_.assign(nodes_.size(), 0);
  done_.assign(nodes_.size(), false);
  waiters_ = Waiters(nodes_.size());
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    each_dependency(nodes_[n], [&](uint32_t before) {
      waiters_.count(before);
      ++pending_[n];
    });
    each_sender(nodes_[n], [&](uint32_t) { ++pending_[n]; });
  }
  waiters_.close();
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    each_dependency(nodes_[n], [&](uint32_t before) { waiters_.add(before, n); });
  }
}

void Execution::set_inputs(const Plan& plan) {
  const auto me = static_cast<uint32_t>(plan.me);
  for (uint32_t i = 0; i < input_blocks(plan); ++i) {
    const PhaseKind kind = with_known_blocks(plan.kind);
    const uint32_t logical = kind == PhaseKind::kAllGather || kind == PhaseKind::kGather ? me : i ^ plan.turned;
    memories_[me].set(cells_[me].of(Space::kInput, i), logical, me);
  }
}

// The node waits for nothing any more: a send is offered to its receiver, any other step may run.
void Execution::release(uint32_t node) {
  const Node& at = nodes_[node];
  const Step& step = plans_[at.rank].steps[at.step];
  if (step.kind != StepKind::kSend) {
    runnable_.push_back(node);
    return;
  }
  const uint32_t receiver = id(static_cast<uint32_t>(step.peer), matches_[at.rank].receiver[at.step], at.position);
  if (--pending_[receiver] == 0) runnable_.push_back(receiver);
}

void Execution::complete(uint32_t node) {
  done_[node] = true;
  waiters_.each(node, [&](uint32_t after) {
    if (--pending_[after] == 0) release(after);
  });
}

// Adds the value of `source` at node `at` to the running value. `at` is the step itself, or the send whose message it
// takes.
Status Execution::take(const Node& at, const Node& reader, const Source& source) {
  const uint32_t block = source.blocks.first + at.position;
  const uint32_t cell = cells_[at.rank].of(source.blocks.space, block);
  const uint32_t logical = memories_[at.rank].logical(cell);
  const Plan& plan = plans_[at.rank];
  const uint32_t wanted = (plan.steps[at.step].logical_first + at.position) ^ plan.turned;
  const std::string_view phase = to_string(plan.kind);
  // In an all-to-all the same part of all blocks has the same length. Blocks travel in any order and packed. Only what
  // arrives at the end matters.
  const uint32_t parts = parts_of(plan);
  const bool any_order = plan.kind == PhaseKind::kAllToAll && logical != kUnset && logical % parts == wanted % parts;
  if (logical != wanted && !any_order) {
    const std::string what = step_name(plans_[at.rank], at.step) + " reads " + block_name(source.blocks.space, block);
    if (logical == kUnset) return fault(what + ", which nothing has written");
    return fault(what + " as logical block " + std::to_string(wanted) + ", but it holds logical block " +
                 std::to_string(logical) + " of this " + std::string(phase));
  }
  const uint64_t* add = memories_[at.rank].contributions(cell);
  const bool may_repeat = plan.kind == PhaseKind::kBarrier;
  if (order_ == SumOrder::kOfRanks && reduces(plan.kind)) TRY(check_follows(reader, add));
  for (size_t w = 0; w < words_; ++w) {
    if (const uint64_t twice = sum_[w] & add[w]; twice != 0 && !may_repeat) {
      return fault(step_name(plans_[reader.rank], reader.step) + " adds the contribution of rank " +
                   std::to_string(w * 64 + static_cast<size_t>(__builtin_ctzll(twice))) + " to logical block " +
                   std::to_string(wanted) + " twice");
    }
    sum_[w] |= add[w];
  }
  sum_logical_ = logical;
  return {};
}

// Checks that the ranks of a source come directly after those of the sources before it. A single contribution is a run
// of ranks. So by induction all sums are runs, combined in rank order.
Status Execution::check_follows(const Node& reader, const uint64_t* add) const {
  int64_t last = -1;
  for (size_t w = words_; w-- > 0 && last < 0;) {
    if (sum_[w] != 0) last = static_cast<int64_t>(w * 64 + 63 - static_cast<size_t>(__builtin_clzll(sum_[w])));
  }
  size_t w = 0;
  while (w < words_ && add[w] == 0) ++w;
  if (last < 0 || w == words_) return {};
  const auto first = static_cast<int64_t>(w * 64 + static_cast<size_t>(__builtin_ctzll(add[w])));
  if (first == last + 1) return {};
  return fault(step_name(plans_[reader.rank], reader.step) + " adds ranks from " + std::to_string(first) +
               " on to a sum that ends with rank " + std::to_string(last) + ", which is not rank order");
}

// If only two ranks know the length of a block: checks that it comes directly from its owner and goes directly to its
// final place.
Status Execution::check_straight(const Node& node) const {
  const Plan& plan = plans_[node.rank];
  const Step& step = plan.steps[node.step];
  if (!has_pairwise_blocks(plan.kind) || step.kind == StepKind::kCopy) return {};
  if (step.kind == StepKind::kReduce || step.destination.space != Space::kOutput) {
    return fault(step_name(plan, node.step) + " of a " + to_string(plan.kind) +
                 " takes a block elsewhere than into the output, where alone its length is known");
  }
  const auto sender = static_cast<size_t>(step.peer);
  if ((sum_[sender / 64] >> (sender % 64) & 1) == 0) {
    return fault(step_name(plan, node.step) + " of a " + to_string(plan.kind) +
                 " takes a block that is not its sender's");
  }
  return {};
}

Status Execution::perform(const Node& node) {
  const Plan& plan = plans_[node.rank];
  const Step& step = plan.steps[node.step];
  std::fill(sum_.begin(), sum_.end(), 0);
  auto take_message = [&](int32_t peer, uint32_t sender_step) -> Status {
    const Plan& sender = plans_[static_cast<size_t>(peer)];
    const Node at{static_cast<uint32_t>(peer), sender_step, node.position};
    return take(at, node, sender.sources[sender.steps[sender_step].first_source]);
  };
  const Matches& matches = matches_[node.rank];
  if (step.kind == StepKind::kRecv) TRY(take_message(step.peer, matches.sender[node.step]));
  for (uint32_t s = step.first_source; s < step.first_source + step.sources; ++s) {
    const Source& source = plan.sources[s];
    if (source.peer == kLocal) {
      TRY(take(node, node, source));
    } else {
      TRY(take_message(source.peer, matches.sender_of_source[s]));
    }
  }
  TRY(check_straight(node));
  const uint32_t cell = cells_[node.rank].of(step.destination.space, step.destination.first + node.position);
  memories_[node.rank].logical(cell) = sum_logical_;
  std::copy(sum_.begin(), sum_.end(), memories_[node.rank].contributions(cell));
  return {};
}

Status Execution::run() {
  number_nodes();
  link();
  for (const Plan& plan : plans_) set_inputs(plan);
  std::vector<uint32_t> free_from_the_start;
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    if (pending_[n] == 0) free_from_the_start.push_back(n);
  }
  for (uint32_t n : free_from_the_start) release(n);
  size_t completed = 0;
  while (!runnable_.empty()) {
    const uint32_t n = runnable_.back();
    runnable_.pop_back();
    CHECK(!done_[n], "a step ran twice");
    TRY(perform(nodes_[n]));
    ++completed;
    each_sender(nodes_[n], [&](uint32_t sender) {
      ++completed;
      complete(sender);
    });
    complete(n);
  }
  if (completed != nodes_.size()) return stuck();
  for (const Plan& plan : plans_) TRY(check_outputs(plan));
  return {};
}

std::string Execution::waits_for(const Node& node) const {
  std::string reason;
  each_dependency(node, [&](uint32_t before) {
    if (reason.empty() && !done_[before]) reason = step_name(plans_[node.rank], nodes_[before].step);
  });
  each_sender(node, [&](uint32_t sender) {
    if (reason.empty() && pending_[sender] > 0) {
      reason = step_name(plans_[nodes_[sender].rank], nodes_[sender].step) + ", which waits for " +
               waits_for(nodes_[sender]);
    }
  });
  return reason;
}

// Every node that did not run waits for another one. The message describes the first one that is not a send.
Error Execution::stuck() const {
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    const Plan& plan = plans_[nodes_[n].rank];
    const Step& step = plan.steps[nodes_[n].step];
    if (done_[n] || step.kind == StepKind::kSend) continue;
    return fault("deadlock: " + step_name(plan, nodes_[n].step) + " of logical block " +
                 std::to_string(step.logical_first + nodes_[n].position) + " waits forever for " +
                 waits_for(nodes_[n]));
  }
  return fault("deadlock among sends");
}

Status Execution::check_output(const Plan& plan, uint32_t block, uint32_t logical, int32_t only_rank) {
  const auto me = static_cast<uint32_t>(plan.me);
  const uint32_t cell = cells_[me].of(Space::kOutput, block);
  const std::string what = "rank " + std::to_string(me) + ", output block " + std::to_string(block);
  const uint32_t held = memories_[me].logical(cell);
  if (held == kUnset) return fault(what + ": no step has written it in the end");
  if (held != logical) {
    return fault(what + " holds logical block " + std::to_string(held) + " in the end, not " + std::to_string(logical));
  }
  const uint64_t* contributions = memories_[me].contributions(cell);
  for (uint32_t r = 0; r < plans_.size(); ++r) {
    const bool has = (contributions[r / 64] >> (r % 64) & 1) != 0;
    const bool wanted = only_rank < 0 || static_cast<uint32_t>(only_rank) == r;
    if (has == wanted) continue;
    return fault(what + (has ? " contains" : " lacks") + " the contribution of rank " + std::to_string(r) +
                 " in the end");
  }
  return {};
}

Status Execution::check_outputs(const Plan& plan) {
  const auto me = static_cast<uint32_t>(plan.me);
  constexpr int32_t kAll = -1;
  for (uint32_t i = 0; i < output_blocks(plan); ++i) {
    const uint32_t named = i ^ plan.turned;
    switch (with_known_blocks(plan.kind)) {
      case PhaseKind::kReduceScatter:
        TRY(check_output(plan, i, me, kAll));
        break;
      case PhaseKind::kAllGather:
      case PhaseKind::kGather:
        TRY(check_output(plan, i, named, static_cast<int32_t>(named)));
        break;
      case PhaseKind::kScatter:
        TRY(check_output(plan, i, me, plan.root));
        break;
      case PhaseKind::kAllReduce:
      case PhaseKind::kReduce:
      case PhaseKind::kBarrier:
        TRY(check_output(plan, i, named, kAll));
        break;
      case PhaseKind::kBroadcast:
        TRY(check_output(plan, i, i, plan.root));
        break;
      case PhaseKind::kAllToAll:
        TRY(check_output(plan, i, me * parts_of(plan) + i % parts_of(plan), static_cast<int32_t>(i / parts_of(plan))));
        break;
      case PhaseKind::kRecv:
        TRY(check_output(plan, i, i, 0));
        break;
      default:
        break;
    }
  }
  return {};
}

}  // namespace

Status execute(const std::vector<Plan>& plans, const std::vector<Matches>& matches, SumOrder order) {
  return Execution(plans, matches, order).run();
}

}  // namespace trestle::checking
