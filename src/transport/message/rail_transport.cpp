#include "transport/message/rail_transport.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace trestle {
namespace {

PeerLimits limits_of(const EndpointConfig& config) {
  PeerLimits limits;
  limits.eager_bytes = config.eager_bytes.value_or(limits.eager_bytes);
  limits.credit_bytes = std::max(limits.credit_bytes, 8 * (limits.eager_bytes + kEagerOverhead));
  return limits;
}

}  // namespace

class RailTransport::Port final : public RailEvents {
 public:
  Port(RailTransport& owner, size_t rail) : owner_(owner), rail_(rail) {}

  RailPeer peer(int32_t rank) const override { return owner_.peer(rail_, rank); }
  const std::string& name(int32_t rank) const override { return owner_.name(rank); }
  void connected(int32_t rank) override { owner_.connected(rail_, rank); }
  Status ended(int32_t rank) override { return owner_.ended(rail_, rank); }
  Status lost(int32_t rank, const Error& why) override { return owner_.lost(rail_, rank, why); }
  uint64_t hold_bytes(int32_t rank) const override {
    const Peer& peer = owner_.at(rank);
    return peer.rails == nullptr ? 0 : peer.rails->hold_bytes(peer.path_of(rail_));
  }
  bool next_control(int32_t rank, Frame& header) override { return owner_.next_control(rail_, rank, header); }
  bool next_fragment(int32_t rank, Fragment& fragment) override {
    Peer& peer = owner_.at(rank);
    if (peer.rails == nullptr) return owner_.protocol_of(rank).next_fragment(UINT64_MAX, fragment);
    return peer.rails->next_fragment(peer.path_of(rail_), fragment, owner_.now());
  }
  void written(int32_t rank, const Fragment& fragment) override {
    Peer& peer = owner_.at(rank);
    if (peer.rails != nullptr) return peer.rails->written(peer.path_of(rail_));
    peer.record->sent(fragment.header.length);
    peer.protocol->arrived(fragment);
  }
  Result<std::span<const Piece>> begin(int32_t rank, const Frame& header) override {
    return owner_.begin(rail_, rank, header);
  }
  Status end(int32_t rank) override {
    Peer& peer = owner_.at(rank);
    if (peer.rails != nullptr) return peer.rails->end(peer.path_of(rail_));
    peer.record->received(std::exchange(peer.incoming, 0));
    peer.protocol->end();
    return {};
  }

 private:
  RailTransport& owner_;
  const size_t rail_;
};

size_t RailTransport::Peer::path_of(size_t rail) const {
  for (size_t path = 0; path < paths.size(); ++path) {
    if (paths[path].rail == rail) return path;
  }
  CHECK(paths.empty(), "a rail has an event of a peer that it does not reach");
  return 0;
}

RailTransport::RailTransport(const EndpointConfig& config, std::string kind, RailSet set)
    : rank_(config.rank),
      kind_(std::move(kind)),
      limits_(limits_of(config)),
      names_(config.peer_names),
      pool_(memory_),
      probes_(set.rails.size()),
      suspicions_(set.rails.size()),
      peers_(static_cast<size_t>(config.ranks)),
      set_(std::move(set)) {
  numa_node_ = set_.numa_node;
  for (size_t rank = names_.size(); rank < peers_.size(); ++rank) names_.push_back("rank " + std::to_string(rank));
  for (size_t rail = 0; rail < set_.rails.size(); ++rail) {
    memory_.add(set_.rails[rail]->memory_bytes());
    set_.rails[rail]->set_events(ports_.emplace_back(std::make_unique<Port>(*this, rail)).get());
  }
}

RailTransport::~RailTransport() {
  close(0);
}

