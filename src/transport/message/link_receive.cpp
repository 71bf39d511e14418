// The receiving half of Link: takes headers in and says where data goes.
#include <string>
#include <utility>

#include "base/check.h"
#include "transport/message/link.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

constexpr size_t kMostOpen = 16 * 1024;  // as in link_send.cpp

constexpr uint64_t kCleared = 1;  // in a receive's word[0]

}  // namespace

std::string Link::name_of(bool peer) const {
  if (agreement_ != nullptr) return agreement_->name(peer ? peer_ : agreement_->rank());
  return peer ? "rank " + std::to_string(peer_) : "this rank";
}

Error Link::received_differs(const MessageTag& sent, uint64_t bytes, const RecvRequest& request) const {
  return different_sizes(name_of(true), name_of(false), sent, bytes, request.tag, request.bytes);
}

Result<bool> Link::post_recv(RecvRequest& request) {
  CHECK(request.pieces.empty() || total_bytes(request.pieces) == request.bytes,
        "the pieces of a receive are not its bytes");
  if (receives_.size() >= kMostOpen) return false;
  request.state = RequestState::kPending;
  request.view.clear();
  request.transport.pointer[0] = nullptr;
  request.transport.word[0] = 0;
  Early early;
  if (early_.take(request.tag, early)) {
    TRY(accept_early(early, request));
    return true;
  }
  if (!receives_.insert(request.tag, &request))
    return Error{Code::kInternalError, "is expected to send two messages with the same tag"};
  Announced message;
  const bool asked = requests_.take(request.tag, message);
  if (asked && sizes_differ(message.tag, message.bytes, request.tag, request.bytes))
    return received_differs(message.tag, message.bytes, request);
  if (asked || request.bytes > limits_.eager_bytes) clear_to_send(request);
  return true;
}

Status Link::accept_early(Early early, RecvRequest& request) {
  if (sizes_differ(early.tag, early.bytes, request.tag, request.bytes))
    return received_differs(early.tag, early.bytes, request);
  give_credit_back(early.bytes + kEagerOverhead);
  if (early.complete)
    complete(request, early.buffer);
  else
    in_.receive = &request;  // the rest goes to the buffer too
  return {};
}

void Link::release(RecvRequest& request) {
  auto* const buffer = static_cast<std::byte*>(request.transport.pointer[0]);
  request.transport.pointer[0] = nullptr;
  if (buffer != nullptr) pool_.give(buffer, request.bytes);
}

void Link::clear_to_send(RecvRequest& request) {
  request.transport.word[0] = kCleared;
  ++cleared_receives_;
  put_control(FrameType::kClear, request.tag, request.bytes);
}

void Link::give_credit_back(uint64_t bytes) {
  early_cost_ -= bytes;
  owed_ += bytes;
  if (owed_ >= limits_.credit_bytes / 2) put_control(FrameType::kCredit, {}, 0);
}

// `buffer` holds the data. Null: the data is in the request's pieces already.
void Link::complete(RecvRequest& request, std::byte* buffer) {
  if (buffer != nullptr && request.pieces.empty()) {
    request.view.assign(1, ConstPiece{buffer, request.bytes});
    request.transport.pointer[0] = buffer;
  } else if (buffer != nullptr) {
    const ConstPiece whole{buffer, request.bytes};
    copy_pieces({&whole, 1}, request.pieces);
    pool_.give(buffer, request.bytes);
  }
  request.state = RequestState::kDone;
}

Result<std::span<const Piece>> Link::begin(const Frame& frame) {
  if (goodbye_received_) return Error{Code::kRemoteError, "sent something after its goodbye"};
  if (frame.credit > limits_.credit_bytes - credit_)
    return Error{Code::kRemoteError, "gave back more credit than there was"};
  credit_ += frame.credit;
  if (closed_ && frame.type != FrameType::kGoodbye && frame.type != FrameType::kGoodbyeSeen) return Payload{};
  switch (frame.type) {
    case FrameType::kEager:
    case FrameType::kData:
    case FrameType::kClear:
    case FrameType::kRequest:
    case FrameType::kNotice:
      return handle_message(frame);
    case FrameType::kCredit:
      return Payload{};
    case FrameType::kGoodbye:
      goodbye_received_ = true;
      if (!closed_) put_control(FrameType::kGoodbyeSeen, {}, 0);
      return Payload{};
    case FrameType::kGoodbyeSeen:
      if (!closed_) return Error{Code::kRemoteError, "answered a goodbye that was not said"};
      goodbye_seen_ = true;
      return Payload{};
    case FrameType::kWelcome:
    case FrameType::kYield:
      break;
  }
  return Error{Code::kRemoteError, "sent a frame that belongs to the beginning of a connection"};
}

