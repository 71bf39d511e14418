#include "sched/model/plan_shape.h"

#include <algorithm>

namespace trestle {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

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

// Makes the messages of a shape from the sends of a plan. Sends to the same peer in turn are the parts of one message.
class Joiner {
 public:
  // The plan must receive as many messages as it sends.
  Joiner(const Plan& plan, const Messages& messages) : plan_(plan), messages_(messages), tracer_(plan, messages) {}

  PhaseShape join() && {
    shape_.blocks = plan_.blocks;
    for (uint32_t k = 0; k < messages_.sent.size(); ++k) add(k);
    return std::move(shape_);
  }

 private:
  struct Place {
    uint32_t message = 0;  // of the shape
    uint64_t begin = 0;    // in it
  };

  void add(uint32_t k) {
    const uint32_t step = messages_.sent[k];
    const bool first = k == 0 || !is_next_part(step, messages_.sent[k - 1]);
    if (first) {
      shape_.messages.emplace_back();
      shape_.messages.back().blocks = 0;
      shape_.messages.back().parts = 0;
      shape_.messages.back().first_dependency = static_cast<uint32_t>(shape_.dependencies.size());
    }
    ShapeMessage& message = shape_.messages.back();
    places_.push_back({static_cast<uint32_t>(shape_.messages.size() - 1), message.blocks});
    message.blocks += plan_.steps[step].blocks;
    ++message.parts;
    if (plan_.steps[messages_.received[k]].kind == StepKind::kReduce) {
      message.reduced_blocks += plan_.steps[step].blocks;
    }
    for (const ShapeDependency& d : tracer_.trace(step)) {
      if (d.message < k) depend(d);  // a message cannot wait for a later one
    }
    if (first) add_turns(step);
    message.dependencies = static_cast<uint32_t>(shape_.dependencies.size()) - message.first_dependency;
  }

  bool is_next_part(uint32_t step, uint32_t before) const {
    return plan_.steps[step].after == before && plan_.steps[step].peer == plan_.steps[before].peer;
  }

  void depend(const ShapeDependency& d) {
    const Place mine = places_.back();
    const Place its = places_[d.message];
    if (its.message == mine.message) return;
    shape_.dependencies.push_back(
        {its.message, mine.begin + d.my_begin, mine.begin + d.my_end, its.begin + d.its_begin});
  }

  // Messages of a row of turns are under way with at most two peers. That fewer are where they keep the link busy
  // makes no difference here.
  void add_turns(uint32_t step) {
    using Turn = ShapeDependency::Turn;
    Turn turn = Turn::kWindow;
    int32_t peer = plan_.steps[step].peer;
    for (uint32_t before = plan_.steps[step].after; before != kNoStep; before = plan_.steps[before].after) {
      if (plan_.steps[before].peer == peer) continue;
      peer = plan_.steps[before].peer;
      shape_.dependencies.push_back({places_[messages_.sent_as[before]].message, 0, 0, 0, turn});
      if (turn == Turn::kEnd) return;
      turn = Turn::kEnd;
    }
  }

  const Plan& plan_;
  const Messages& messages_;
  Tracer tracer_;
  std::vector<Place> places_;  // by number of the send
  PhaseShape shape_;
};

}  // namespace

bool shape_of(const Plan& plan, PhaseShape& shape) {
  const Messages messages = messages_of(plan);
  if (messages.sent.size() != messages.received.size()) return false;
  shape = Joiner(plan, messages).join();
  return true;
}

}  // namespace trestle