Status RailTransport::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) {
  if (addresses.size() != peers_.size())
    return Error{Code::kInternalError, "the number of " + kind_ + " addresses is not the number of ranks"};
  std::copy_n(peer_names.begin(), std::min(peer_names.size(), names_.size()), names_.begin());
  if (!set_.paths) return set_.rails[0]->set_peers(addresses);
  std::vector<std::vector<std::string>> by_rail(set_.rails.size(), std::vector<std::string>(addresses.size()));
  for (int32_t rank = 0; rank < static_cast<int32_t>(peers_.size()); ++rank) {
    const std::string& address = addresses[static_cast<size_t>(rank)];
    if (address.empty() || rank == rank_) continue;
    std::vector<RailPath> paths = TRY(set_.paths(rank, address));
    for (const RailPath& path : paths) by_rail[path.rail][static_cast<size_t>(rank)] = path.address;
    at(rank).rail = static_cast<uint8_t>(paths[0].rail);
    if (paths.size() > 1) at(rank).paths = std::move(paths);
  }
  for (size_t rail = 0; rail < by_rail.size(); ++rail) TRY(set_.rails[rail]->set_peers(by_rail[rail]));
  return watch_rails();
}

Error RailTransport::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return *error_;
}

// Most error messages of a protocol continue the peer's name. Those about both ranks are whole sentences.
Error RailTransport::protocol_error(int32_t rank, const Error& error) {
  const bool whole = error.code == Code::kInvalidUsage;
  return fail({error.code, whole ? error.message : name(rank) + " " + error.message});
}

// Where memory cannot be had, the peer gets neither a protocol nor rails, and stays usable.
PeerProtocol& RailTransport::protocol_of(int32_t rank) {
  Peer& peer = at(rank);
  if (peer.protocol == nullptr) {
    const size_t rails = std::max<size_t>(1, peer.paths.size());
    auto protocol = std::make_unique<PeerProtocol>(limits_, pool_, agreement_, rank, rails);
    if (rails > 1) {
      add_rails(rank, *protocol);
    } else {
      peer.record = &add_record(rank, peer.rail, 1);
    }
    peer.protocol = std::move(protocol);
    if (closed_) peer.protocol->close(says_goodbye_);
  }
  return *peer.protocol;
}

RailRecord& RailTransport::add_record(int32_t rank, size_t rail, size_t rails) {
  return book_.add(rank, rail < set_.names.size() ? set_.names[rail] : "", static_cast<uint32_t>(rails), now());
}

void RailTransport::add_rails(int32_t rank, PeerProtocol& protocol) {
  Peer& peer = at(rank);
  several_.reserve(peers_.size());
  std::vector<PeerRails::Given> rails;
  for (const RailPath& path : peer.paths)
    rails.push_back(
        {path.rate, &add_record(rank, path.rail, peer.paths.size()), &probes_[path.rail], &suspicions_[path.rail]});
  const auto rail_of = [this, rank](size_t path) -> Rail& { return *set_.rails[at(rank).paths[path].rail]; };
  PeerRails::Hooks hooks{[=](size_t path) { rail_of(path).drop(rank); },
                         [=](size_t path) { return rail_of(path).reach(rank); },
                         [=](size_t path) { return rail_of(path).in_line(rank); },
                         [=, this](size_t path, bool up, const std::string& why) { log_change(rank, path, up, why); }};
  PeerRails::Options options = set_.options;
  options.ends_silent_rails = rank_ < rank;
  peer.rails = std::make_unique<PeerRails>(protocol, pool_, rails, options, std::move(hooks));
  several_.push_back(rank);
}

void RailTransport::log_change(int32_t rank, size_t path, bool up, const std::string& why) const {
  const char* const rail = set_.names[at(rank).paths[path].rail].c_str();
  if (up)
    LOG(kWarn, kNet, "%s: rail %s to %s is back (it was lost: %s)", kind_.c_str(), rail, name(rank).c_str(),
        why.c_str());
  else
    LOG(kWarn, kNet, "%s: rail %s to %s is lost: %s; the other rails go on", kind_.c_str(), rail, name(rank).c_str(),
        why.c_str());
}

