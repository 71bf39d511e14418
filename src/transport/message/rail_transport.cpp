#include "transport/message/rail_transport.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace trestle {
namespace {

LinkLimits limits_of(const EndpointConfig& config) {
  LinkLimits limits;
  limits.eager_bytes = config.eager_bytes.value_or(limits.eager_bytes);
  limits.credit_bytes = std::max(limits.credit_bytes, 8 * (limits.eager_bytes + kEagerOverhead));
  return limits;
}

}  // namespace

RailTransport::RailTransport(const EndpointConfig& config, std::string kind, std::unique_ptr<Rail> rail)
    : rank_(config.rank),
      kind_(std::move(kind)),
      limits_(limits_of(config)),
      names_(config.peer_names),
      pool_(memory_),
      peers_(static_cast<size_t>(config.ranks)),
      rail_(std::move(rail)) {
  for (size_t rank = names_.size(); rank < peers_.size(); ++rank) names_.push_back("rank " + std::to_string(rank));
  memory_.add(rail_->memory_bytes());
  rail_->set_events(this);
}

Status RailTransport::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) {
  if (addresses.size() != peers_.size())
    return Error{Code::kInternalError, "the number of " + kind_ + " addresses is not the number of ranks"};
  std::copy_n(peer_names.begin(), std::min(peer_names.size(), names_.size()), names_.begin());
  return rail_->set_peers(addresses);
}

Error RailTransport::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return *error_;
}

// Most error messages of a link continue the peer's name. Those about both ranks are whole sentences.
Error RailTransport::link_error(int32_t rank, const Error& error) {
  const bool whole = error.code == Code::kInvalidUsage;
  return fail({error.code, whole ? error.message : name(rank) + " " + error.message});
}

Link& RailTransport::link_of(int32_t rank) {
  std::unique_ptr<Link>& link = at(rank).link;
  if (link == nullptr) {
    link = std::make_unique<Link>(limits_, pool_, agreement_, rank);
    if (closed_) link->close(says_goodbye_);
  }
  return *link;
}

// For a post: the link of a peer whose connection exists or is being made.
Result<Link*> RailTransport::reach(int32_t rank) {
  if (error_) return *error_;
  if (closed_) return Error{Code::kInvalidUsage, "the " + kind_ + " transport is closed"};
  CHECK(rank >= 0 && static_cast<size_t>(rank) < peers_.size() && rank != rank_,
        "a message's peer is not another rank of the communicator");
  if (at(rank).has_left()) return fail({Code::kRemoteError, name(rank) + " has left the communicator"});
  Link& link = link_of(rank);
  if (Status reached = rail_->reach(rank); !reached.ok()) return fail(std::move(reached).error());
  return &link;
}

Result<bool> RailTransport::post_send(SendRequest& request) {
  if (is_notice(request.tag) && !closed_ && !error_) {
    request.state = RequestState::kDone;
    if (at(request.peer).has_left()) return true;
  }
  Link* const link = TRY(reach(request.peer));
  const bool idle = !link->has_output() && rail_->is_idle(request.peer);
  Result<bool> posted = link->post_send(request);
  if (!posted.ok()) return link_error(request.peer, posted.error());
  // A message that may go and has nothing before it is sent now; everything else at the next progress().
  if (posted.value() && idle && link->sending()) {
    const Result<bool> written = rail_->write(request.peer);
    if (!written.ok()) return fail(written.error());
  }
  return posted;
}

Result<bool> RailTransport::post_recv(RecvRequest& request) {
  // Messages that a rank sent before it left are still valid.
  Link* const early = at(request.peer).link.get();
  const bool here = !closed_ && !error_ && early != nullptr && early->has_early(request.tag);
  Link* const link = here ? early : TRY(reach(request.peer));
  Result<bool> posted = link->post_recv(request);
  if (!posted.ok()) return link_error(request.peer, posted.error());
  return posted;
}

void RailTransport::release(RecvRequest& request) {
  if (Link* const link = at(request.peer).link.get()) link->release(request);
}

Result<bool> RailTransport::progress() {
  if (error_) return *error_;
  if (closed_) return false;
  Result<bool> moved = rail_->progress();
  if (!moved.ok()) return fail(std::move(moved).error());
  return moved;
}

// ---- events

RailPeer RailTransport::peer(int32_t rank) const {
  const Peer& at = peers_[static_cast<size_t>(rank)];
  if (at.link == nullptr) return {};
  const Link& link = *at.link;
  return {link.has_output(),     link.sending(),   link.awaiting(),
          link.large_expected(), link.peer_left(), link.goodbye_answered()};
}

Result<std::span<const Piece>> RailTransport::begin(int32_t rank, const Frame& header) {
  const std::span<const Piece> payload = TRY(link_of(rank).begin(header));
  if (header.type == FrameType::kGoodbye && !closed_) TRY(check_left(rank));
  return payload;
}

// The peer said goodbye. That is an error only if a message with it is open.
Status RailTransport::check_left(int32_t rank) {
  const Link& link = link_of(rank);
  if (!link.awaiting() && !link.sending()) return {};
  return Error{Code::kRemoteError, "has left the communicator while messages with it were open"};
}

Status RailTransport::ended(int32_t rank) {
  if (!link_of(rank).peer_left())
    return Error{Code::kRemoteError, "closed its " + kind_ + " connection without a goodbye: it failed or was killed"};
  TRY(check_left(rank));
  at(rank).left = true;
  return {};
}

void RailTransport::close(int linger_ms) {
  if (closed_) return;
  closed_ = true;
  says_goodbye_ = linger_ms > 0 && !error_;
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->close(says_goodbye_);
  }
  rail_->close(says_goodbye_ ? linger_ms : 0);
}

}  // namespace trestle
