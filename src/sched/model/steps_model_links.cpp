#include "sched/model/steps_model_links.h"

#include <algorithm>

namespace trestle {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

// The progress of a message, in segments.
struct Progress {
  uint32_t ready = 0;
  uint32_t sent = 0;
  uint32_t arrived = 0;
};

// A phase that has started.
struct Running {
  const StepsPhase* phase = nullptr;
  PhaseId id;
  uint32_t link = 0;
  uint32_t incomplete = 0;  // messages
  uint32_t low = 0;         // messages before this one are sent
  uint32_t high = 0;        // messages from this one on have nothing ready
  std::vector<Progress> messages;
};

struct Arrival {
  uint64_t time_ps = 0;
  uint32_t running = 0;
  uint32_t message = 0;
};

// Segments in flight, earliest first. They are sent one after the other and mostly take equally long.
class Flight {
 public:
  void push(const Arrival& arrival) {
    if (head_ > 1024 && head_ * 2 > list_.size()) {
      list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    list_.push_back(arrival);
    for (size_t i = list_.size() - 1; i > head_ && list_[i - 1].time_ps > list_[i].time_ps; --i) {
      std::swap(list_[i - 1], list_[i]);
    }
  }
  uint64_t next_ps() const { return head_ == list_.size() ? kNever : list_[head_].time_ps; }
  Arrival take() { return list_[head_++]; }

 private:
  std::vector<Arrival> list_;
  size_t head_ = 0;
};

struct Link {
  const DimensionOrder* order = nullptr;
  uint32_t position = 0;          // in the order
  std::vector<uint32_t> started;  // not complete, in start order; indices of Running
  uint64_t free_ps = 0;           // when busy
  bool busy = false;
  Flight flight;
};

class Links {
 public:
  Links(const Schedule& schedule, const std::vector<std::vector<const StepsPhase*>>& phases, bool intervals)
      : phases_(phases), intervals_(intervals), links_(schedule.orders.size()), next_stage_(phases.size()) {
    for (size_t l = 0; l < links_.size(); ++l) {
      links_[l].order = &schedule.orders[l];
      result_.links.push_back({schedule.orders[l].dimension, 0, 0});
    }
    for (const auto& chunk : phases) {
      result_.phases.emplace_back(chunk.size());
      left_ += chunk.size();
    }
  }

  StepsResult run() {
    start_phases();
    serve_all();
    for (uint64_t next = next_ps(); next != kNever; next = next_ps()) {
      now_ps_ = next;
      for (Link& link : links_) {
        if (link.busy && link.free_ps == now_ps_) link.busy = false;
        while (link.flight.next_ps() == now_ps_) arrive(link.flight.take());
      }
      if (phase_ended_) start_phases();
      serve_all();
    }
    result_.finished = left_ == 0;
    result_.time_ps = now_ps_;
    return std::move(result_);
  }

 private:
  uint64_t next_ps() const {
    uint64_t next = kNever;
    for (const Link& link : links_) {
      if (link.busy) next = std::min(next, link.free_ps);
      next = std::min(next, link.flight.next_ps());
    }
    return next;
  }

  // A phase without messages completes when it starts, and may let others start.
  void start_phases() {
    do {
      phase_ended_ = false;
      for (uint32_t l = 0; l < links_.size(); ++l) start_phases(l);
    } while (phase_ended_);
  }

  void start_phases(uint32_t l) {
    Link& link = links_[l];
    const uint32_t most = std::max(1u, link.order->in_flight);
    while (link.position < link.order->order.size() && link.started.size() < most) {
      const PhaseId id = link.order->order[link.position];
      if (next_stage_[id.chunk] != id.stage) return;
      ++link.position;
      start(l, id);
    }
  }

  void start(uint32_t l, PhaseId id) {
    const uint32_t index = take_running();
    Running& running = running_[index];
    running.phase = phases_[id.chunk][id.stage];
    running.id = id;
    running.link = l;
    const size_t count = running.phase->messages.size();
    running.incomplete = static_cast<uint32_t>(count);
    running.low = running.high = 0;
    running.messages.assign(count, {});
    result_.phases[id.chunk][id.stage].start_ps = now_ps_;
    links_[l].started.push_back(index);
    for (uint32_t m = 0; m < count; ++m) advance(running, m);
    for (const StepsMessage& message : running.phase->messages) result_.links[l].bytes += message.bytes;
    if (count == 0) end(index);
  }

