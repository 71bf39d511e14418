// FrameStream: frames in the two byte streams of a connection, without I/O. Received bytes are passed in, and bytes to
// send are taken out. So tests and fuzzers can drive two of them against each other without a socket.
//
// Owned by a rail, used under the rank's progress lock. `events` are those of the rail; `rank` is the peer.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/message/frame.h"
#include "transport/pieces.h"
#include "transport/rail.h"

namespace trestle {

class FrameStream {
 public:
  FrameStream(uint32_t check_in, uint32_t check_out) : check_in_(check_in), check_out_(check_out) {}
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  // ---- Input
  // The destination of the payload in progress: fills `vectors` and returns how many; 0 when a header comes next.
  size_t target(std::span<iovec> vectors) const;
  // The first `bytes` of target() were filled.
  void filled(size_t bytes, int32_t rank, RailEvents& events);
  // Takes bytes that were received behind the target, or without one.
  Status take(std::span<const std::byte> data, int32_t rank, RailEvents& events);

  // ---- Output
  // Whether something of an earlier fill_output() is not written yet.
  bool has_output() const { return control_.size() > control_at_ || out_count_ > 0; }
  // Fills `vectors` with what to write next, in order, and returns how many. Call wrote() before anything else.
  size_t fill_output(std::span<iovec> vectors, int32_t rank, RailEvents& events);
  void wrote(size_t bytes, int32_t rank, RailEvents& events);

  // Drops the rest of the payload in progress, and messages of which nothing is written.
  void close();

 private:
  struct OutFrame {
    std::array<std::byte, kFrameBytes> header;
    size_t header_at = 0;
    SendRequest* send = nullptr;
    PieceCursor<ConstPiece> rest;
  };
  static constexpr size_t kMostOutFrames = 8;
  OutFrame& out(size_t i) { return out_[(out_first_ + i) % kMostOutFrames]; }

  Status handle(int32_t rank, RailEvents& events);
  void took(uint64_t bytes, int32_t rank, RailEvents& events);
  void commit_frames(int32_t rank, RailEvents& events);
  bool wrote_frame(size_t& bytes, int32_t rank, RailEvents& events);

  const uint32_t check_in_;
  const uint32_t check_out_;

  std::array<std::byte, kFrameBytes> header_{};
  size_t header_bytes_ = 0;
  uint64_t left_ = 0;  // of the payload in progress
  bool dropped_ = false;
  PieceCursor<Piece> rest_;

  std::vector<std::byte> control_;
  size_t control_at_ = 0;
  std::array<OutFrame, kMostOutFrames> out_;  // a ring of frames, committed to the stream in this order
  size_t out_first_ = 0;
  size_t out_count_ = 0;
};

}  // namespace trestle