// Frames about a message. Checks first which call the peer runs, because any other error follows from a difference
// there.
Result<Link::Payload> Link::handle_message(const Frame& frame) {
  if (agreement_ != nullptr && !agreement_->heard(peer_, frame.tag)) return agreement_->error();
  switch (frame.type) {
    case FrameType::kEager:
      return begin_eager(frame);
    case FrameType::kData:
      return begin_data(frame);
    case FrameType::kClear:
      TRY(cleared(frame));
      return Payload{};
    case FrameType::kRequest:
      TRY(requested(frame));
      return Payload{};
    default:
      return Payload{};
  }
}

Status Link::requested(const Frame& frame) {
  const bool large = frame.bytes > limits_.eager_bytes;
  if (large && frame.tag.whole == 0) return Error{Code::kRemoteError, "asked to send a message that needs no asking"};
  if (RecvRequest** receive = receives_.find(frame.tag); receive != nullptr) {
    if (sizes_differ(frame.tag, frame.bytes, (*receive)->tag, (*receive)->bytes))
      return received_differs(frame.tag, frame.bytes, **receive);
    if ((*receive)->transport.word[0] == kCleared) {
      if (large) return {};  // the request and the clearance crossed
      return Error{Code::kRemoteError, "asked twice to send a message"};
    }
    clear_to_send(**receive);
    return {};
  }
  if (requests_.size() >= kMostOpen) return Error{Code::kRemoteError, "asked to send too many messages"};
  if (!requests_.insert(frame.tag, {frame.tag, frame.bytes}))
    return Error{Code::kRemoteError, "asked twice to send a message"};
  return {};
}

Result<Link::Payload> Link::begin_eager(const Frame& frame) {
  if (frame.bytes > limits_.eager_bytes)
    return Error{Code::kRemoteError, "sent a message above the eager limit without being asked"};
  const uint64_t cost = frame.bytes + kEagerOverhead;
  if (cost > limits_.credit_bytes - early_cost_) return Error{Code::kRemoteError, "sent more than it had credit for"};
  early_cost_ += cost;
  RecvRequest* receive = nullptr;
  if (receives_.take(frame.tag, receive)) {
    if (sizes_differ(frame.tag, frame.bytes, receive->tag, receive->bytes))
      return received_differs(frame.tag, frame.bytes, *receive);
    if (receive->transport.word[0] == kCleared)
      return Error{Code::kRemoteError, "sent a cleared message as an eager one"};
    give_credit_back(cost);
  }
  return begin_payload(frame, receive);
}

Result<Link::Payload> Link::begin_data(const Frame& frame) {
  RecvRequest* receive = nullptr;
  if (!receives_.take(frame.tag, receive) || receive->transport.word[0] != kCleared)
    return Error{Code::kRemoteError, "sent a message that was not cleared"};
  --cleared_receives_;
  if (sizes_differ(frame.tag, frame.bytes, receive->tag, receive->bytes))
    return received_differs(frame.tag, frame.bytes, *receive);
  return begin_payload(frame, receive);
}

Result<Link::Payload> Link::begin_payload(const Frame& frame, RecvRequest* receive) {
  in_ = {receive, frame.tag, {}, true};
  Payload place;
  if (frame.bytes > 0 && (receive == nullptr || receive->pieces.empty())) {
    in_.buffer = {pool_.take(frame.bytes), frame.bytes};
    if (in_.buffer.data == nullptr)
      return Error{Code::kSystemError, "sent " + std::to_string(frame.bytes) + " bytes for which there is no memory"};
    place = {&in_.buffer, 1};
  } else if (frame.bytes > 0) {
    place = receive->pieces;
  }
  if (receive == nullptr && !early_.insert(frame.tag, {in_.buffer.data, frame.tag, frame.bytes, false}))
    return Error{Code::kRemoteError, "sent two messages with the same tag"};
  return place;
}

void Link::end() {
  if (!in_.active) return;
  const Incoming message = std::exchange(in_, {});
  if (message.receive != nullptr) return complete(*message.receive, message.buffer.data);
  Early* const early = early_.find(message.tag);
  CHECK(early != nullptr, "a message that arrived early was lost");
  early->complete = true;
}

}  // namespace trestle
