// Connections that neighbours make: strangers until they have proved who they are. They are the first of a link, or
// take the place of one that was lost.
#include <algorithm>

#include "rendezvous/neighbours_impl.h"
#include "transport/auth/strangers.h"

namespace trestle {
namespace {

constexpr size_t kMostStrangers = 64;

}  // namespace

void NeighbourConnector::accept_some(int64_t now) {
  for (const RailListener& at : meeting_.listeners) {
    if (admission_.pauses(now)) return;
    const Status taken = admission_.take(at.listener.fd.get(), now, [&](UniqueFd fd) { admit(std::move(fd), now); });
    if (taken.ok()) continue;
    if (accept_failure_.empty())
      LOG(kWarn, kBootstrap, "rank %d cannot accept a connection: %s", config_.rank, taken.error().message.c_str());
    accept_failure_ = taken.error().message;
  }
}

void NeighbourConnector::admit(UniqueFd socket, int64_t now) {
  const auto last =
      find_stranger_to_drop(strangers_, kMostStrangers, [](const Stranger& one) { return claim_of(one.handshake()); });
  if (last != strangers_.end()) {
    refuse(*last, kNoRoomForStrangers);
    strangers_.erase(last);
  }
  const SocketAddress from = peer_address(socket.get());
  set_tcp_options(socket.get(), while_meeting(Link()));
  strangers_.push_back(
      {std::move(socket), from, now,
       HandshakeExchange(Role::kAcceptor, Purpose::kControl, credentials(), std::nullopt, Purpose::kControlMove), ""});
  if (!drive_stranger(strangers_.back(), now)) strangers_.pop_back();
}

// False: it is to be dropped. A rank that has proved itself for the first connection of a link gets more time for the
// acknowledgement: it may count on this connection already. On a connection that moves a link, no rank counts before
// the other one has taken it.
bool NeighbourConnector::drive_stranger(Stranger& stranger, int64_t now) {
  const Result<bool> proved = stranger.exchange.step(stranger.socket.get());
  if (!proved.ok()) {
    refuse(stranger, proved.error().message);
    return false;
  }
  const bool moves = stranger.handshake().purpose() == Purpose::kControlMove;
  if (proved.value() && !moves) {
    seat(stranger);
    return false;
  }
  if (proved.value()) {
    const Result<bool> asked = read_move_record(stranger.socket.get(), stranger.ask);
    if (asked.ok() && asked.value()) judge(stranger, now);
    if (!asked.ok() || asked.value()) return false;
  }
  const bool late = now - stranger.since_ns >= config_.handshake_timeout_ns;
  if (!late || (stranger.handshake().peer_proved() && !moves)) return true;
  refuse(stranger, kStrangerIsLate);
  return false;
}

NeighbourConnector::Link* NeighbourConnector::find(int32_t peer, bool out, uint8_t step) {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const Link& link) {
    return link.peer == peer && link.out == out && link.step == step;
  });
  return found == links_.end() ? nullptr : &*found;
}

void NeighbourConnector::seat(Stranger& stranger) {
  const int32_t peer = stranger.handshake().peer_rank();
  for (Link& link : links_) {
    if (link.out || link.peer != peer || link.stage != Stage::kAwaited) continue;
    link.socket = std::move(stranger.socket);
    link.made = true;
    link.stage = Stage::kDone;
    return;
  }
  refuse(stranger, "rank " + std::to_string(peer) + " is not a neighbour that is awaited");
}

// As LinkMoves::judge(). The peer calls a link from rank to rank + 2^step its out-link; here it is an in-link. This
// rank may still await the first connection of an in-link that the peer has already: the acknowledgement was lost.
void NeighbourConnector::judge(Stranger& stranger, int64_t now) {
  const int32_t peer = stranger.handshake().peer_rank();
  const auto ask = decode_move_record(stranger.ask);
  const bool sane = ask && ask->kind == MoveRecord::Kind::kAsk && ask->came == 0;
  Link* const link = sane ? find(peer, !ask->out, ask->step) : nullptr;
  const bool known = link != nullptr && link->moves && (link->made || link->stage == Stage::kAwaited);
  if (!known) return refuse(stranger, "it asks for no link of this rank");
  if (ask->number <= link->taken) return;  // an old attempt, which its maker has given up
  if (link->stage != Stage::kAnswer || config_.rank > peer) return take(*link, stranger, ask->number, now);
  MoveRecord answer;
  answer.kind = MoveRecord::Kind::kYield;
  const std::string bytes = encode(answer);
  (void)send_bytes(stranger.socket.get(), std::as_bytes(std::span(bytes)));
  end_sending(stranger.socket.get());
}

// No frame of the peer has been read: it sends again what it has sent.
void NeighbourConnector::take(Link& link, Stranger& stranger, uint32_t number, int64_t now) {
  MoveRecord answer;
  answer.kind = MoveRecord::Kind::kTaken;
  answer.number = link.taken = std::max(number, link.asked);
  link.made = true;
  const std::string bytes = encode(answer);
  const Result<size_t> sent = send_bytes(stranger.socket.get(), std::as_bytes(std::span(bytes)));
  if (!sent.ok() || sent.value() != bytes.size()) return lose(link, "the new one takes no data", now);
  drop_attempt(link);
  link.socket = std::move(stranger.socket);
  link.stage = Stage::kDone;
  LOG(kInfo, kBootstrap, "control: %s has made its connection with rank %d anew", meeting_.name(link.peer).c_str(),
      config_.rank);
}

void NeighbourConnector::refuse(const Stranger& stranger, const std::string& reason) {
  if (stranger.handshake().peer_proved() && !stranger.handshake().done())
    LOG(kInfo, kBootstrap, "rank %d: rank %d gave up before it was connected: %s", config_.rank,
        stranger.handshake().peer_rank(), reason.c_str());
  else if (refused_once_.first(format_host(stranger.from) + reason))
    LOG(kWarn, kBootstrap, "rank %d refused a connection from %s: %s", config_.rank,
        format_address(stranger.from).c_str(), reason.c_str());
}

}  // namespace trestle