// For a post: the protocol of a peer whose connection exists or is being made. Rails that failed are tried again by
// tick().
Result<PeerProtocol*> RailTransport::reach(int32_t rank) {
  if (error_) return *error_;
  if (closed_) return Error{Code::kInvalidUsage, "the " + kind_ + " transport is closed"};
  CHECK(rank >= 0 && static_cast<size_t>(rank) < peers_.size() && rank != rank_,
        "a message's peer is not another rank of the communicator");
  Peer& peer = at(rank);
  if (peer.has_left()) return fail({Code::kRemoteError, name(rank) + " has left the communicator"});
  const bool first = peer.protocol == nullptr;
  PeerProtocol& protocol = protocol_of(rank);
  if (peer.rails == nullptr) {
    if (Status reached = set_.rails[peer.rail]->reach(rank); !reached.ok()) return fail(std::move(reached).error());
  } else if (first) {
    for (const RailPath& path : peer.paths) {
      if (Status reached = set_.rails[path.rail]->reach(rank); !reached.ok()) return fail(std::move(reached).error());
    }
  }
  return &protocol;
}

Result<bool> RailTransport::post_send(SendRequest& request) {
  if (is_notice(request.tag) && !closed_ && !error_) {
    request.state = RequestState::kDone;
    if (at(request.peer).has_left()) return true;
  }
  PeerProtocol* const protocol = TRY(reach(request.peer));
  const Peer& peer = at(request.peer);
  size_t rail = peer.rail;
  if (peer.rails != nullptr) {
    const size_t path = peer.rails->fastest(request.bytes);
    rail = path < peer.paths.size() ? peer.paths[path].rail : peer.paths[0].rail;
  }
  const bool idle = !protocol->has_control() && !protocol->has_messages() && set_.rails[rail]->is_idle(request.peer);
  Result<bool> posted = protocol->post_send(request);
  if (!posted.ok()) return protocol_error(request.peer, posted.error());
  // A message that may go and has nothing before it is sent now; everything else at the next progress().
  if (posted.value() && idle && protocol->sending()) {
    const Result<bool> written = set_.rails[rail]->write(request.peer);
    if (!written.ok()) return fail(written.error());
  }
  return posted;
}

Result<bool> RailTransport::post_recv(RecvRequest& request) {
  // Messages that a rank sent before it left are still valid.
  PeerProtocol* const early = at(request.peer).protocol.get();
  const bool here = !closed_ && !error_ && early != nullptr && early->has_early(request.tag);
  PeerProtocol* const protocol = here ? early : TRY(reach(request.peer));
  Result<bool> posted = protocol->post_recv(request);
  if (!posted.ok()) return protocol_error(request.peer, posted.error());
  return posted;
}

void RailTransport::release(RecvRequest& request) {
  if (PeerProtocol* const protocol = at(request.peer).protocol.get()) protocol->release(request);
}

// ---- events

RailPeer RailTransport::peer(size_t rail, int32_t rank) const {
  const Peer& at = this->at(rank);
  const auto leads_here = [rail](const RailPath& path) { return path.rail == rail; };
  if (!at.paths.empty() && std::none_of(at.paths.begin(), at.paths.end(), leads_here)) {
    RailPeer none;  // the peer may know this rail's address, but the two ranks do not use the rail
    none.unsettled = true;
    return none;
  }
  if (at.protocol == nullptr) return {};
  const PeerProtocol& protocol = *at.protocol;
  const size_t path = at.path_of(rail);
  RailPeer all;
  all.has_output = at.rails != nullptr ? at.rails->has_output(path) : protocol.has_output();
  all.sending = protocol.sending();
  all.awaited = protocol.awaiting() || (at.rails != nullptr && !at.rails->all_arrived());
  all.expects_large = protocol.large_expected();
  all.left = protocol.peer_left(path);
  all.goodbye_answered = protocol.goodbye_answered(path);
  all.in_order = at.rails != nullptr;
  all.unsettled = at.rails != nullptr && at.rails->unsettled(path);
  return all;
}

// A rank that has heard of a peer over one rail makes its own attempts over the others: the peer's may fail.
void RailTransport::connected(size_t rail, int32_t rank) {
  Peer& peer = at(rank);
  const bool first = peer.protocol == nullptr;
  protocol_of(rank);
  if (peer.rails == nullptr) return peer.record->connected(now());
  peer.rails->connected(peer.path_of(rail), now());
  for (const RailPath& path : peer.paths) {
    if (first && !closed_ && path.rail != rail) (void)set_.rails[path.rail]->reach(rank);
  }
}

