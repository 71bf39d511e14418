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

#include "transport/frame.h"
#include "transport/pieces.h"
#include "transport/rail.h"

namespace trestle {

class FrameStream {
 public:
  // in_order: as RailPeer::in_order.
  FrameStream(uint32_t check_in, uint32_t check_out, bool in_order = true)
      : check_in_(check_in), check_out_(check_out), in_order_(in_order) {}
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  // ---- Input
  // The destination of the payload in progress: fills `vectors` and returns how many; 0 when a header comes next.
  size_t target(std::span<iovec> vectors) const;
  // The first `bytes` of target() were filled.
  Status filled(size_t bytes, int32_t rank, RailEvents& events);
  // Takes bytes that were received after those of the target, or without a target.
  Status take(std::span<const std::byte> data, int32_t rank, RailEvents& events);

  // ---- Output
  // Whether something of an earlier fill_output() is not written yet.
  bool has_output() const { return count_ > 0; }
  // Fills `vectors` with what to write next, in order, and returns how many. Call wrote() before anything else.
  // fragments: asks for new ones, and not only for headers without payload.
  size_t fill_output(std::span<iovec> vectors, int32_t rank, RailEvents& events, bool fragments = true);
  void wrote(size_t bytes, int32_t rank, RailEvents& events);

  // Drops the rest of the payload in progress, and messages of which nothing is written. Headers without payload stay.
  void close();

 private:
  struct Entry {                   // headers without payload, and the fragment that follows them
    std::vector<std::byte> heads;  // with the header of the fragment
    size_t heads_at = 0;           // the bytes before it are written
    bool has_fragment = false;
    Fragment fragment;
    PieceCursor<ConstPiece> rest;
    uint64_t left = 0;  // of the payload
    bool fragment_begun() const { return has_fragment && heads_at + kFrameBytes > heads.size(); }
  };
  static constexpr size_t kMostEntries = 8;
  Entry& entry(size_t i) { return entries_[(first_ + i) % kMostEntries]; }
  Entry& add_entry();
  Entry* entry_for_control();

  Status handle(int32_t rank, RailEvents& events);
  Status took(uint64_t bytes, int32_t rank, RailEvents& events);
  void commit_fragments(int32_t rank, RailEvents& events);
  void commit_control(int32_t rank, RailEvents& events);
  bool wrote_entry(size_t& bytes, int32_t rank, RailEvents& events);

  const uint32_t check_in_;
  const uint32_t check_out_;
  const bool in_order_;

  std::array<std::byte, kFrameBytes> header_{};
  size_t header_bytes_ = 0;
  uint64_t left_ = 0;  // of the payload in progress
  bool dropped_ = false;
  PieceCursor<Piece> rest_;

  std::array<Entry, kMostEntries> entries_;  // a ring, committed to the stream in this order
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace trestle
