// The sending half of Link: which messages wait, which are ready, and how they enter the stream.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "transport/message/link.h"

namespace trestle {
namespace {

// The limit of open requests per peer and direction; more are refused with "try again". It bounds what the peer must
// remember.
constexpr size_t kMostOpen = 16 * 1024;
// Frames are committed to the stream up to this many bytes ahead. That is enough for one system call to carry many
// small frames, and little enough that an older message still overtakes messages that are only ready.
constexpr size_t kMostCommittedBytes = 64 * 1024;

// For heaps: the oldest request is at the front.
bool younger(const SendRequest* a, const SendRequest* b) {
  const auto key = [](const SendRequest* s) {
    return std::make_tuple(s->tag.operation, s->turn, s->tag.phase, s->tag.message, s->tag.offset);
  };
  return key(a) > key(b);
}

iovec vector_of(const std::byte* data, size_t bytes) {
  return {const_cast<std::byte*>(data), bytes};
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
  const size_t at = control_.size();
  control_.resize(at + kFrameBytes);
  encode_frame({type, take_owed_credit(), tag, bytes}, check_out_, &control_[at]);
}

void Link::commit_frames() {
  size_t bytes = 0;
  for (size_t i = 0; i < out_count_; ++i) bytes += out_[(out_first_ + i) % kMostOutFrames].send->bytes;
  while (out_count_ < kMostOutFrames && !ready_.empty() && bytes < kMostCommittedBytes) {
    std::pop_heap(ready_.begin(), ready_.end(), younger);
    SendRequest* const send = ready_.back();
    ready_.pop_back();
    OutFrame& frame = out_[(out_first_ + out_count_++) % kMostOutFrames];
    const auto type = static_cast<FrameType>(send->transport.word[0]);
    encode_frame({type, take_owed_credit(), send->tag, send->bytes}, check_out_, frame.header.data());
    frame.header_at = 0;
    frame.send = send;
    frame.rest = PieceCursor<ConstPiece>(send->pieces);
    bytes += send->bytes;
  }
}

// First a frame that is partly sent, then the control frames, then the other committed frames.
size_t Link::fill_output(std::span<iovec> vectors) {
  commit_frames();
  size_t used = 0;
  const auto add_frame = [&](const OutFrame& frame) {
    if (frame.header_at < kFrameBytes && used < vectors.size())
      vectors[used++] = vector_of(frame.header.data() + frame.header_at, kFrameBytes - frame.header_at);
    for (size_t ahead = 0; ahead < frame.rest.pieces_left() && used < vectors.size(); ++ahead) {
      const ConstPiece piece = frame.rest.peek(ahead);
      if (piece.bytes > 0) vectors[used++] = vector_of(piece.data, piece.bytes);
    }
  };
  const bool begun = out_count_ > 0 && out_[out_first_].header_at > 0;
  if (begun) add_frame(out_[out_first_]);
  // Only behind the complete begun frame: nothing may be inserted into it.
  if (used < vectors.size() && control_at_ < control_.size())
    vectors[used++] = vector_of(&control_[control_at_], control_.size() - control_at_);
  for (size_t i = begun ? 1 : 0; i < out_count_ && used < vectors.size(); ++i)
    add_frame(out_[(out_first_ + i) % kMostOutFrames]);
  return used;
}

void Link::wrote(size_t bytes) {
  const auto wrote_frame = [&] {
    OutFrame& frame = out_[out_first_];
    const size_t header = std::min(bytes, kFrameBytes - frame.header_at);
    frame.header_at += header;
    bytes -= header;
    while (bytes > 0 && !frame.rest.at_end()) {
      const size_t step = std::min(bytes, frame.rest.rest().bytes);
      frame.rest.advance(step);
      bytes -= step;
    }
    if (frame.header_at < kFrameBytes || !frame.rest.at_end()) return false;
    if (frame.send != nullptr) frame.send->state = RequestState::kDone;
    out_first_ = (out_first_ + 1) % kMostOutFrames;
    --out_count_;
    return true;
  };
  if (out_count_ > 0 && out_[out_first_].header_at > 0 && !wrote_frame()) return;
  const size_t control = std::min(bytes, control_.size() - control_at_);
  control_at_ += control;
  bytes -= control;
  if (control_at_ == control_.size()) {
    control_.clear();
    control_at_ = 0;
  }
  while (bytes > 0) {
    CHECK(out_count_ > 0, "more was written than was gathered");
    if (!wrote_frame()) return;
  }
}

void Link::close(bool goodbye) {
  if (closed_) return;
  closed_ = true;
  ready_.clear();
  waiting_.clear();
  receives_.clear();
  in_.receive = nullptr;
  // A frame that is partly sent must be finished, so that the goodbye can be read. Nothing else is sent.
  out_count_ = out_count_ > 0 && out_[out_first_].header_at > 0 ? 1 : 0;
  if (!goodbye) return;
  put_control(FrameType::kGoodbye, {}, 0);
}

}  // namespace trestle
