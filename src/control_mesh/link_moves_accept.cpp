// Connections that peers make for links: strangers until they have proved who they are. They are the first of a link,
// or are judged.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <span>

#include "control_mesh/link_moves.h"

namespace trestle {
namespace {

constexpr size_t kMostStrangers = 64;

}  // namespace

void LinkMoves::accept_some(int64_t now_ns) {
  for (size_t rail = 0; rail < rails_->count(); ++rail) {
    if (admissions_[rail].pauses(now_ns)) continue;
    const Status taken = admissions_[rail].take(rails_->listener(rail), now_ns,
                                                [&](UniqueFd socket) { admit(rail, std::move(socket), now_ns); });
    if (taken.ok()) continue;
    if (accept_failure_.empty())
      LOG(kWarn, kBootstrap, "control: rank %d cannot accept a connection: %s", options_.rank,
          taken.error().message.c_str());
    accept_failure_ = taken.error().message;
  }
}

void LinkMoves::admit(size_t rail, UniqueFd socket, int64_t now_ns) {
  const auto last = find_stranger_to_drop(strangers_, kMostStrangers,
                                          [](const Stranger& one) { return claim_of(one.exchange.handshake()); });
  if (last != strangers_.end()) {
    refuse(*last, kNoRoomForStrangers);
    strangers_.erase(last);
  }
  const SocketAddress from = peer_address(socket.get());
  if (!watch(socket.get(), EPOLLIN)) return;
  const bool awaits =
      std::ranges::any_of(ends_, [](const End& end) { return !end.name.made && !end.name.out && !end.gone; });
  const auto first = awaits ? std::optional(Purpose::kControl) : std::nullopt;
  strangers_.push_back(
      {std::move(socket), from, rail, now_ns,
       HandshakeExchange(Role::kAcceptor, Purpose::kControlMove, rails_->credentials(), std::nullopt, first), ""});
  if (!drive_stranger(strangers_.back(), now_ns)) strangers_.pop_back();
}

// False: it is to be dropped. A rank that has proved itself for the first connection of a link gets all the time for
// the acknowledgement: it may count on this connection already. With other connections a peer that comes too late comes
// again: it does not count on one before this rank has taken it.
bool LinkMoves::drive_stranger(Stranger& stranger, int64_t now_ns) {
  const Result<bool> proved = stranger.exchange.step(stranger.socket.get());
  if (!proved.ok()) {
    refuse(stranger, proved.error().message);
    return false;
  }
  if (proved.value() && stranger.is_promised()) {
    seat(stranger);
    return false;
  }
  if (proved.value()) {
    const Result<bool> asked = read_move_record(stranger.socket.get(), stranger.ask);
    if (asked.ok() && asked.value()) judge(stranger, now_ns);
    if (!asked.ok() || asked.value()) return false;
  }
  if (now_ns - stranger.since_ns < options_.stranger_ns || stranger.is_promised()) return true;
  refuse(stranger, kStrangerIsLate);
  return false;
}

void LinkMoves::seat(Stranger& stranger) {
  const int32_t peer = stranger.exchange.handshake().peer_rank();
  for (size_t i = 0; i < ends_.size(); ++i) {
    const End& end = ends_[i];
    if (end.name.made || end.name.out || end.gone || end.name.peer != peer) continue;
    set_tcp_options(stranger.socket.get(), while_meeting(can_move(i)));
    return settle_first(i, std::move(stranger.socket));
  }
  refuse(stranger, "rank " + std::to_string(peer) + " is not a neighbour that is awaited");
}

// A rank that gives up may be counted on by peers whose acknowledgement is on its way, and by those that it has asked
// for a link. Closing a socket with unread bytes resets the connection, and a reset overtakes the bytes.
void LinkMoves::tell(const std::string& bytes) {
  const auto tell = [&](const UniqueFd& socket) {
    (void)send_bytes(socket.get(), std::as_bytes(std::span(bytes)));
    end_sending(socket.get());
    std::array<std::byte, 4096> ignored;
    for (Result<size_t> got = 1; got.ok() && got.value() > 0 && got.value() != kEndOfStream;)
      got = receive_bytes(socket.get(), ignored);
  };
  for (const Stranger& one : strangers_) {
    if (one.is_promised() && one.exchange.handshake().outgoing().empty()) tell(one.socket);
  }
  strangers_.clear();
  for (const End& end : ends_) {
    if (end.stage == Stage::kAnswer) tell(end.socket);
  }
}

// The peer calls a link from rank to rank + 2^step its out-link; here it is an in-link. The peer may have the first
// connection of an in-link that this rank still awaits: the acknowledgement was lost.
std::optional<size_t> LinkMoves::find(int32_t peer, const MoveRecord& ask) const {
  for (size_t i = 0; i < ends_.size(); ++i) {
    const End& end = ends_[i];
    const bool known = end.name.made || (!end.name.out && ask.came == 0);
    if (end.name.peer == peer && end.name.out != ask.out && end.name.step == ask.step && can_move(i) && known) return i;
  }
  return std::nullopt;
}

void LinkMoves::judge(Stranger& stranger, int64_t now_ns) {
  const int32_t peer = stranger.exchange.handshake().peer_rank();
  const auto ask = decode_move_record(stranger.ask);
  const auto link = ask && ask->kind == MoveRecord::Kind::kAsk ? find(peer, *ask) : std::nullopt;
  if (!link) return refuse(stranger, "it asks for no link of this rank");
  const End& end = ends_[*link];
  if (!end.gone && ask->number <= end.taken) return;  // an old attempt, which its maker has given up
  const bool yields = end.away && end.stage == Stage::kAnswer && options_.rank < peer;
  if (!end.gone && !yields) return take(*link, stranger, *ask, now_ns);
  MoveRecord answer;
  answer.kind = end.gone ? MoveRecord::Kind::kGone : MoveRecord::Kind::kYield;
  const std::string bytes = encode(answer);
  (void)send_bytes(stranger.socket.get(), std::as_bytes(std::span(bytes)));
  end_sending(stranger.socket.get());
}

void LinkMoves::take(size_t link, Stranger& stranger, const MoveRecord& ask, int64_t now_ns) {
  End& end = ends_[link];
  const std::string why = end.away ? end.why : "the other side has made a new connection";
  MoveRecord answer;
  answer.kind = MoveRecord::Kind::kTaken;
  answer.number = end.taken = std::max(ask.number, end.asked);
  answer.came = links_.part(link);
  const std::string bytes = encode(answer);
  const Result<size_t> sent = send_bytes(stranger.socket.get(), std::as_bytes(std::span(bytes)));
  if (!sent.ok() || sent.value() != bytes.size()) return begin(link, why, now_ns, now_ns);
  settle(link, std::move(stranger.socket), stranger.rail, ask.came, why);
}

// A rank of this job gives up its own connection when it takes one of its peer meanwhile, perhaps before it has sent a
// byte. So such an end is no warning.
void LinkMoves::refuse(const Stranger& stranger, const std::string& reason) {
  const bool maybe_ours = stranger.exchange.handshake().peer_rank() >= 0 || !stranger.exchange.heard();
  if (stranger.exchange.connection_lost() && maybe_ours)
    LOG(kTrace, kBootstrap, "control: a connection ended before its handshake: %s", reason.c_str());
  else if (refused_once_.first(format_host(stranger.from) + reason))
    LOG(kWarn, kBootstrap, "control: rank %d refused a connection from %s: %s", options_.rank,
        format_address(stranger.from).c_str(), reason.c_str());
}

}  // namespace trestle
