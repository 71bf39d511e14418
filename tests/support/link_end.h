// LinkEnd: one end of a connection without a socket: a PeerProtocol and the FrameStream that carries it. Tests and
// fuzzers pass bytes between two of them.
#pragma once

#include <string>

#include "transport/message/frame_stream.h"
#include "transport/message/peer_protocol.h"

namespace trestle {

class LinkEnd : private RailEvents {
 public:
  LinkEnd(const PeerLimits& limits, uint32_t check_in, uint32_t check_out, BufferPool& pool,
          Agreement* agreement = nullptr, int32_t peer = 0)
      : protocol_(limits, pool, agreement, peer), stream_(check_in, check_out) {}

  PeerProtocol* operator->() { return &protocol_; }

  size_t target(std::span<iovec> vectors) const { return stream_.target(vectors); }
  Status filled(size_t bytes) { return stream_.filled(bytes, 0, *this); }
  Status take(std::span<const std::byte> data) { return stream_.take(data, 0, *this); }
  bool has_output() const { return stream_.has_output() || protocol_.has_output(); }
  size_t fill_output(std::span<iovec> vectors) { return stream_.fill_output(vectors, 0, *this); }
  void wrote(size_t bytes) { stream_.wrote(bytes, 0, *this); }
  void close(bool goodbye) {
    protocol_.close(goodbye);
    stream_.close();
  }

 private:
  RailPeer peer(int32_t) const override { return {}; }
  const std::string& name(int32_t) const override { return name_; }
  void connected(int32_t) override {}
  Status ended(int32_t) override { return {}; }
  Status lost(int32_t, const Error& why) override { return why; }
  bool next_control(int32_t, Frame& header) override {
    return protocol_.next_control(header) || protocol_.next_goodbye(0, header);
  }
  bool next_fragment(int32_t, Fragment& fragment) override { return protocol_.next_fragment(UINT64_MAX, fragment); }
  void written(int32_t, const Fragment& fragment) override { protocol_.arrived(fragment); }
  Result<std::span<const Piece>> begin(int32_t, const Frame& header) override { return protocol_.begin(header); }
  Status end(int32_t) override {
    protocol_.end();
    return {};
  }

  const std::string name_ = "rank 0";
  PeerProtocol protocol_;
  FrameStream stream_;
};

}  // namespace trestle