  uint32_t take_running() {
    if (unused_.empty()) {
      running_.emplace_back();
      return static_cast<uint32_t>(running_.size() - 1);
    }
    const uint32_t index = unused_.back();
    unused_.pop_back();
    return index;
  }

  // Marks those segments of a message as ready whose needs have arrived.
  void advance(Running& running, uint32_t m) {
    const StepsPhase& phase = *running.phase;
    const StepsMessage& message = phase.messages[m];
    Progress& mine = running.messages[m];
    if (message.waits == 0) mine.ready = message.segments;
    while (mine.ready < message.segments) {
      bool held = false;
      for (uint32_t d = 0; d < message.waits && !held; ++d) {
        const uint32_t need = phase.needs[message.first_need + d * message.segments + mine.ready];
        held = running.messages[phase.waits_for[message.first_wait + d]].arrived < need;
      }
      if (held) break;
      ++mine.ready;
    }
    if (mine.ready != 0) running.high = std::max(running.high, m + 1);
  }

  void arrive(const Arrival& arrival) {
    Running& running = running_[arrival.running];
    const StepsPhase& phase = *running.phase;
    const StepsMessage& message = phase.messages[arrival.message];
    Progress& progress = running.messages[arrival.message];
    ++progress.arrived;
    for (uint32_t f = 0; f < message.followers; ++f) {
      advance(running, phase.follower_list[message.first_follower + f]);
    }
    if (progress.arrived < message.segments) return;
    if (--running.incomplete == 0) end(arrival.running);
  }

  void end(uint32_t index) {
    const Running& running = running_[index];
    result_.phases[running.id.chunk][running.id.stage].end_ps = now_ps_;
    std::vector<uint32_t>& started = links_[running.link].started;
    started.erase(std::find(started.begin(), started.end(), index));
    ++next_stage_[running.id.chunk];
    --left_;
    unused_.push_back(index);
    phase_ended_ = true;
  }

  void serve_all() {
    for (uint32_t l = 0; l < links_.size(); ++l) {
      if (!links_[l].busy) serve(l);
    }
  }

  void serve(uint32_t l) {
    for (const uint32_t index : links_[l].started) {
      Running& running = running_[index];
      for (uint32_t m = running.low; m < running.high; ++m) {
        const StepsMessage& message = running.phase->messages[m];
        Progress& progress = running.messages[m];
        if (progress.sent == message.segments && m == running.low) ++running.low;
        if (progress.sent == progress.ready || progress.sent - progress.arrived >= message.window) continue;
        send(l, index, m);
        return;
      }
    }
  }

  void note_busy(std::vector<StepsTimes>& intervals, uint64_t until_ps) const {
    if (intervals.empty() || intervals.back().end_ps != now_ps_) intervals.push_back({now_ps_, now_ps_});
    intervals.back().end_ps = until_ps;
  }

  void send(uint32_t l, uint32_t index, uint32_t m) {
    Link& link = links_[l];
    const StepsPhase& phase = *running_[index].phase;
    const StepsMessage& message = phase.messages[m];
    const bool last = ++running_[index].messages[m].sent == message.segments;
    uint64_t left_ps = now_ps_ + (last ? message.last_ps : message.segment_ps);
    if (phase.resource != kNoResource) {
      if (phase.resource >= resource_free_ps_.size()) resource_free_ps_.resize(phase.resource + size_t{1}, 0);
      uint64_t& free_ps = resource_free_ps_[phase.resource];
      free_ps = std::max(free_ps, now_ps_) + (last ? message.resource_last_ps : message.resource_segment_ps);
      left_ps = std::max(left_ps, free_ps);
    }
    link.busy = true;
    link.free_ps = left_ps;
    result_.links[l].busy_ps += left_ps - now_ps_;
    if (intervals_) note_busy(result_.links[l].intervals, left_ps);
    link.flight.push({left_ps + message.delay_ps, index, m});
  }

  const std::vector<std::vector<const StepsPhase*>>& phases_;
  const bool intervals_;
  uint64_t now_ps_ = 0;
  size_t left_ = 0;  // phases that are not complete
  bool phase_ended_ = false;
  std::vector<Link> links_;
  std::vector<uint32_t> next_stage_;  // by chunk: stages that are done
  std::vector<Running> running_;
  std::vector<uint32_t> unused_;  // of running_
  std::vector<uint64_t> resource_free_ps_;
  StepsResult result_;
};

}  // namespace

StepsResult run_links(const Schedule& schedule, const std::vector<std::vector<const StepsPhase*>>& phases,
                      bool intervals) {
  return Links(schedule, phases, intervals).run();
}

}  // namespace trestle
