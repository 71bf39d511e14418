// The sending half of PeerProtocol: which messages wait, and which go next.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "transport/message/peer_protocol.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

// The limit of open requests per peer and direction; more are refused with "try again". It bounds what the peer must
// remember.
constexpr size_t kMostSendsOpen = 16 * 1024;
// In a send's words: the type of its frames (once it may go), bytes taken, bytes arrived, the state of its kRequest.
constexpr size_t kType = 0;
constexpr size_t kTaken = 1;
constexpr size_t kArrived = 2;
constexpr size_t kAsking = 3;
constexpr uint64_t kAsks = 1;         // the kRequest is on its way
constexpr uint64_t kAsksCleared = 2;  // and kClear has come meanwhile

// For heaps: the oldest request is at the front.
bool younger(const SendRequest* a, const SendRequest* b) {
  const auto key = [](const SendRequest* s) {
    return std::make_tuple(s->tag.operation, s->turn, s->tag.phase, s->tag.message, s->tag.offset);
  };
  return key(a) > key(b);
}

}  // namespace

Error PeerProtocol::sent_differs(const SendRequest& request, const MessageTag& expected, uint64_t bytes) const {
  return different_sizes(name_of(false), name_of(true), request.tag, request.bytes, expected, bytes);
}

Result<bool> PeerProtocol::post_send(SendRequest& request) {
  CHECK(total_bytes(request.pieces) == request.bytes, "the pieces of a send are not its bytes");
  if (is_notice(request.tag)) {
    put_control(FrameType::kNotice, request.tag, 0);
    request.state = RequestState::kDone;
    return true;
  }
  if (waiting_.size() + ready_.size() >= kMostSendsOpen) return false;
  request.state = RequestState::kPending;
  request.transport = {};
  Announced clear;
  if (clears_.take(request.tag, clear)) {
    if (sizes_differ(request.tag, request.bytes, clear.tag, clear.bytes))
      return sent_differs(request, clear.tag, clear.bytes);
    make_ready(request, FrameType::kData);
    return true;
  }
  const uint64_t cost = request.bytes + kEagerOverhead;
  const bool small = request.bytes <= limits_.eager_bytes;
  if (small && credit_ >= cost) {
    credit_ -= cost;
    make_ready(request, FrameType::kEager);
    return true;
  }
  if (!waiting_.insert(request.tag, &request))
    return Error{Code::kInternalError, "was sent two messages with the same tag"};
  // A receiver that expects a small message sends no kClear. Where sizes may differ it must be told of this one.
  const bool may_differ = request.tag.whole != 0 && request.tag.offset == 0;
  if (small || may_differ) {
    put_control(FrameType::kRequest, request.tag, request.bytes);
    // Over several rails the message could overtake its kRequest, which would then ask for a second one.
    if (in_.size() > 1) request.transport.word[kAsking] = kAsks;
  }
  return true;
}

void PeerProtocol::make_ready(SendRequest& request, FrameType type) {
  request.transport.word[kType] = static_cast<uint64_t>(type);
  ready_.push_back(&request);
  std::push_heap(ready_.begin(), ready_.end(), younger);
  ready_bytes_ += request.bytes;
}

Status PeerProtocol::cleared(const Frame& frame) {
  if (SendRequest* const* const found = waiting_.find(frame.tag); found != nullptr) {
    SendRequest& request = **found;
    if (sizes_differ(request.tag, request.bytes, frame.tag, frame.bytes))
      return sent_differs(request, frame.tag, frame.bytes);
    uint64_t& asking = request.transport.word[kAsking];
    if (asking == kAsksCleared) return Error{Code::kRemoteError, "cleared a message twice"};
    if (asking == kAsks) {
      asking = kAsksCleared;
      return {};
    }
    waiting_.erase(frame.tag);
    make_ready(request, FrameType::kData);
    return {};
  }
  if (clears_.size() >= kMostSendsOpen) return Error{Code::kRemoteError, "cleared too many messages that nobody sends"};
  if (!clears_.insert(frame.tag, {frame.tag, frame.bytes})) return Error{Code::kRemoteError, "cleared a message twice"};
  return {};
}

uint32_t PeerProtocol::take_owed_credit() {
  const uint64_t credit = owed_;
  owed_ = 0;
  return static_cast<uint32_t>(credit);
}

void PeerProtocol::put_control(FrameType type, const MessageTag& tag, uint64_t bytes) {
  control_.push_back({type, take_owed_credit(), tag, bytes, 0, 0});
}

bool PeerProtocol::next_control(Frame& header) {
  if (control_at_ == control_.size()) return false;
  header = control_[control_at_++];
  if (control_at_ == control_.size()) {
    control_.clear();
    control_at_ = 0;
  }
  return true;
}

void PeerProtocol::control_arrived(const Frame& header) {
  if (header.type != FrameType::kRequest) return;
  SendRequest* const* const found = waiting_.find(header.tag);
  if (found == nullptr) return;
  SendRequest& request = **found;
  if (std::exchange(request.transport.word[kAsking], 0) != kAsksCleared) return;
  waiting_.erase(header.tag);
  make_ready(request, FrameType::kData);
}

uint64_t PeerProtocol::front_bytes() const {
  return ready_.empty() ? 0 : ready_.front()->bytes - ready_.front()->transport.word[kTaken];
}

bool PeerProtocol::front_is_whole() const {
  return !ready_.empty() && ready_.front()->transport.word[kType] == static_cast<uint64_t>(FrameType::kEager);
}

bool PeerProtocol::next_fragment(uint64_t most, Fragment& fragment) {
  if (ready_.empty()) return false;
  SendRequest& send = *ready_.front();
  uint64_t& taken = send.transport.word[kTaken];
  const uint64_t left = send.bytes - taken;
  const uint64_t length = front_is_whole() ? left : std::min(left, most);
  if (taken == 0) ++on_their_way_;
  // Over several rails a frame may be interrupted and come again, but its credit must count only once. So there only
  // headers without payload give credit back: each comes once.
  const uint32_t credit = in_.size() == 1 ? take_owed_credit() : 0;
  fragment.header = {static_cast<FrameType>(send.transport.word[kType]), credit, send.tag, send.bytes, taken, length};
  fragment.pieces = send.pieces;
  fragment.skip = taken;
  fragment.request = &send;
  taken += length;
  ready_bytes_ -= length;
  if (length == left) {
    std::pop_heap(ready_.begin(), ready_.end(), younger);
    ready_.pop_back();
  }
  return true;
}

void PeerProtocol::arrived(const Fragment& fragment) {
  if (closed_ || fragment.request == nullptr) return;
  SendRequest& send = *fragment.request;
  uint64_t& bytes = send.transport.word[kArrived];
  bytes += fragment.header.length;
  if (bytes < send.bytes) return;
  --on_their_way_;
  send.state = RequestState::kDone;
}

bool PeerProtocol::next_goodbye(size_t rail, Frame& header) {
  Incoming& in = in_[rail];
  header = {};
  if (std::exchange(in.owes_answer, false)) {
    header.type = FrameType::kGoodbyeSeen;
  } else if (std::exchange(in.owes_goodbye, false)) {
    header.type = FrameType::kGoodbye;
  } else {
    return false;
  }
  return true;
}

void PeerProtocol::close(bool goodbye) {
  if (closed_) return;
  closed_ = true;
  ready_.clear();
  ready_bytes_ = 0;
  on_their_way_ = 0;
  waiting_.clear();
  receives_.clear();
  arriving_ = 0;
  for (Incoming& in : in_) {
    in.active = false;
    in.owes_goodbye = goodbye;
  }
}

}  // namespace trestle
