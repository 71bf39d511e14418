// HostStreams: streams of bytes between the ranks of a communicator on one host, any number to each peer, over the
// sockets that a rank has there (host_channel.h). Writes and reads behave as those of a nonblocking socket.
//
// Owned by its user, who calls it from one thread at a time. Nothing blocks except close().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/shm/host_channel.h"

namespace trestle {

class HostStreams final : private HostChannelEvents {
 public:
  // As HostChannel::open(); waits alone until on_arrival().
  static Result<std::unique_ptr<HostStreams>> open(const HostKin& kin, const std::string& name, int32_t rank);

  const std::string& address() const { return channel_->address(); }
  // Connects to these peers. addresses, names: by rank, of these peers at least.
  Status connect(const std::vector<int32_t>& peers, const std::vector<std::string>& addresses,
                 const std::vector<std::string>& names);

  // How many bytes were taken; 0: none at the moment.
  Result<size_t> send(int32_t peer, uint64_t stream, std::span<const std::byte> bytes);
  // How many bytes came; 0: none at the moment; kEndOfStream: the peer has left or is gone, and all that it sent is
  // read.
  size_t receive(int32_t peer, uint64_t stream, std::span<std::byte> bytes);
  // Sends bytes before the end, as soon as the socket has room; a full socket loses none.
  void send_last(int32_t peer, uint64_t stream, std::span<const std::byte> bytes) {
    channel_->add_final_bytes(peer, stream, bytes);
  }
  // Takes in what has arrived. True: something has, or has ended. Errors: the system's; this rank is to blame.
  Result<bool> poll();
  int event_fd() const { return channel_->event_fd(); }
  void on_arrival(std::function<void()> ring) { channel_->on_arrival(std::move(ring)); }
  // As HostChannel::close(). Bytes that were taken arrive.
  void close(int64_t deadline_ns) { channel_->close(deadline_ns); }

 private:
  HostStreams() = default;
  Status on_ready(int32_t) override { return {}; }
  Status on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) override;
  Status on_bytes(int32_t peer, const HostFrame& frame, std::string bytes) override;
  Status on_lost(int32_t peer, const Error& why) override;

  std::unique_ptr<HostChannel> channel_;
  std::map<std::pair<int32_t, uint64_t>, std::string> came_;  // by peer and stream; empty ones go
  std::set<int32_t> lost_;
  bool news_ = false;
};

}  // namespace trestle
