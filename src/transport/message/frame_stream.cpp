#include "transport/message/frame_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace trestle {
namespace {

// Messages are committed to the stream up to this many bytes ahead. That is enough for one system call to carry many
// small frames, and little enough that an older message still overtakes messages that are only ready.
constexpr size_t kMostCommittedBytes = 64 * 1024;

iovec vector_of(const std::byte* data, size_t bytes) {
  return {const_cast<std::byte*>(data), bytes};
}

void copy_into(PieceCursor<Piece>& to, std::span<const std::byte> data) {
  while (!data.empty()) {
    const Piece piece = to.rest();
    const size_t step = std::min(piece.bytes, data.size());
    std::memcpy(piece.data, data.data(), step);
    to.advance(step);
    data = data.subspan(step);
  }
}

}  // namespace

// ---- input

size_t FrameStream::target(std::span<iovec> vectors) const {
  size_t used = 0;
  if (left_ == 0 || dropped_) return 0;
  for (size_t ahead = 0; ahead < rest_.pieces_left() && used < vectors.size(); ++ahead) {
    const Piece piece = rest_.peek(ahead);
    if (piece.bytes > 0) vectors[used++] = {piece.data, piece.bytes};
  }
  return used;
}

void FrameStream::filled(size_t bytes, int32_t rank, RailEvents& events) {
  CHECK(bytes <= left_, "more was received than was asked for");
  if (bytes == 0) return;
  rest_.advance(bytes);
  took(bytes, rank, events);
}

void FrameStream::took(uint64_t bytes, int32_t rank, RailEvents& events) {
  left_ -= bytes;
  if (left_ == 0) events.end(rank);
}

Status FrameStream::take(std::span<const std::byte> data, int32_t rank, RailEvents& events) {
  while (!data.empty()) {
    if (left_ > 0) {
      const size_t bytes = std::min<uint64_t>(data.size(), left_);
      if (!dropped_) copy_into(rest_, data.first(bytes));
      took(bytes, rank, events);
      data = data.subspan(bytes);
      continue;
    }
    const size_t bytes = std::min(data.size(), kFrameBytes - header_bytes_);
    std::memcpy(&header_[header_bytes_], data.data(), bytes);
    header_bytes_ += bytes;
    data = data.subspan(bytes);
    if (header_bytes_ < kFrameBytes) break;
    header_bytes_ = 0;
    TRY(handle(rank, events));
  }
  return {};
}

Status FrameStream::handle(int32_t rank, RailEvents& events) {
  const Frame frame = TRY(decode_frame(header_.data(), check_in_));
  const std::span<const Piece> pieces = TRY(events.begin(rank, frame));
  left_ = has_payload(frame.type) ? frame.bytes : 0;
  dropped_ = pieces.empty();
  rest_ = PieceCursor<Piece>(pieces);
  if (left_ == 0) events.end(rank);
  return {};
}

// ---- output

void FrameStream::commit_frames(int32_t rank, RailEvents& events) {
  for (Frame header; events.next_control(rank, header);) {
    const size_t at = control_.size();
    control_.resize(at + kFrameBytes);
    encode_frame(header, check_out_, &control_[at]);
  }
  size_t bytes = 0;
  for (size_t i = 0; i < out_count_; ++i) bytes += out(i).send->bytes;
  while (out_count_ < kMostOutFrames && bytes < kMostCommittedBytes) {
    Frame header;
    SendRequest* const send = events.next_message(rank, header);
    if (send == nullptr) return;
    OutFrame& frame = out(out_count_++);
    encode_frame(header, check_out_, frame.header.data());
    frame.header_at = 0;
    frame.send = send;
    frame.rest = PieceCursor<ConstPiece>(send->pieces);
    bytes += send->bytes;
  }
}

// First a frame that is partly sent, then the control frames, then the other committed frames.
size_t FrameStream::fill_output(std::span<iovec> vectors, int32_t rank, RailEvents& events) {
  commit_frames(rank, events);
  size_t used = 0;
  const auto add_frame = [&](const OutFrame& frame) {
    if (frame.header_at < kFrameBytes && used < vectors.size())
      vectors[used++] = vector_of(frame.header.data() + frame.header_at, kFrameBytes - frame.header_at);
    for (size_t ahead = 0; ahead < frame.rest.pieces_left() && used < vectors.size(); ++ahead) {
      const ConstPiece piece = frame.rest.peek(ahead);
      if (piece.bytes > 0) vectors[used++] = vector_of(piece.data, piece.bytes);
    }
  };
  const bool begun = out_count_ > 0 && out(0).header_at > 0;
  if (begun) add_frame(out(0));
  // Only behind the complete begun frame: nothing may be inserted into it.
  if (used < vectors.size() && control_at_ < control_.size())
    vectors[used++] = vector_of(&control_[control_at_], control_.size() - control_at_);
  for (size_t i = begun ? 1 : 0; i < out_count_ && used < vectors.size(); ++i) add_frame(out(i));
  return used;
}

// Counts up to `bytes` for the oldest frame, and takes them off. True if the frame is complete.
bool FrameStream::wrote_frame(size_t& bytes, int32_t rank, RailEvents& events) {
  OutFrame& frame = out(0);
  const size_t header = std::min(bytes, kFrameBytes - frame.header_at);
  frame.header_at += header;
  bytes -= header;
  while (bytes > 0 && !frame.rest.at_end()) {
    const size_t step = std::min(bytes, frame.rest.rest().bytes);
    frame.rest.advance(step);
    bytes -= step;
  }
  if (frame.header_at < kFrameBytes || !frame.rest.at_end()) return false;
  events.written(rank, *frame.send);
  out_first_ = (out_first_ + 1) % kMostOutFrames;
  --out_count_;
  return true;
}

void FrameStream::wrote(size_t bytes, int32_t rank, RailEvents& events) {
  if (out_count_ > 0 && out(0).header_at > 0 && !wrote_frame(bytes, rank, events)) return;
  const size_t control = std::min(bytes, control_.size() - control_at_);
  control_at_ += control;
  bytes -= control;
  if (control_at_ == control_.size()) {
    control_.clear();
    control_at_ = 0;
  }
  while (bytes > 0) {
    CHECK(out_count_ > 0, "more was written than was gathered");
    if (!wrote_frame(bytes, rank, events)) return;
  }
}

// A frame that is partly sent must be finished, so that the goodbye behind it can be read.
void FrameStream::close() {
  dropped_ = true;
  out_count_ = out_count_ > 0 && out(0).header_at > 0 ? 1 : 0;
}

}  // namespace trestle
