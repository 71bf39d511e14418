#include "transport/shm/shm_transport.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "memory/mem_alloc.h"
#include "memory/registrations.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

namespace {

// Polling the sockets costs a system call, and messages do not need it.
constexpr uint32_t kCallsPerPoll = 256;
constexpr uint32_t kCallsPerPollWhileConnecting = 8;

}  // namespace

ShmTransport::ShmTransport(const EndpointConfig& config, const ShmTransportOptions& options)
    : config_(config), registrations_(options.registrations) {
  options_.unasked_bytes = config.eager_bytes.value_or(options_.unasked_bytes);
  options_.map_memory = options.map_memory;
  options_.memory = &memory_;
  options_.registrations = registrations_.get();
  kin_ = options.kin;
  carrier_ = options.carrier;
  pairs_.resize(static_cast<size_t>(config.ranks));
  active_.reserve(pairs_.size());
}

// Counts how often memory that peers may have mapped was freed or removed.
uint64_t ShmTransport::frees() const {
  return mem_frees() + (registrations_ != nullptr ? registrations_->removals() : 0);
}

Status ShmTransport::start() {
  HostKin kin =
      kin_.sockets != nullptr ? std::move(kin_) : root_kin({config_.rank, config_.ranks, config_.job, config_.secret});
  channel_ = TRY(HostChannel::open(kin, config_.job + "/" + carrier_, config_.rank, *this));
  channel_->set_peers({}, config_.peer_names);
  std::vector<std::string>().swap(config_.peer_names);
  frees_seen_ = frees();
  return {};
}

Status ShmTransport::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) {
  if (addresses.size() != pairs_.size()) {
    return Error{Code::kInternalError, "the number of addresses is not the number of ranks"};
  }
  channel_->set_peers(addresses, peer_names);
  return {};
}

// A pair is made when it first talks.
void ShmTransport::set_device_path(int32_t peer, const DevicePath& path) {
  device_paths_.emplace(peer, path);
}

Result<bool> ShmTransport::kept(Result<bool> result) {
  if (!result.ok()) [[unlikely]]
    failure_ = result.error();
  return result;
}

Result<bool> ShmTransport::post_send(SendRequest& request) {
  return kept(send(request));
}
Result<bool> ShmTransport::post_recv(RecvRequest& request) {
  return kept(receive(request));
}
Result<bool> ShmTransport::progress() {
  return kept(progress_all());
}

Status ShmTransport::check_peer(int32_t peer) const {
  if (!failure_.ok()) return failure_;
  if (closed_) return Error{Code::kInvalidUsage, "the shared-memory transport is closed"};
  CHECK(peer >= 0 && peer < config_.ranks && peer != config_.rank,
        "shared memory was asked for a rank that is not another rank of this job");
  return {};
}

Result<ShmTransport::Pair*> ShmTransport::pair(int32_t peer) {
  std::unique_ptr<Pair>& place = pairs_[static_cast<size_t>(peer)];
  if (place == nullptr) {
    auto made = std::make_unique<Pair>(peer, *channel_, options_, agreement_);
    TRY(made->sender.start(lane_shape(config_.ranks)));
    for (auto [path, end] = device_paths_.equal_range(peer); path != end; ++path) {
      made->sender.set_outbox(path->second.own_id, path->second.outbox->on_device());
      made->receiver.set_outbox(*path->second.outbox);
    }
    LOG(kInfo, kShm, "shm: rank %d opens a lane of %zu bytes to %s", config_.rank,
        made->sender.lane().control().bytes(), channel_->name(peer).c_str());
    place = std::move(made);
    active_.push_back(place.get());
  }
  return place.get();
}

// Our connection is proved.
Status ShmTransport::on_ready(int32_t peer) {
  return tell_lane(*TRY(pair(peer)));
}

// Before any other frame. The socket is not this communicator's alone: it may be full.
Status ShmTransport::tell_lane(Pair& p) {
  if (p.lane_told || !channel_->ready(p.peer)) return {};
  Segment& control = p.sender.lane().control();
  const HostFrame frame{.kind = HostFrameKind::kLane, .bytes = control.bytes()};
  p.lane_told = TRY(channel_->send(p.peer, frame, control.fd()));
  if (p.lane_told) control.close_fd();
  return {};
}

Status ShmTransport::on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) {
  Pair& p = *TRY(pair(peer));
  if (frame.kind == HostFrameKind::kRead) {
    p.sender.on_last_read(
        {.operation = frame.id, .phase = frame.phase, .message = frame.message, .offset = frame.bytes});
    return {};
  }
  return p.receiver.on_frame(frame, std::move(fd));
}