bool RailTransport::next_control(size_t rail, int32_t rank, Frame& header) {
  PeerProtocol& protocol = protocol_of(rank);
  Peer& peer = at(rank);
  if (peer.rails != nullptr) return peer.rails->next_control(peer.path_of(rail), header, now());
  return protocol.next_control(header) || protocol.next_goodbye(0, header);
}

Result<std::span<const Piece>> RailTransport::begin(size_t rail, int32_t rank, const Frame& header) {
  PeerProtocol& protocol = protocol_of(rank);
  Peer& peer = at(rank);
  const std::span<const Piece> payload =
      TRY(peer.rails != nullptr ? peer.rails->begin(peer.path_of(rail), header, now()) : protocol.begin(header));
  if (has_payload(header.type)) peer.incoming = header.length;
  if (header.type == FrameType::kGoodbye) TRY(check_gone(rank));
  return payload;
}

// The peer said goodbye. That is an error only if a message with it is open.
Status RailTransport::check_left(int32_t rank) {
  const PeerProtocol& protocol = protocol_of(rank);
  if (closed_ || (!protocol.awaiting() && !protocol.sending())) return {};
  return Error{Code::kRemoteError, "has left the communicator while messages with it were open"};
}

bool RailTransport::nothing_up(const Peer& peer) const {
  for (size_t path = 0; path < peer.rails->count(); ++path) {
    if (peer.rails->is_up(path)) return false;
  }
  return true;
}

// Over each rail acknowledgements come before the goodbye. So a goodbye counts only when no rail can bring more.
bool RailTransport::said_on_all(const Peer& peer) const {
  if (peer.rails == nullptr || nothing_up(peer)) return true;
  for (size_t path = 0; path < peer.rails->count(); ++path) {
    const bool open = peer.rails->is_up(path) || peer.rails->unsettled(path);
    if (open && !peer.protocol->peer_left(path)) return false;
  }
  return true;
}

// To be called after a goodbye, and when a rail has ended after one.
Status RailTransport::check_gone(int32_t rank) {
  Peer& peer = at(rank);
  if (!peer.has_left() || !said_on_all(peer)) return {};
  TRY(check_left(rank));
  if (peer.rails != nullptr && nothing_up(peer)) peer.left = true;
  return {};
}

// A rank that dies while this one closes must not keep the others from getting their goodbyes.
Status RailTransport::ended(size_t rail, int32_t rank) {
  Peer& peer = at(rank);
  const std::string how = "closed its " + kind_ + " connection without a goodbye: it failed or was killed";
  if (peer.rails == nullptr) {
    if (!protocol_of(rank).peer_left()) {
      peer.record->lost(RailState::kDown, "the other side has closed the connection", now());
      if (!closed_) return Error{Code::kRemoteError, how};
    } else {
      peer.record->down("the other rank has left in order", now());
      TRY(check_left(rank));
    }
    peer.left = true;
    return {};
  }
  const size_t path = peer.path_of(rail);
  if (peer.protocol->peer_left(path)) {
    peer.rails->closed(path, now());
  } else if (const bool others = peer.rails->lost(path, "the other side has closed the connection", now());
             !others && !peer.has_left() && !closed_) {
    return Error{Code::kRemoteError, how + " (" + peer.rails->story(now()) + ")"};
  }
  return check_gone(rank);
}

Status RailTransport::lost(size_t rail, int32_t rank, const Error& why) {
  Peer& peer = at(rank);
  if (peer.rails == nullptr) {
    protocol_of(rank);
    peer.record->lost(RailState::kDown, why.message, now());
    if (!closed_) return why;
    peer.left = true;
    return {};
  }
  const bool others = peer.rails->lost(peer.path_of(rail), why.message, now());
  if (!others && !peer.has_left() && !closed_) return gone(rank);
  const Status left = check_gone(rank);
  return left.ok() ? left : protocol_error(rank, left.error());
}

}  // namespace trestle
