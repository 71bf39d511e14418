#include "sched/model/steps_model_shape.h"

#include <algorithm>

#include "sched/model/plan_shape.h"

namespace trestle {
namespace {

uint32_t longest_chain(const PhaseShape& shape) {
  std::vector<uint32_t> length;
  uint32_t longest = 0;
  for (const ShapeMessage& message : shape.messages) {
    uint32_t mine = 1;
    for (uint32_t d = 0; d < message.dependencies; ++d) {
      mine = std::max(mine, 1 + length[shape.dependencies[message.first_dependency + d].message]);
    }
    length.push_back(mine);
    longest = std::max(longest, mine);
  }
  return longest;
}

uint64_t sent_blocks(const PhaseShape& shape) {
  uint64_t sent = 0;
  for (const ShapeMessage& message : shape.messages) sent += message.blocks;
  return sent;
}

// How much later, in blocks, the data that messages wait for lies in its message than in the waiting one; summed over
// all dependencies. Ranks differ in this.
int64_t lateness(const PhaseShape& shape) {
  int64_t sum = 0;
  for (const ShapeDependency& d : shape.dependencies) {
    sum += static_cast<int64_t>(d.its_begin) - static_cast<int64_t>(d.my_begin);
  }
  return sum;
}

// Joins messages that wait for nothing into one with copies.
void join_copies(PhaseShape& shape) {
  std::vector<ShapeMessage>& all = shape.messages;
  const bool alike = std::all_of(all.begin(), all.end(), [&](const ShapeMessage& m) {
    return m.dependencies == 0 && m.blocks == all.front().blocks;
  });
  if (all.size() < 2 || !alike) return;
  ShapeMessage joined = all.front();
  joined.copies = static_cast<uint32_t>(all.size());
  joined.reduced_blocks *= all.size();
  all = {joined};
}

// Whether the shape is a chain of equal messages, each of which follows the one before, block by block or in turn.
// Edges to earlier messages are then implied.
bool is_chain(const PhaseShape& shape) {
  for (size_t k = 1; k < shape.messages.size(); ++k) {
    const ShapeMessage& m = shape.messages[k];
    if (m.blocks != shape.messages[0].blocks || m.reduced_blocks > m.blocks) return false;
    bool follows = false;
    for (uint32_t i = 0; i < m.dependencies; ++i) {
      const ShapeDependency& d = shape.dependencies[m.first_dependency + i];
      const bool whole = d.my_begin == 0 && d.its_begin == 0 && d.my_end == m.blocks;
      follows |= d.message + 1 == k && (whole || d.turn != ShapeDependency::Turn::kNone);
    }
    if (!follows) return false;
  }
  return true;
}

void shorten_chain(PhaseShape& shape, uint32_t most_messages) {
  const auto count = static_cast<uint32_t>(shape.messages.size());
  if (count <= most_messages || !is_chain(shape)) return;
  const uint32_t together = (count + most_messages - 1) / most_messages;
  const auto is_turn = [](const ShapeDependency& d) { return d.turn != ShapeDependency::Turn::kNone; };
  const bool turns = std::all_of(shape.dependencies.begin(), shape.dependencies.end(), is_turn);
  PhaseShape shorter;
  shorter.blocks = shape.blocks;
  for (uint32_t k = 0; k < count; k += together) {
    ShapeMessage m = shape.messages[k];
    m.in_turn = std::min(together, count - k);
    m.turns = turns;
    m.reduced_blocks = 0;
    for (uint32_t i = 0; i < m.in_turn; ++i) m.reduced_blocks += shape.messages[k + i].reduced_blocks;
    m.first_dependency = static_cast<uint32_t>(shorter.dependencies.size());
    m.dependencies = k == 0 ? 0 : 1;
    if (k != 0) shorter.dependencies.push_back({k / together - 1, 0, m.blocks, 0});
    shorter.messages.push_back(m);
  }
  shape = std::move(shorter);
}

PhaseShape pipeline(const AlgorithmCost& cost) {
  PhaseShape shape;
  if (cost.steps == 0) return shape;
  shape.blocks = cost.sent_den * cost.reduced_den;
  ShapeMessage message;
  message.blocks = cost.sent_num * cost.reduced_den;
  message.reduced_blocks = cost.reduced_num * cost.sent_den;
  message.hops = cost.steps;
  shape.messages.push_back(message);
  return shape;
}

// Scales the messages up from this rank's bytes to those of the busiest rank.
void scale_to(PhaseShape& shape, const AlgorithmCost& cost) {
  const uint64_t sent = sent_blocks(shape);
  if (sent == 0 || sent * cost.sent_den == cost.sent_num * shape.blocks) return;
  shape.blocks = cost.sent_den * sent;
  for (ShapeMessage& message : shape.messages) {
    message.blocks *= cost.sent_num;
    message.reduced_blocks *= cost.sent_num;
  }
  for (ShapeDependency& edge : shape.dependencies) {
    edge.my_begin *= cost.sent_num;
    edge.my_end *= cost.sent_num;
    edge.its_begin *= cost.sent_num;
  }
}

// Finds a representative rank: one that receives as many messages as it sends and has as many consecutive messages as
// the catalog says, as if all ranks of the group did the same. If a group does not halve evenly, sent and received
// sizes may differ a little. Of several it takes the rank that sends most, and of these the one with the largest
// lateness(). False: there is none.
bool representative(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, const AlgorithmCost& cost,
                    PhaseShape& best) {
  // In larger groups the other ranks are like these.
  static constexpr int32_t kMostAsked = 64;
  bool any = false;
  const bool even = (group_size & (group_size - 1)) == 0;
  const int32_t asked =
      even || cost.steps + 1u >= static_cast<uint32_t>(group_size) ? 2 : std::min(group_size, kMostAsked);
  for (int32_t i = 0; i < asked; ++i) {
    const Plan plan = algorithm.build({kind, group_size, i + 1 == asked ? group_size - 1 : i, 0, false});
    PhaseShape shape;
    if (!shape_of(plan, shape)) continue;
    if (longest_chain(shape) != cost.steps) continue;
    const uint64_t sent = sent_blocks(shape);
    const uint64_t most = any ? sent_blocks(best) : 0;
    if (any && (sent < most || (sent == most && lateness(shape) <= lateness(best)))) continue;
    best = std::move(shape);
    any = true;
  }
  return any;
}

}  // namespace

PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages) {
  return phase_shape(algorithm, kind, group_size, most_messages, algorithm.cost(kind, group_size));
}

PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages,
                       const AlgorithmCost& cost) {
  if (group_size == 1) return {};
  const bool rooted = has_root(kind) || kind == PhaseKind::kSend || kind == PhaseKind::kRecv;
  PhaseShape shape;
  if (rooted || !representative(algorithm, kind, group_size, cost, shape)) {
    shape = pipeline(cost);
  } else {
    scale_to(shape, cost);
    join_copies(shape);
    shorten_chain(shape, std::max(most_messages, 2u));
  }
  shape.converges = cost.converges;
  return shape;
}

}  // namespace trestle