Result<bool> ShmTransport::send(SendRequest& request) {
  TRY(check_peer(request.peer));
  if (channel_->left(request.peer)) {
    if (is_notice(request.tag)) {
      request.state = RequestState::kDone;
      return true;
    }
    return Error{Code::kRemoteError, channel_->name(request.peer) + " has left the communicator"};
  }
  if (!channel_->ready(request.peer)) {
    TRY(channel_->want(request.peer));
    calls_until_poll_ = 0;
    if (!channel_->ready(request.peer)) return false;
  }
  Pair& p = *TRY(pair(request.peer));
  TRY(tell_lane(p));
  if (!p.lane_told) return false;
  bool accepted = true;
  if (is_notice(request.tag)) {
    p.sender.post_notice(request);
  } else {
    accepted = TRY(p.sender.post(request));
  }
  wake(p);
  return accepted;
}

Result<bool> ShmTransport::receive(RecvRequest& request) {
  TRY(check_peer(request.peer));
  // A rank that only receives must also notice that the peer is gone.
  TRY(channel_->want(request.peer));
  Pair& p = *TRY(pair(request.peer));
  TRY(p.receiver.post(request));
  wake(p);
  return true;
}

void ShmTransport::release(RecvRequest& request) {
  if (closed_) return;
  Pair* const p = pairs_[static_cast<size_t>(request.peer)].get();
  if (p == nullptr) return;
  p->receiver.release(request);
  wake(*p);
}

// Wakes the peer if it sleeps and there is something for it, or if it may wait for slots.
void ShmTransport::wake(Pair& p) {
  const bool pushed = p.sender.take_pushed();
  const bool gave_back = p.receiver.take_gave_back();
  if (!pushed && !gave_back) return;
  // Without the peer's lane it is unknown whether it sleeps.
  if (p.receiver.lane() ? p.receiver.lane().take_asleep() : true) channel_->wake(p.peer);
}

Result<bool> ShmTransport::progress_pair(Pair& p) {
  TRY(tell_lane(p));
  bool moved = TRY(p.receiver.progress());
  if (p.sender.starved()) moved |= TRY(p.sender.progress());
  wake(p);
  if (channel_->left(p.peer) && !moved && (p.receiver.waits_for_peer() || p.sender.has_messages())) [[unlikely]] {
    if (!p.receiver.has_work()) {
      return Error{Code::kRemoteError,
                   channel_->name(p.peer) + " has left the communicator while messages were awaited"};
    }
  }
  return moved;
}

Result<bool> ShmTransport::progress_all() {
  if (!failure_.ok()) [[unlikely]]
    return Error(failure_.error());
  if (closed_) return Error{Code::kInvalidUsage, "the shared-memory transport is closed"};
  bool moved = false;
  if (calls_until_poll_ == 0) {
    moved |= TRY(channel_->poll());
    calls_until_poll_ = channel_->connecting() ? kCallsPerPollWhileConnecting : kCallsPerPoll;
  }
  --calls_until_poll_;
  if (frees() != frees_seen_) [[unlikely]] {
    frees_seen_ = frees();
    for (Pair* p : active_) p->sender.forget_freed();
  }
  for (size_t i = 0; i < active_.size(); ++i) moved |= TRY(progress_pair(*active_[i]));
  return moved;
}

void ShmTransport::look_everywhere() {
  calls_until_poll_ = 0;
  for (Pair* p : active_) p->receiver.expect_rare_calls();
}

bool ShmTransport::prepare_sleep() {
  calls_until_poll_ = 0;
  for (Pair* p : active_) p->sender.lane().set_asleep(true);
  for (Pair* p : active_) {
    if (p->receiver.has_work() || p->sender.could_move()) return false;
  }
  return frees() == frees_seen_ && !channel_->wants_poll();
}

void ShmTransport::finish_sleep() {
  calls_until_poll_ = 0;
  for (Pair* p : active_) p->sender.lane().set_asleep(false);
}

void ShmTransport::close(int linger_ms) {
  if (closed_ || channel_ == nullptr) return;
  closed_ = true;
  // Sent data lies in memory that the peers have mapped, so it stays readable. Answers (kRead) that the lane could not
  // carry go with the goodbye. A peer that has not accepted this rank's connection, or reads nothing at the moment,
  // must get them too.
  for (Pair* p : active_) channel_->set_final_frames(p->peer, p->sender.unsent_reads());
  channel_->close(monotonic_clock().now_ns() + int64_t{linger_ms} * 1'000'000);
}

Status shared_memory_probe() {
  TRY(segment_probe());
  const Result<UniqueFd> listener = listen_unix(fresh_unix_name("trestle-probe", "", 0), 1);
  if (listener.ok()) return {};
  return Error{listener.error().code, "cannot listen to ranks of this host: " + listener.error().message};
}

Status shm_probe() {
  TRY(handshake_probe());
  return shared_memory_probe();
}

Result<std::unique_ptr<Transport>> make_shm_transport(const EndpointConfig& config,
                                                      const ShmTransportOptions& options) {
  auto transport = std::make_unique<ShmTransport>(config, options);
  TRY(transport->start());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace trestle
