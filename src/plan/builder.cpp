#include "plan/builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace trestle {

namespace {

Plan empty_plan(const PlanRequest& request, uint32_t blocks, uint32_t turned) {
  CHECK(request.group_size >= 1, "a group has at least one rank");
  CHECK(request.me >= 0 && request.me < request.group_size, "my index lies outside the group");
  CHECK(request.root >= 0 && request.root < request.group_size, "the root lies outside the group");
  CHECK(blocks >= 1, "a phase has at least one block");
  Plan plan;
  plan.kind = request.kind;
  plan.group_size = request.group_size;
  plan.me = request.me;
  plan.root = request.root;
  plan.in_place = request.in_place;
  plan.blocks = blocks;
  plan.turned = turned;
  return plan;
}

}  // namespace

PlanBuilder::PlanBuilder(const PlanRequest& request, uint32_t blocks, uint32_t turned)
    : plan_(empty_plan(request, blocks, turned)),
      cells_(plan_),
      sent_(static_cast<size_t>(request.group_size)),
      received_(static_cast<size_t>(request.group_size)) {}

void PlanBuilder::check_peer(int32_t peer) const {
  CHECK(peer >= 0 && peer < plan_.group_size && peer != plan_.me, "a step names a peer outside the group or itself");
}

void PlanBuilder::add_local_source(const BlockRange& blocks) {
  plan_.sources.push_back({kLocal, blocks, 0});
}

void PlanBuilder::send(int32_t peer, BlockRange source, uint32_t logical_first) {
  check_peer(peer);
  Step step;
  step.kind = StepKind::kSend;
  step.peer = peer;
  step.message = sent_[static_cast<size_t>(peer)]++;
  step.logical_first = logical_first;
  step.blocks = source.count;
  step.first_source = static_cast<uint32_t>(plan_.sources.size());
  add_local_source(source);
  close(step);
}

void PlanBuilder::recv(int32_t peer, BlockRange destination, uint32_t logical_first) {
  check_peer(peer);
  Step step;
  step.kind = StepKind::kRecv;
  step.peer = peer;
  step.message = received_[static_cast<size_t>(peer)]++;
  step.destination = destination;
  step.logical_first = logical_first;
  step.blocks = destination.count;
  step.first_source = static_cast<uint32_t>(plan_.sources.size());
  close(step);
}

void PlanBuilder::copy(BlockRange destination, BlockRange source, uint32_t logical_first) {
  CHECK(destination.count == source.count, "the ranges of a copy differ in length");
  bool same = true;
  for (uint32_t i = 0; i < source.count; ++i) {
    same = same && cells_.of(source.space, source.first + i) == cells_.of(destination.space, destination.first + i);
  }
  if (same) return;
  Step step;
  step.kind = StepKind::kCopy;
  step.destination = destination;
  step.logical_first = logical_first;
  step.blocks = source.count;
  step.first_source = static_cast<uint32_t>(plan_.sources.size());
  add_local_source(source);
  close(step);
}

uint32_t PlanBuilder::last() const {
  CHECK(!plan_.steps.empty(), "a plan without steps has no last one");
  return static_cast<uint32_t>(plan_.steps.size()) - 1;
}

void PlanBuilder::in_turn_after(uint32_t step) {
  CHECK(step < last() && is_message(plan_.steps[step]) && plan_.steps[step].kind == plan_.steps.back().kind,
        "a message takes its turn after an earlier one in the same direction");
  plan_.steps.back().after = step;
}

void PlanBuilder::reduce(BlockRange destination, const std::vector<Operand>& sources, uint32_t logical_first) {
  CHECK(sources.size() >= 2, "a reduce has at least two sources");
  Step step;
  step.kind = StepKind::kReduce;
  step.destination = destination;
  step.logical_first = logical_first;
  step.blocks = destination.count;
  step.first_source = static_cast<uint32_t>(plan_.sources.size());
  for (const Operand& operand : sources) {
    if (operand.peer == kLocal) {
      CHECK(operand.blocks.count == destination.count, "the ranges of a reduce differ in length");
      add_local_source(operand.blocks);
    } else {
      check_peer(operand.peer);
      plan_.sources.push_back({operand.peer, {}, received_[static_cast<size_t>(operand.peer)]++});
    }
  }
  close(step);
}

