#include "comm/calls/captured_calls.h"

#include <string>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "comm/communicator/communicator.h"

namespace trestle {

namespace {

// Memory comes first: once the graph has a place, only the numbers are missing.
Result<CapturedCall> prepare(const CaptureRequest& request, const Lane& lane) {
  CallPlanner& planner = request.communicator->calls().planner();
  CapturedCall captured;
  captured.call = *request.call;
  captured.call.request.captured = true;
  captured.held = TRY(planner.hold(captured.call, lane));
  captured.prepared = TRY(planner.prepare(captured.call, lane));
  return captured;
}

}  // namespace

// The calls of one place run at the same time, so each has a lane of its own. Its launches come one after the other.
Status CapturedCalls::capture(std::span<const CaptureRequest> requests, Stream& stream) {
  const auto made = std::make_shared<CapturedCalls>();
  std::vector<CapturedCall> prepared;
  for (const CaptureRequest& request : requests) {
    const Lane lane{std::shared_ptr<const void>(made), prepared.size()};
    prepared.push_back(TRY(prepare(request, lane)));
  }
  made->stream_ = TRY(stream.capture(made));
  for (size_t i = 0; i < requests.size(); ++i) {
    prepared[i].number = TRY(requests[i].communicator->calls().number_capture(prepared[i].call));
    made->add(requests[i], std::move(prepared[i]));
  }
  made->ready_.store(true, std::memory_order_release);
  return {};
}

void CapturedCalls::add(const CaptureRequest& request, CapturedCall captured) {
  const std::shared_ptr<CaptureBook>& book = request.communicator->captures();
  entries_.reserve(entries_.size() + 1);
  entries_.push_back({book, book->add(std::move(captured))});
}

CapturedCalls::~CapturedCalls() {
  for (const Entry& entry : entries_) entry.book->remove(entry.id);
}

void CapturedCalls::arrived(bool overlaps) {
  if (overlaps) overlaps_.store(true);
  StreamPoller::process().leave(*this);
}

void CapturedCalls::run() {
  if (overlaps_.exchange(false)) {
    const Error error{Code::kInvalidUsage,
                      "a CUDA graph was launched while another launch of the same captured call was under way: two "
                      "instances of one graph must not run at the same time"};
    for (const Entry& entry : entries_) entry.book->fail(error);
  }
  const uint64_t replay = replays_++;
  unless_out_of_memory([&] { make_calls(replay); },
                       [&] {
                         for (const Entry& entry : entries_) entry.book->fail_without_memory();
                         stream_->let_launch_go_on();
                       });
}

// Operations have their numbers from their commit on, and other ranks count on them.
void CapturedCalls::make_calls(uint64_t replay) {
  std::vector<Operation*> operations;
  operations.reserve(entries_.size());
  auto place = stream_->enter();
  if (!place.ok()) return stream_->let_launch_go_on();
  const auto queue = [&] {
    for (const Entry& entry : entries_) {
      Operation* const operation = entry.book->commit(entry.id, replay, *stream_);
      if (operation != nullptr) operations.push_back(operation);
    }
    if (operations.size() != entries_.size()) say_left_out();
    if (!operations.empty()) stream_->enqueue(operations, std::move(place).value());
  };
  unless_out_of_memory(queue, [&] {
    for (const Entry& entry : entries_) entry.book->fail_without_memory();
    for (Operation* const operation : operations) operation->engine().retire(operation);
  });
  for (const Entry& entry : entries_) entry.book->committed();
}

void CapturedCalls::say_left_out() {
  if (std::exchange(said_, true)) return;
  for (const Entry& entry : entries_) {
    const std::string why = entry.book->why_closed();
    if (why.empty()) continue;
    LOG(kWarn, kColl, "a CUDA graph is launched with captured calls that cannot be made, and goes on without them: %s",
        why.c_str());
    return;
  }
}

}  // namespace trestle
