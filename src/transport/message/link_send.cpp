// The sending half of Link: which messages wait, and which go next.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "transport/message/link.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

// The limit of open requests per peer and direction; more are refused with "try again". It bounds what the peer must
// remember.
constexpr size_t kMostOpen = 16 * 1024;
// For heaps: the oldest request is at the front.
bool younger(const SendRequest* a, const SendRequest* b) {
  const auto key = [](const SendRequest* s) {
    return std::make_tuple(s->tag.operation, s->turn, s->tag.phase, s->tag.message, s->tag.offset);
  };
  return key(a) > key(b);
}

}  // namespace

Error Link::sent_differs(const SendRequest& request, const MessageTag& expected, uint64_t bytes) const {
  return different_sizes(name_of(false), name_of(true), request.tag, request.bytes, expected, bytes);
}

Result<bool> Link::post_send(SendRequest& request) {
  CHECK(total_bytes(request.pieces) == request.bytes, "the pieces of a send are not its bytes");
  if (is_notice(request.tag)) {
    put_control(FrameType::kNotice, request.tag, 0);
    request.state = RequestState::kDone;
    return true;
  }
  if (waiting_.size() + ready_.size() >= kMostOpen) return false;
  request.state = RequestState::kPending;
  Announced clear;
  if (clears_.take(request.tag, clear)) {
    if (sizes_differ(request.tag, request.bytes, clear.tag, clear.bytes))
      return sent_differs(request, clear.tag, clear.bytes);
    make_ready(request);
    return true;
  }
  const uint64_t cost = request.bytes + kEagerOverhead;
  const bool small = request.bytes <= limits_.eager_bytes;
  if (small && credit_ >= cost) {
    credit_ -= cost;
    request.transport.word[0] = static_cast<uint64_t>(FrameType::kEager);
    ready_.push_back(&request);
    std::push_heap(ready_.begin(), ready_.end(), younger);
    return true;
  }
  if (!waiting_.insert(request.tag, &request))
    return Error{Code::kInternalError, "was sent two messages with the same tag"};
  // A receiver that expects a small message sends no kClear. Where sizes may differ it must be told of this one.
  const bool may_differ = request.tag.whole != 0 && request.tag.offset == 0;
  if (small || may_differ) put_control(FrameType::kRequest, request.tag, request.bytes);
  return true;
}

void Link::make_ready(SendRequest& request) {
  request.transport.word[0] = static_cast<uint64_t>(FrameType::kData);
  ready_.push_back(&request);
  std::push_heap(ready_.begin(), ready_.end(), younger);
}

Status Link::cleared(const Frame& frame) {
  SendRequest* request = nullptr;
  if (waiting_.take(frame.tag, request)) {
    if (sizes_differ(request->tag, request->bytes, frame.tag, frame.bytes))
      return sent_differs(*request, frame.tag, frame.bytes);
    make_ready(*request);
    return {};
  }
  if (clears_.size() >= kMostOpen) return Error{Code::kRemoteError, "cleared too many messages that nobody sends"};
  if (!clears_.insert(frame.tag, {frame.tag, frame.bytes})) return Error{Code::kRemoteError, "cleared a message twice"};
  return {};
}

uint32_t Link::take_owed_credit() {
  const uint64_t credit = owed_;
  owed_ = 0;
  return static_cast<uint32_t>(credit);
}

void Link::put_control(FrameType type, const MessageTag& tag, uint64_t bytes) {
  control_.push_back({type, take_owed_credit(), tag, bytes});
}

bool Link::next_control(Frame& header) {
  if (control_at_ == control_.size()) return false;
  header = control_[control_at_++];
  if (control_at_ == control_.size()) {
    control_.clear();
    control_at_ = 0;
  }
  return true;
}

SendRequest* Link::next_message(Frame& header) {
  if (ready_.empty()) return nullptr;
  std::pop_heap(ready_.begin(), ready_.end(), younger);
  SendRequest* const send = ready_.back();
  ready_.pop_back();
  header = {static_cast<FrameType>(send->transport.word[0]), take_owed_credit(), send->tag, send->bytes};
  ++on_their_way_;
  return send;
}

void Link::written(SendRequest& request) {
  --on_their_way_;
  request.state = RequestState::kDone;
}

void Link::close(bool goodbye) {
  if (closed_) return;
  closed_ = true;
  ready_.clear();
  waiting_.clear();
  receives_.clear();
  in_ = {};
  if (goodbye) put_control(FrameType::kGoodbye, {}, 0);
}

}  // namespace trestle
