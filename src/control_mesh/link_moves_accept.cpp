// Connections that peers make for links: strangers until they have proved who they are, then judged.
#include <sys/epoll.h>

#include <algorithm>
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
    if (!taken.ok() && refused_once_.first(taken.error().message))
      LOG(kWarn, kBootstrap, "control: rank %d cannot accept a connection: %s", options_.rank,
          taken.error().message.c_str());
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
  strangers_.push_back({std::move(socket), from, rail, now_ns,
                        HandshakeExchange(Role::kAcceptor, Purpose::kControlMove, rails_->credentials()), ""});
  if (!drive_stranger(strangers_.back(), now_ns)) strangers_.pop_back();
}

// False: it is to be dropped. A peer that comes too late comes again: it does not count on a connection before this
// rank has taken it.
bool LinkMoves::drive_stranger(Stranger& stranger, int64_t now_ns) {
  const Result<bool> proved = stranger.exchange.step(stranger.socket.get());
  if (!proved.ok()) {
    refuse(stranger, proved.error().message);
    return false;
  }
  if (proved.value()) {
    const Result<bool> asked = read_move_record(stranger.socket.get(), stranger.ask);
    if (asked.ok() && asked.value()) judge(stranger, now_ns);
    if (!asked.ok() || asked.value()) return false;
  }
  if (now_ns - stranger.since_ns < kStrangerNs) return true;
  refuse(stranger, kStrangerIsLate);
  return false;
}

// The peer calls a link from rank to rank + 2^step its out-link; here it is an in-link.
std::optional<size_t> LinkMoves::find(int32_t peer, const MoveRecord& ask) const {
  for (size_t i = 0; i < ends_.size(); ++i) {
    const End& end = ends_[i];
    if (end.name.peer == peer && end.name.out != ask.out && end.name.step == ask.step && can_move(i)) return i;
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
