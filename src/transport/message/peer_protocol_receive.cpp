// The receiving half of PeerProtocol: takes headers in and says where data goes.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "transport/message/peer_protocol.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

constexpr size_t kMostReceivesOpen = 16 * 1024;  // as many as peer_protocol_send.cpp has

constexpr uint64_t kCleared = 1;  // in a receive's word[0]

}  // namespace

std::string PeerProtocol::name_of(bool peer) const {
  if (agreement_ != nullptr) return agreement_->name(peer ? peer_ : agreement_->rank());
  return peer ? "rank " + std::to_string(peer_) : "this rank";
}

Error PeerProtocol::received_differs(const MessageTag& sent, uint64_t bytes, const RecvRequest& request) const {
  return different_sizes(name_of(true), name_of(false), sent, bytes, request.tag, request.bytes);
}

Result<bool> PeerProtocol::post_recv(RecvRequest& request) {
  CHECK(request.pieces.empty() || total_bytes(request.pieces) == request.bytes,
        "the pieces of a receive are not its bytes");
  if (receives_.size() >= kMostReceivesOpen) return false;
  request.state = RequestState::kPending;
  request.view.clear();
  request.transport.pointer[0] = request.transport.pointer[1] = nullptr;
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

Status PeerProtocol::accept_early(const Early& early, RecvRequest& request) {
  if (sizes_differ(early.tag, early.bytes, request.tag, request.bytes))
    return received_differs(early.tag, early.bytes, request);
  if (early.complete) {
    give_credit_back(early.bytes + kEagerOverhead);
    complete(request, early.buffer);
    return {};
  }
  const auto coming = std::find_if(in_.begin(), in_.end(), [&](const Incoming& in) {
    return in.active && in.receive == nullptr && in.frame.tag == request.tag;
  });
  CHECK(coming != in_.end(), "the beginning of a message has come, and nothing brings the rest");
  coming->receive = &request;  // the rest goes to the buffer too
  ++arriving_;
  return {};
}

void PeerProtocol::release(RecvRequest& request) {
  auto* const buffer = static_cast<std::byte*>(request.transport.pointer[0]);
  request.transport.pointer[0] = nullptr;
  if (buffer != nullptr) pool_.give(buffer, request.bytes);
}

void PeerProtocol::clear_to_send(RecvRequest& request) {
  request.transport.word[0] = kCleared;
  ++cleared_receives_;
  put_control(FrameType::kClear, request.tag, request.bytes);
}

void PeerProtocol::give_credit_back(uint64_t bytes) {
  early_cost_ -= bytes;
  owed_ += bytes;
  if (owed_ >= limits_.credit_bytes / 2) put_control(FrameType::kCredit, {}, 0);
}

// `buffer` holds the data. Null: the data is in the request's pieces already.
void PeerProtocol::complete(RecvRequest& request, std::byte* buffer) {
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

Result<std::span<const Piece>> PeerProtocol::begin(const Frame& frame, size_t rail) {
  Incoming& in = in_[rail];
  if (in.goodbye_received) return Error{Code::kRemoteError, "sent something after its goodbye"};
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
      return handle_message(frame, in);
    case FrameType::kCredit:
      return Payload{};
    case FrameType::kGoodbye:
    case FrameType::kGoodbyeSeen:
      return goodbye(frame, in);
    case FrameType::kWelcome:
    case FrameType::kYield:
      break;
    case FrameType::kAck:
    case FrameType::kRailEnd:
    case FrameType::kProbe:
    case FrameType::kRailSilent:
      return Error{Code::kRemoteError, "sent a frame that belongs to ranks with several rails"};
  }
  return Error{Code::kRemoteError, "sent a frame that belongs to the beginning of a connection"};
}

Result<PeerProtocol::Payload> PeerProtocol::goodbye(const Frame& frame, Incoming& in) {
  if (frame.type == FrameType::kGoodbye) {
    in.goodbye_received = peer_left_ = true;
    in.owes_answer = !closed_;
    return Payload{};
  }
  if (!closed_) return Error{Code::kRemoteError, "answered a goodbye that was not said"};
  in.goodbye_seen = true;
  return Payload{};
}

// Frames about a message. Checks first which call the peer runs, because any other error follows from a difference
// there.
Result<PeerProtocol::Payload> PeerProtocol::handle_message(const Frame& frame, Incoming& in) {
  if (agreement_ != nullptr && !agreement_->heard(peer_, frame.tag)) return agreement_->error();
  switch (frame.type) {
    case FrameType::kEager:
      return begin_eager(frame, in);
    case FrameType::kData:
      return begin_data(frame, in);
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

Status PeerProtocol::requested(const Frame& frame) {
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
  if (requests_.size() >= kMostReceivesOpen) return Error{Code::kRemoteError, "asked to send too many messages"};
  if (!requests_.insert(frame.tag, {frame.tag, frame.bytes}))
    return Error{Code::kRemoteError, "asked twice to send a message"};
  return {};
}

Result<PeerProtocol::Payload> PeerProtocol::begin_eager(const Frame& frame, Incoming& in) {
  if (frame.bytes > limits_.eager_bytes)
    return Error{Code::kRemoteError, "sent a message above the eager limit without being asked"};
  if (frame.at != 0 || frame.length != frame.bytes)
    return Error{Code::kRemoteError, "sent a part of a message that must stay whole"};
  const uint64_t cost = frame.bytes + kEagerOverhead;
  if (cost > limits_.credit_bytes - early_cost_) return Error{Code::kRemoteError, "sent more than it had credit for"};
  early_cost_ += cost;
  RecvRequest* receive = nullptr;
  if (receives_.take(frame.tag, receive)) {
    if (sizes_differ(frame.tag, frame.bytes, receive->tag, receive->bytes))
      return received_differs(frame.tag, frame.bytes, *receive);
    if (receive->transport.word[0] == kCleared)
      return Error{Code::kRemoteError, "sent a cleared message as an eager one"};
  }
  return begin_payload(frame, in, receive);
}

Result<PeerProtocol::Payload> PeerProtocol::begin_data(const Frame& frame, Incoming& in) {
  RecvRequest** const found = receives_.find(frame.tag);
  if (found == nullptr || (*found)->transport.word[0] != kCleared)
    return Error{Code::kRemoteError, "sent a message that was not cleared"};
  RecvRequest* const receive = *found;
  if (sizes_differ(frame.tag, frame.bytes, receive->tag, receive->bytes))
    return received_differs(frame.tag, frame.bytes, *receive);
  const bool whole = frame.at == 0 && frame.length == frame.bytes;
  if (!whole || receive->transport.pointer[1] != nullptr) return begin_part(frame, in, *receive);
  receives_.erase(frame.tag);
  --cleared_receives_;
  return begin_payload(frame, in, receive);
}

Result<std::byte*> PeerProtocol::take_buffer(uint64_t bytes) {
  std::byte* const buffer = pool_.take(bytes);
  if (buffer != nullptr) return buffer;
  return Error{Code::kSystemError, "sent " + std::to_string(bytes) + " bytes for which there is no memory"};
}

void PeerProtocol::set_active(Incoming& in, const Frame& frame, RecvRequest* receive) {
  in.active = true;
  in.receive = receive;
  in.frame = frame;
  in.buffer = {};
}

Result<PeerProtocol::Payload> PeerProtocol::begin_payload(const Frame& frame, Incoming& in, RecvRequest* receive) {
  set_active(in, frame, receive);
  if (receive != nullptr) ++arriving_;
  Payload place;
  if (frame.bytes > 0 && (receive == nullptr || receive->pieces.empty())) {
    in.buffer = {TRY(take_buffer(frame.bytes)), frame.bytes};
    place = {&in.buffer, 1};
  } else if (frame.bytes > 0) {
    place = receive->pieces;
  }
  if (receive == nullptr && !early_.insert(frame.tag, {in.buffer.data, frame.tag, frame.bytes, false}))
    return Error{Code::kRemoteError, "sent two messages with the same tag"};
  return place;
}

// ---- messages that come in fragments. Their receive stays in `receives_` until all of it is there.

Assembly& PeerProtocol::assembly_of(RecvRequest& receive) {
  if (receive.transport.pointer[1] == nullptr) {
    if (free_assemblies_.empty()) free_assemblies_.push_back(&assemblies_.emplace_back());
    receive.transport.pointer[1] = free_assemblies_.back();
    free_assemblies_.pop_back();
    assembly_of(receive).reset();
  }
  return *static_cast<Assembly*>(receive.transport.pointer[1]);
}

Result<PeerProtocol::Payload> PeerProtocol::begin_part(const Frame& frame, Incoming& in, RecvRequest& receive) {
  Assembly& assembly = assembly_of(receive);
  if (!assembly.claim(frame.at, frame.length, frame.bytes))
    return Error{Code::kRemoteError, "sent a part of a message twice, or one that is not in it"};
  set_active(in, frame, &receive);
  in.pieces.clear();
  if (receive.pieces.empty()) {
    if (assembly.buffer == nullptr) assembly.buffer = TRY(take_buffer(frame.bytes));
    in.pieces.push_back({assembly.buffer + frame.at, frame.length});
    return Payload(in.pieces);
  }
  PieceCursor<Piece> from(receive.pieces);
  from.advance(frame.at);
  for (uint64_t left = frame.length; left > 0;) {
    Piece piece = from.rest();
    piece.bytes = std::min<uint64_t>(piece.bytes, left);
    in.pieces.push_back(piece);
    from.advance(piece.bytes);
    left -= piece.bytes;
  }
  return Payload(in.pieces);
}

void PeerProtocol::end_part(const Incoming& in) {
  RecvRequest& receive = *in.receive;
  Assembly& assembly = assembly_of(receive);
  assembly.arrived(in.frame.length);
  if (assembly.arrived_bytes() < receive.bytes) return;
  receives_.erase(receive.tag);
  --cleared_receives_;
  receive.transport.pointer[1] = nullptr;
  free_assemblies_.push_back(&assembly);
  complete(receive, assembly.buffer);
}

void PeerProtocol::end(size_t rail) {
  Incoming& in = in_[rail];
  if (!in.active) return;
  in.active = false;
  if (in.frame.type == FrameType::kData && in.receive->transport.pointer[1] != nullptr) return end_part(in);
  if (in.receive != nullptr) {
    --arriving_;
    if (in.frame.type == FrameType::kEager) give_credit_back(in.frame.bytes + kEagerOverhead);
    return complete(*in.receive, in.buffer.data);
  }
  Early* const early = early_.find(in.frame.tag);
  CHECK(early != nullptr, "a message that arrived early was lost");
  early->complete = true;
}

void PeerProtocol::take_back(RecvRequest& receive) {
  --arriving_;
  if (receive.transport.word[0] == kCleared) ++cleared_receives_;
  CHECK(receives_.insert(receive.tag, &receive), "two receives have the same tag");
}

void PeerProtocol::interrupted(size_t rail) {
  Incoming& in = in_[rail];
  if (!std::exchange(in.active, false)) return;
  const Frame& frame = in.frame;
  if (frame.type == FrameType::kData && in.receive->transport.pointer[1] != nullptr)
    return assembly_of(*in.receive).give_up(frame.at, frame.length);
  if (in.buffer.data != nullptr) pool_.give(in.buffer.data, in.buffer.bytes);
  if (frame.type == FrameType::kEager) early_cost_ -= frame.bytes + kEagerOverhead;
  if (in.receive == nullptr) return early_.erase(frame.tag);
  take_back(*in.receive);
}

}  // namespace trestle
