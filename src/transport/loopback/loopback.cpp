#include "transport/loopback/loopback.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "memory/region.h"
#include "transport/agreement.h"
#include "transport/loopback/registry.h"
#include "transport/pieces.h"
#include "transport/tag_map.h"

namespace trestle {
namespace {

using Kind = LoopbackNote::Kind;

// How long close() waits at least for peers that still read this rank's memory through a view. They are told at once,
// and give their views back when their communicator fails in turn.
constexpr int kLeastReadersMs = 1000;

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(const EndpointConfig& config, LoopbackTransportOptions options, std::shared_ptr<Mailbox> mailbox)
      : options_(std::move(options)),
        rank_(config.rank),
        job_(config.job),
        names_(config.peer_names),
        mailbox_(std::move(mailbox)),
        peers_(config.ranks) {}
  ~LoopbackTransport() override { close(0); }

  std::string address() const override { return "loopback"; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>& peer_names) override {
    names_ = peer_names;
    return {};
  }

  Result<bool> post_send(SendRequest& request) override;
  Result<bool> post_recv(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  Result<bool> progress() override;

  int event_fd() const override { return -1; }
  void on_arrival(std::function<void()> ring) override { mailbox_->on_arrival(std::move(ring)); }
  bool prepare_sleep() override { return mailbox_->prepare_sleep(); }
  void finish_sleep() override { mailbox_->finish_sleep(); }
  void close(int linger_ms) override;

 private:
  struct Peer {
    std::shared_ptr<Mailbox> mailbox;  // null before the first contact
    bool left = false;                 // said goodbye, or is gone
    size_t sends = 0;                  // posted to it and not taken yet
    TagMap<RecvRequest*> receives;     // posted, nothing has arrived
    TagMap<SendRequest*> arrived;      // nothing is posted
  };

  Error fail(Code code, const std::string& sentence) {
    if (!error_.has_value()) error_ = Error{code, sentence};
    return *error_;
  }
  std::string name(int32_t rank) const {
    return static_cast<size_t>(rank) < names_.size() ? names_[rank] : "rank " + std::to_string(rank);
  }
  Error left_error(int32_t rank) {
    return fail(Code::kRemoteError, name(rank) + " has left while messages of it or to it were open");
  }
  Result<Peer*> contact(int32_t rank);
  // False: the rank has no endpoint.
  bool meet(int32_t rank);
  Result<bool> post_notice(SendRequest& request);
  Status hear(const LoopbackNote& note);
  Status handle(const LoopbackNote& note);
  Status deliver(Peer& peer, SendRequest& send, RecvRequest& receive);
  void tell_taken(Peer& peer, SendRequest* send);
  void wait_for_readers(int linger_ms);

  const LoopbackTransportOptions options_;
  const int32_t rank_;
  const std::string job_;
  std::vector<std::string> names_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<Peer> peers_;
  std::vector<LoopbackNote> notes_;
  std::vector<RecvRequest*> views_;  // done and not released
  std::optional<Error> error_;
  bool closed_ = false;
};

Result<LoopbackTransport::Peer*> LoopbackTransport::contact(int32_t rank) {
  if (error_.has_value()) return *error_;
  if (closed_) return Error{Code::kInvalidUsage, "the loopback transport is closed"};
  CHECK(rank >= 0 && static_cast<size_t>(rank) < peers_.size(), "a message's peer is no rank of the communicator");
  Peer& peer = peers_[rank];
  if (peer.left) return left_error(rank);
  if (!meet(rank)) return fail(Code::kRemoteError, name(rank) + " has no open loopback endpoint in this process");
  return &peer;
}

bool LoopbackTransport::meet(int32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.mailbox != nullptr) return true;
  peer.mailbox = find_mailbox(job_, rank);
  if (peer.mailbox != nullptr && rank != rank_) peer.mailbox->put({Kind::kHello, rank_, nullptr, {}});
  return peer.mailbox != nullptr;
}

Result<bool> LoopbackTransport::post_notice(SendRequest& request) {
  request.state = RequestState::kDone;
  Peer& peer = peers_[request.peer];
  if (!peer.left && meet(request.peer)) peer.mailbox->put({Kind::kNotice, rank_, nullptr, request.tag});
  return true;
}

Result<bool> LoopbackTransport::post_send(SendRequest& request) {
  if (is_notice(request.tag) && !closed_) return post_notice(request);
  Peer* peer = TRY(contact(request.peer));
  request.state = RequestState::kPending;
  ++peer->sends;
  peer->mailbox->put({Kind::kMessage, rank_, &request, request.tag});
  return true;
}

Result<bool> LoopbackTransport::post_recv(RecvRequest& request) {
  Peer* peer = TRY(contact(request.peer));
  request.state = RequestState::kPending;
  request.view.clear();
  SendRequest* send = nullptr;
  if (peer->arrived.take(request.tag, send)) {
    TRY(deliver(*peer, *send, request));
  } else if (!peer->receives.insert(request.tag, &request)) {
    return fail(Code::kInternalError, "two receives were posted with the same tag");
  }
  return true;
}

// Ends the reading of a peer's memory, whatever happens: its owner waits for that.
class Reading {
 public:
  explicit Reading(Mailbox& mailbox) : mailbox_(&mailbox) {}
  ~Reading() {
    if (mailbox_ != nullptr) mailbox_->end_reading();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  void goes_on() { mailbox_ = nullptr; }

 private:
  Mailbox* mailbox_;
};

Status LoopbackTransport::deliver(Peer& peer, SendRequest& send, RecvRequest& receive) {
  if (!peer.mailbox->begin_reading()) return left_error(receive.peer);
  Reading reading(*peer.mailbox);
  if (sizes_differ(send.tag, send.bytes, receive.tag, receive.bytes)) {
    const Error error =
        different_sizes(name(receive.peer), name(rank_), send.tag, send.bytes, receive.tag, receive.bytes);
    return fail(error.code, error.message);
  }
  if (places_differ(send.tag, receive.tag)) {
    const Error error = different_places(name(receive.peer), name(rank_), send.tag, receive.tag);
    return fail(error.code, error.message);
  }
  if (receive.pieces.empty() && receive.bytes > 0) {
    receive.view.assign(send.pieces.begin(), send.pieces.end());
    receive.transport.pointer[0] = &send;
    views_.push_back(&receive);
    reading.goes_on();
  } else {
    const auto is_on_device = [](const ConstPiece& piece) {
      return piece.region != nullptr && piece.region->on_device();
    };
    CHECK(std::ranges::none_of(send.pieces, is_on_device), "a message in memory of a device has a destination");
    copy_pieces(send.pieces, receive.pieces);
    receive.transport.pointer[0] = nullptr;
    tell_taken(peer, &send);
  }
  receive.state = RequestState::kDone;
  return {};
}

// Call it before the reading of the memory ends. An owner that closes waits only for its readers. After that its
// request may be gone, so no note about the request may come later.
void LoopbackTransport::tell_taken(Peer& peer, SendRequest* send) {
  peer.mailbox->put({Kind::kTaken, rank_, send, {}});
}

void LoopbackTransport::release(RecvRequest& request) {
  const auto at = std::find(views_.begin(), views_.end(), &request);
  if (at == views_.end()) return;
  *at = views_.back();
  views_.pop_back();
  Peer& peer = peers_[request.peer];
  const Reading reading(*peer.mailbox);
  auto* const send = static_cast<SendRequest*>(std::exchange(request.transport.pointer[0], nullptr));
  send->read = request.read;
  tell_taken(peer, send);
}

Status LoopbackTransport::hear(const LoopbackNote& note) {
  if (agreement_ == nullptr || agreement_->heard(note.from, note.tag)) return {};
  return fail(Code::kInvalidUsage, agreement_->error().message);
}

Status LoopbackTransport::handle(const LoopbackNote& note) {
  Peer& peer = peers_[note.from];
  switch (note.kind) {
    case Kind::kNotice:
      return hear(note);
    case Kind::kHello:
      if (peer.mailbox == nullptr) peer.mailbox = find_mailbox(job_, note.from);
      return {};
    case Kind::kMessage: {
      TRY(hear(note));
      RecvRequest* receive = nullptr;
      if (peer.mailbox == nullptr) peer.mailbox = find_mailbox(job_, note.from);
      if (peer.mailbox == nullptr) return {};  // closed meanwhile: its last note says how
      if (peer.receives.take(note.tag, receive)) return deliver(peer, *note.send, *receive);
      if (!peer.arrived.insert(note.tag, note.send))
        return fail(Code::kRemoteError, name(note.from) + " used a tag twice");
      return {};
    }
    case Kind::kTaken:
      --peer.sends;
      note.send->state = RequestState::kDone;
      return {};
    case Kind::kGoodbye:
      peer.left = true;
      peer.arrived.clear();
      if (peer.receives.size() > 0 || peer.sends > 0) return left_error(note.from);
      return {};
    case Kind::kGone:
      peer.left = true;
      peer.arrived.clear();
      return fail(Code::kRemoteError, name(note.from) + " closed its end in the middle of the job");
  }
  return {};
}

Result<bool> LoopbackTransport::progress() {
  if (error_.has_value()) return *error_;
  if (closed_ || !mailbox_->take(notes_)) return false;
  Status status;
  for (const LoopbackNote& note : notes_) {
    status = handle(note);
    if (!status.ok()) break;
  }
  notes_.clear();
  if (!status.ok()) return status.error();
  return true;
}

// The user frees the memory afterwards. A peer may read it for a long time, because a user-defined function runs there
// or its device is busy. So there is no limit while the peers are driven. A peer that nobody drives never gives its
// views back, so then the limit counts.
void LoopbackTransport::wait_for_readers(int linger_ms) {
  const int64_t until_ns = monotonic_clock().now_ns() + int64_t{std::max(linger_ms, kLeastReadersMs)} * 1'000'000;
  while (mailbox_->is_read()) {
    const bool driven = options_.drive_peers && options_.drive_peers();
    if (!driven && monotonic_clock().now_ns() > until_ns) return;
    ::sched_yield();
  }
}

void LoopbackTransport::close(int linger_ms) {
  if (closed_) return;
  closed_ = true;
  while (!views_.empty()) release(*views_.back());
  unpin_mailbox(job_, rank_, mailbox_.get());
  const Kind last = linger_ms > 0 && !error_.has_value() ? Kind::kGoodbye : Kind::kGone;
  for (size_t r = 0; r < peers_.size(); ++r) {
    const std::shared_ptr<Mailbox>& mailbox = peers_[r].mailbox;
    if (mailbox == nullptr || static_cast<int32_t>(r) == rank_) continue;
    mailbox->put({last, rank_, nullptr, {}});
  }
  mailbox_->shut();
  mailbox_->on_arrival({});
  wait_for_readers(linger_ms);
  peers_.clear();
}

}  // namespace

Status loopback_probe() {
  return {};
}

Result<std::unique_ptr<Transport>> make_loopback_transport(const EndpointConfig& config,
                                                           LoopbackTransportOptions options) {
  auto mailbox = std::make_shared<Mailbox>();
  if (!pin_mailbox(config.job, config.rank, mailbox))
    return Error{Code::kInvalidUsage,
                 "rank " + std::to_string(config.rank) + " of this job already has an endpoint in this process"};
  return std::unique_ptr<Transport>(
      std::make_unique<LoopbackTransport>(config, std::move(options), std::move(mailbox)));
}

}  // namespace trestle
