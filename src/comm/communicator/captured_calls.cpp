#include "comm/communicator/captured_calls.h"

#include <algorithm>
#include <string>

#include "base/log.h"
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

// The calls of one place run at the same time, so each of them has a lane of its own.
Status CapturedCalls::take_places(std::span<const CaptureRequest> requests, std::vector<Placed>& placed) {
  for (const CaptureRequest& request : requests) {
    const auto same = [&](const CaptureRequest& other) { return other.stream == request.stream; };
    const auto first = std::ranges::find_if(requests, same);
    const size_t at = placed.size();
    Placed& one = placed.emplace_back();
    if (&*first == &request) {
      const auto lane = TRY(request.stream->captured_lane());
      if (lane == nullptr) return Error{Code::kInvalidUsage, "the capture of the CUDA stream has ended meanwhile"};
      one.place = std::make_shared<CapturedCalls>(lane);
    } else {
      one.place = placed[static_cast<size_t>(first - requests.begin())].place;
    }
    const auto before = std::count_if(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(at), same);
    one.call = TRY(prepare(request, Lane{one.place->lane_, static_cast<size_t>(before)}));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::shared_ptr<CapturedCalls>& place = placed[i].place;
    if (place->stream_ == nullptr) place->stream_ = TRY(requests[i].stream->capture(place->lane_, place));
  }
  return {};
}

Status CapturedCalls::capture(std::span<const CaptureRequest> requests) {
  std::vector<Placed> placed;
  TRY(take_places(requests, placed));
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto number = requests[i].communicator->calls().number_capture(placed[i].call.call);
    if (!number.ok()) {
      for (const CaptureRequest& request : requests) request.communicator->engine().fail(number.error());
      return number.error();
    }
    placed[i].call.number = number.value();
    placed[i].place->add(requests[i], std::move(placed[i].call));
  }
  for (const Placed& one : placed) one.place->ready_.store(true, std::memory_order_release);
  return {};
}

void CapturedCalls::add(const CaptureRequest& request, CapturedCall captured) {
  const std::shared_ptr<CaptureBook>& book = request.communicator->captures();
  entries_.push_back({book, book->add(std::move(captured))});
}

CapturedCalls::~CapturedCalls() {
  for (const Entry& entry : entries_) entry.book->remove(entry.id);
}

void CapturedCalls::arrived(bool overlaps) {
  if (overlaps) overlaps_.store(true);
  arrived_.store(true);
  StreamPoller::process().leave(*this);
}

// The end of the graph leaves an errand for nothing but this object's own end, which is then on the poller's thread.
void CapturedCalls::run() {
  if (!arrived_.exchange(false)) return;
  if (overlaps_.exchange(false)) {
    const Error error{Code::kInvalidUsage,
                      "a CUDA graph was launched while another launch of the same captured calls was under way: two "
                      "instances of one graph must not run at the same time"};
    for (const Entry& entry : entries_) entry.book->fail(entry.id, replays_, error);
  }
  make_calls(replays_++);
}

// A failure of an earlier launch has ended the communicators that it concerns, and concerns no others: nobody else can
// take it from this stream.
void CapturedCalls::make_calls(uint64_t replay) {
  std::vector<Operation*> operations;
  stream_->tell_failure();
  auto place = stream_->enter();
  if (!place.ok()) return stream_->let_launch_go_on();
  for (const Entry& entry : entries_) {
    Operation* const operation = entry.book->commit(entry.id, replay, *stream_);
    if (operation != nullptr) operations.push_back(operation);
  }
  if (operations.size() != entries_.size()) say_left_out();
  if (!operations.empty()) stream_->enqueue(operations, std::move(place.value()));
  for (const Entry& entry : entries_) entry.book->committed();
}

void CapturedCalls::say_left_out() {
  if (lane_->said.exchange(true)) return;
  for (const Entry& entry : entries_) {
    const std::string why = entry.book->why_closed();
    if (why.empty()) continue;
    LOG(kWarn, kColl, "a CUDA graph is launched with captured calls that cannot be made, and goes on without them: %s",
        why.c_str());
    return;
  }
}

}  // namespace trestle
