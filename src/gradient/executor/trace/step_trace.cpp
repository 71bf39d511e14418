#include "gradient/executor/trace/step_trace.h"

#include <algorithm>
#include <cstdio>

#include "gradient/executor/trace/json_text.h"

namespace trestle {
namespace {

uint64_t both(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}
uint32_t high(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}

}  // namespace

Status StepTrace::begin(size_t events) {
  size_.store(0, std::memory_order_release);
  slots_.reset(events == 0 ? nullptr : new (std::nothrow) Slot[events]);
  if (events != 0 && slots_ == nullptr)
    return Error{Code::kSystemError, "no memory for a trace of " + std::to_string(events) + " events"};
  noted_.store(0, std::memory_order_relaxed);
  size_.store(events, std::memory_order_release);
  return {};
}

// All stores release and all loads acquire. So a reader that sees a word of a later event also sees that the slot is
// claimed, or a later number.
void StepTrace::note(const TraceEvent& event) {
  const size_t size = size_.load(std::memory_order_acquire);
  if (size == 0) return;
  const uint64_t number = noted_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number % size];
  // Writers may overtake each other by whole rounds. One that finds its slot claimed, or with a later event, leaves its
  // own out.
  uint64_t before = slot.number.load(std::memory_order_relaxed);
  do {
    if (before > number) return;
  } while (!slot.number.compare_exchange_weak(before, kClaimed, std::memory_order_acq_rel, std::memory_order_relaxed));
  const uint64_t words[kWords] = {both(event.link, static_cast<uint32_t>(event.kind)),
                                  event.number,
                                  both(event.tensors.first, event.tensors.last),
                                  event.step,
                                  static_cast<uint64_t>(event.begin_ns),
                                  static_cast<uint64_t>(event.end_ns)};
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.number.store(number + 1, std::memory_order_release);
}

std::vector<TraceEvent> StepTrace::events() const {
  const size_t size = size_.load(std::memory_order_acquire);
  const uint64_t noted = noted_.load(std::memory_order_acquire);
  std::vector<TraceEvent> all;
  for (uint64_t number = noted - std::min<uint64_t>(noted, size); number < noted; ++number) {
    const Slot& slot = slots_[number % size];
    if (slot.number.load(std::memory_order_acquire) != number + 1) continue;
    uint64_t words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    if (slot.number.load(std::memory_order_acquire) != number + 1) continue;
    all.push_back({static_cast<TraceKind>(words[0] & 0xff),
                   static_cast<uint32_t>(words[1]),
                   high(words[0]),
                   {high(words[2]), static_cast<uint32_t>(words[2])},
                   words[3],
                   static_cast<int64_t>(words[4]),
                   static_cast<int64_t>(words[5])});
  }
  return all;
}

// ---- as text

namespace {

constexpr uint32_t kReadyLane = 0;
constexpr uint32_t kWaitLane = 1;
constexpr uint32_t kLinkLane = 2;  // the first of the links' lanes, one for each link

const char* name_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kReady:
      return "ready";
    case TraceKind::kWait:
      return "wait";
    case TraceKind::kStepEnd:
      return "step end";
    case TraceKind::kPack:
      return "pack";
    case TraceKind::kTravel:
      return "travel";
    case TraceKind::kUnpack:
      return "unpack";
    case TraceKind::kSelect:
      return "select";
    case TraceKind::kIndices:
      return "indices";
    case TraceKind::kDrain:
      return "drain";
  }
  return "";
}

class TraceWriter {
 public:
  TraceWriter(const std::vector<TensorEntry>& tensors, int rank) : tensors_(tensors), rank_(rank) {}

  void lane(const char* kind, const std::string& name, uint32_t lane) {
    open(kind, "M", lane);
    text_ += ",\"args\":{\"name\":" + json_quoted(name) + "}}";
  }
  void event(const TraceEvent& event) {
    const bool instant = event.kind == TraceKind::kReady || event.kind == TraceKind::kStepEnd;
    const uint32_t lane = instant ? kReadyLane : event.kind == TraceKind::kWait ? kWaitLane : kLinkLane + event.link;
    if (instant) {
      part(event, "i", lane, event.begin_ns);
      return;
    }
    // As a pair, because messages of a link, and waits of several threads, may overlap.
    ++pairs_;
    part(event, "b", lane, event.begin_ns);
    part(event, "e", lane, event.end_ns);
  }
  std::string text() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + std::move(text_) + "]}"; }

 private:
  void open(const std::string& name, const char* phase, uint32_t lane) {
    text_ += (text_.empty() ? "{\"name\":" : ",{\"name\":") + json_quoted(name) + ",\"ph\":\"" + phase +
             "\",\"pid\":" + std::to_string(rank_) + ",\"tid\":" + std::to_string(lane);
  }
  std::string label(const TraceEvent& event) const {
    std::string text = name_of(event.kind);
    if (event.kind == TraceKind::kReady || event.kind == TraceKind::kWait) return text + " " + tensor(event.number);
    if (event.kind == TraceKind::kStepEnd) return text;
    text += " " + tensor(event.tensors.first);
    return event.tensors.first == event.tensors.last ? text : text + " to " + tensor(event.tensors.last);
  }
  std::string tensor(uint32_t number) const { return number < tensors_.size() ? tensors_[number].name : ""; }
  void part(const TraceEvent& event, const char* phase, uint32_t lane, int64_t time_ns) {
    open(label(event), phase, lane);
    char time[48];
    std::snprintf(time, sizeof time, "%lld.%03lld", static_cast<long long>(time_ns / 1000),
                  static_cast<long long>(time_ns % 1000));
    text_ += std::string(",\"cat\":\"") + name_of(event.kind) + "\",\"ts\":" + time;
    if (*phase == 'i') {
      text_ += ",\"s\":\"t\"";
    } else {
      text_ += ",\"id\":" + std::to_string(pairs_);
    }
    text_ += ",\"args\":{\"step\":" + std::to_string(event.step);
    if (event.kind == TraceKind::kReady || event.kind == TraceKind::kWait) {
      text_ += ",\"tensor\":" + std::to_string(event.number);
    } else if (event.kind != TraceKind::kStepEnd) {
      text_ += ",\"message\":" + std::to_string(event.number) + ",\"link\":" + std::to_string(event.link) +
               ",\"first\":" + std::to_string(event.tensors.first) + ",\"last\":" + std::to_string(event.tensors.last);
    }
    text_ += "}}";
  }

  const std::vector<TensorEntry>& tensors_;
  const int rank_;
  std::string text_;
  uint64_t pairs_ = 0;
};

}  // namespace

std::string trace_json(const std::vector<TraceEvent>& events, const std::vector<TensorEntry>& tensors, int rank) {
  TraceWriter writer(tensors, rank);
  writer.lane("process_name", "rank " + std::to_string(rank), kReadyLane);
  writer.lane("thread_name", "gradients", kReadyLane);
  writer.lane("thread_name", "waits", kWaitLane);
  uint32_t links = 1;
  for (const TraceEvent& event : events) links = std::max(links, event.link + 1);
  for (uint32_t link = 0; link < links; ++link)
    writer.lane("thread_name", "link " + std::to_string(link), kLinkLane + link);
  for (const TraceEvent& event : events) writer.event(event);
  return writer.text();
}

}  // namespace trestle