PlanBuilder::CellHistory& PlanBuilder::history(uint32_t cell) {
  if (cell >= histories_.size()) histories_.resize(cell + 1);
  return histories_[cell];
}

void PlanBuilder::close(Step step) {
  CHECK(step.blocks >= 1, "a step moves at least one block");
  step.sources = static_cast<uint32_t>(plan_.sources.size()) - step.first_source;
  edges_.clear();
  derive_reads(step);
  if (step.kind != StepKind::kSend) derive_writes(step);
  store_edges(step);
  plan_.steps.push_back(step);
}

void PlanBuilder::derive_reads(const Step& step) {
  const auto me = static_cast<uint32_t>(plan_.steps.size());
  for (uint32_t s = 0; s < step.sources; ++s) {
    const Source& source = plan_.sources[step.first_source + s];
    if (source.peer != kLocal) continue;
    if (source.blocks.space == Space::kScratch) {
      plan_.scratch = std::max(plan_.scratch, source.blocks.first + source.blocks.count);
    }
    for (uint32_t i = 0; i < step.blocks; ++i) {
      CellHistory& cell = history(cells_.of(source.blocks.space, source.blocks.first + i));
      if (cell.written) edges_.push_back({cell.writer.step, i, cell.writer.position});
      cell.readers.push_back({me, i});
    }
  }
}

void PlanBuilder::derive_writes(const Step& step) {
  const auto me = static_cast<uint32_t>(plan_.steps.size());
  const BlockRange& range = step.destination;
  CHECK(range.space != Space::kInput, "a step writes the input");
  if (range.space == Space::kScratch) plan_.scratch = std::max(plan_.scratch, range.first + range.count);
  for (uint32_t i = 0; i < step.blocks; ++i) {
    CellHistory& cell = history(cells_.of(range.space, range.first + i));
    // With readers in between, the older write is implied: the readers waited for it.
    if (cell.written && cell.readers.empty()) edges_.push_back({cell.writer.step, i, cell.writer.position});
    for (const Access& reader : cell.readers) {
      if (reader.step == me) {
        CHECK(reader.position == i, "a step overwrites a block that it reads at another position");
      } else {
        edges_.push_back({reader.step, i, reader.position});
      }
    }
    cell.readers.clear();
    cell.written = true;
    cell.writer = {me, i};
  }
}

// Runs of blocks that wait for runs of the same step become one Dependency each.
void PlanBuilder::store_edges(Step& step) {
  // The difference is equal along a run. Only that matters, so it may be unsigned and wrap.
  auto key = [](const Edge& e) { return std::tuple(e.step, e.mine - e.its, e.mine); };
  std::sort(edges_.begin(), edges_.end(), [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  step.first_dependency = static_cast<uint32_t>(plan_.dependencies.size());
  for (const Edge& edge : edges_) {
    if (plan_.dependencies.size() > step.first_dependency) {
      Dependency& last = plan_.dependencies.back();
      if (last.step == edge.step && last.my_first - last.its_first == edge.mine - edge.its) {
        if (edge.mine < last.my_first + last.count) continue;  // a duplicate of the same edge
        if (edge.mine == last.my_first + last.count) {
          ++last.count;
          continue;
        }
      }
    }
    plan_.dependencies.push_back({edge.step, edge.mine, edge.its, 1});
  }
  step.dependencies = static_cast<uint32_t>(plan_.dependencies.size()) - step.first_dependency;
}

Plan PlanBuilder::finish() && {
  return std::move(plan_);
}

}  // namespace trestle
