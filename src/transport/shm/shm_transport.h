// ShmTransport: the Transport of shm.h. Combines the sockets, senders and receivers of all peers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/shm/host_channel.h"
#include "transport/shm/receiver.h"
#include "transport/shm/sender.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"

namespace trestle {

class ShmTransport final : public Transport, private HostChannelEvents {
 public:
  ShmTransport(const EndpointConfig& config, const ShmTransportOptions& options);
  Status start();

  std::string address() const override { return channel_->address(); }
  Status set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) override;
  bool has_device_paths() const override { return true; }
  void set_device_path(int32_t peer, const DevicePath& path) override;
  Result<bool> post_send(SendRequest& request) override;
  Result<bool> post_recv(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  Result<bool> progress() override;
  int event_fd() const override { return channel_->event_fd(); }
  bool shares_events() const override { return true; }
  void on_arrival(std::function<void()> ring) override { channel_->on_arrival(std::move(ring)); }
  void look_everywhere() override;
  bool prepare_sleep() override;
  void finish_sleep() override;
  void close(int linger_ms) override;

 private:
  // The state of a peer that this rank talks to.
  struct Pair {
    Pair(int32_t peer_rank, HostChannel& channel, const SenderOptions& options, Agreement* agreement)
        : peer(peer_rank),
          sender(peer_rank, channel, options),
          receiver(peer_rank, channel, sender, agreement, *options.memory) {}
    const int32_t peer;
    bool lane_told = false;
    Sender sender;
    Receiver receiver;
  };

  Status on_ready(int32_t peer) override;
  Status on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) override;
  Status tell_lane(Pair& pair);
  Result<Pair*> pair(int32_t peer);
  Status check_peer(int32_t peer) const;
  // Keeps the first error: from then on every call returns it.
  Result<bool> kept(Result<bool> result);
  Result<bool> send(SendRequest& request);
  Result<bool> receive(RecvRequest& request);
  Result<bool> progress_all();
  Result<bool> progress_pair(Pair& pair);
  void wake(Pair& pair);
  uint64_t frees() const;

  EndpointConfig config_;  // without the names once the sockets have them
  const std::shared_ptr<MemRegistrations> registrations_;
  SenderOptions options_;
  HostKin kin_;  // until it has a channel
  std::string carrier_;
  std::unique_ptr<HostChannel> channel_;
  std::vector<std::unique_ptr<Pair>> pairs_;  // by rank
  std::vector<Pair*> active_;
  std::multimap<int32_t, DevicePath> device_paths_;
  uint32_t calls_until_poll_ = 0;
  uint64_t frees_seen_ = 0;
  Status failure_;
  bool closed_ = false;
};

}  // namespace trestle
