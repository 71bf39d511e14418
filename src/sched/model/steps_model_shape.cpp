#include "sched/model/steps_model_shape.h"

#include <algorithm>
#include <tuple>

namespace trestle {
namespace {

static constexpr uint32_t kNone = UINT32_MAX;

// The messages of a plan, numbered in plan order. Sends and receives are numbered separately.
struct Messages {
  std::vector<uint32_t> sent;      // step
  std::vector<uint32_t> received;  // step; a reduction of several messages appears several times
  std::vector<uint32_t> sent_as;   // by step: number of the send, or kNone
  std::vector<uint32_t> first_in;  // by step: number of its first received message
  std::vector<uint32_t> inbound;   // by step: received messages
};

Messages messages_of(const Plan& plan) {
  Messages m;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    m.sent_as.push_back(step.kind == StepKind::kSend ? static_cast<uint32_t>(m.sent.size()) : kNone);
    m.first_in.push_back(static_cast<uint32_t>(m.received.size()));
    uint32_t inbound = step.kind == StepKind::kRecv ? 1 : 0;
    if (step.kind == StepKind::kReduce) {
      for (uint32_t i = 0; i < step.sources; ++i) inbound += plan.sources[step.first_source + i].peer != kLocal ? 1 : 0;
    }
    m.inbound.push_back(inbound);
    m.received.insert(m.received.end(), inbound, s);
    if (step.kind == StepKind::kSend) m.sent.push_back(s);
  }
  return m;
}

// Finds the messages that a send waits for, through all steps of its own rank in between.
class Tracer {
 public:
  Tracer(const Plan& plan, const Messages& messages) : plan_(plan), messages_(messages) {}

  std::vector<ShapeDependency> trace(uint32_t step) {
    found_.clear();
    const uint64_t blocks = plan_.steps[step].blocks;
    follow(step, 0, blocks, 0);
    return found_;
  }

 private:
  // [begin, end) are positions of a step. They correspond to positions from `mine` on of the send.
  void follow(uint32_t step, uint64_t begin, uint64_t end, uint64_t mine) {
    const Step& what = plan_.steps[step];
    for (uint32_t d = 0; d < what.dependencies; ++d) {
      const Dependency& edge = plan_.dependencies[what.first_dependency + d];
      const uint64_t from = std::max<uint64_t>(begin, edge.my_first);
      const uint64_t upto = std::min<uint64_t>(end, edge.my_first + uint64_t{edge.count});
      if (from >= upto) continue;
      const uint64_t its = edge.its_first + from - edge.my_first;
      visit(edge.step, its, its + upto - from, mine + from - begin);
    }
  }

  void visit(uint32_t step, uint64_t begin, uint64_t end, uint64_t mine) {
    if (messages_.sent_as[step] != kNone) {  // a block may be overwritten when the peer has it
      add(messages_.sent_as[step], begin, end, mine);
      return;
    }
    for (uint32_t i = 0; i < messages_.inbound[step]; ++i) add(messages_.first_in[step] + i, begin, end, mine);
    follow(step, begin, end, mine);
  }

  void add(uint32_t message, uint64_t begin, uint64_t end, uint64_t mine) {
    const auto same = [&](const ShapeDependency& d) {
      return d.message == message && d.my_begin == mine && d.its_begin == begin && d.my_end >= mine + end - begin;
    };
    if (std::none_of(found_.begin(), found_.end(), same)) found_.push_back({message, mine, mine + end - begin, begin});
  }

  const Plan& plan_;
  const Messages& messages_;
  std::vector<ShapeDependency> found_;
};

// At most two messages of a row of turns are under way.
void add_turns(const Plan& plan, const Messages& messages, uint32_t step, PhaseShape& shape) {
  using Turn = ShapeDependency::Turn;
  Turn turn = Turn::kWindow;
  for (uint32_t before = plan.steps[step].after; before != kNoStep; before = plan.steps[before].after) {
    shape.dependencies.push_back({messages.sent_as[before], 0, plan.steps[step].blocks, 0, turn});
    if (turn == Turn::kEnd) return;
    turn = Turn::kEnd;
  }
}

// The plan must receive as many messages as it sends.
PhaseShape shape_of(const Plan& plan, const Messages& messages) {
  PhaseShape shape;
  shape.blocks = plan.blocks;
  Tracer tracer(plan, messages);
  for (size_t k = 0; k < messages.sent.size(); ++k) {
    ShapeMessage message;
    message.blocks = plan.steps[messages.sent[k]].blocks;
    if (plan.steps[messages.received[k]].kind == StepKind::kReduce) message.reduced_blocks = message.blocks;
    message.first_dependency = static_cast<uint32_t>(shape.dependencies.size());
    for (const ShapeDependency& d : tracer.trace(messages.sent[k])) {
      // A message cannot wait for a later one.
      if (d.message < k) shape.dependencies.push_back(d);
    }
    add_turns(plan, messages, messages.sent[k], shape);
    message.dependencies = static_cast<uint32_t>(shape.dependencies.size()) - message.first_dependency;
    shape.messages.push_back(message);
  }
  return shape;
}

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

// Whether the shape is a chain of equal messages, each of which follows the one before block by block. Edges to earlier
// messages are then implied.
bool is_chain(const PhaseShape& shape) {
  for (size_t k = 1; k < shape.messages.size(); ++k) {
    const ShapeMessage& m = shape.messages[k];
    if (m.blocks != shape.messages[0].blocks || m.reduced_blocks > m.blocks) return false;
    bool follows = false;
    for (uint32_t i = 0; i < m.dependencies; ++i) {
      const ShapeDependency& d = shape.dependencies[m.first_dependency + i];
      follows |= d.message + 1 == k && d.my_begin == 0 && d.its_begin == 0 && d.my_end == m.blocks;
    }
    if (!follows) return false;
  }
  return true;
}

void shorten_chain(PhaseShape& shape, uint32_t most_messages) {
  const auto count = static_cast<uint32_t>(shape.messages.size());
  if (count <= most_messages || !is_chain(shape)) return;
  const uint32_t together = (count + most_messages - 1) / most_messages;
  PhaseShape shorter;
  shorter.blocks = shape.blocks;
  for (uint32_t k = 0; k < count; k += together) {
    ShapeMessage m = shape.messages[k];
    m.in_turn = std::min(together, count - k);
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
    const Messages messages = messages_of(plan);
    if (messages.sent.size() != messages.received.size()) continue;
    PhaseShape shape = shape_of(plan, messages);
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
