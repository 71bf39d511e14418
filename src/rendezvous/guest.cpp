// A rendezvous server's exchange of messages with one connection.
#include <poll.h>

#include <algorithm>
#include <array>

#include "control_mesh/byte_text.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/server_impl.h"

namespace trestle {
namespace {

constexpr size_t kMostRefusedShown = 8;

}  // namespace

void RendezvousServer::serve(Guest& guest, short events, int64_t now) {
  const bool readable = (events & (POLLIN | POLLHUP | POLLERR)) != 0;
  if (guest.is(Stage::kHandshake)) step_handshake(guest, now);
  if (guest.is(Stage::kRequest)) read_request(guest, now);
  if (guest.has_output()) write(guest);
  if (guest.is(Stage::kWaiting) && readable) return watch_waiting(guest);
  if (guest.is(Stage::kConnecting) && readable) return read_report(guest, now);
  if (guest.is(Stage::kLeaving) && readable) {
    std::array<std::byte, 256> ignored;
    const Result<size_t> got = receive_bytes(guest.socket.get(), ignored);
    if (!got.ok() || got.value() == kEndOfStream) guest.stage = Stage::kGone;
  }
}

void RendezvousServer::step_handshake(Guest& guest, int64_t now) {
  const Result<bool> done = guest.exchange.step(guest.socket.get());
  if (!done.ok()) return refuse(guest, done.error().message);
  if (!done.value()) return;
  guest.stage = Stage::kRequest;
  guest.since_ns = now;
}

// Reads one message, with its length in front, into guest.in. False: it is not complete yet.
Result<bool> RendezvousServer::read_message(Guest& guest) {
  std::array<std::byte, 1024> buffer;
  while (true) {
    ByteReader header(guest.in);
    const size_t wanted = guest.in.size() < 4 ? 4 : size_t{4} + header.integer<uint32_t>();
    if (wanted > kMaxJoinBytes) return Error{Code::kRemoteError, "its request is too long"};
    if (guest.in.size() >= 4 && guest.in.size() == wanted) return true;
    const size_t room = std::min(wanted - guest.in.size(), buffer.size());
    const size_t got = TRY(receive_bytes(guest.socket.get(), std::span(buffer).first(room)));
    if (got == kEndOfStream)
      return Error{Code::kRemoteError, "it closed the connection before it had asked for anything"};
    if (got == 0) return false;
    guest.in.append(reinterpret_cast<const char*>(buffer.data()), got);
  }
}

void RendezvousServer::read_request(Guest& guest, int64_t now) {
  const Result<bool> whole = read_message(guest);
  if (!whole.ok()) return refuse(guest, whole.error().message);
  if (!whole.value()) return;
  const Result<JoinRequest> request = decode_join_request(std::string_view(guest.in).substr(4));
  if (!request.ok()) return refuse(guest, request.error().message);
  if (request.value().rank != guest.exchange.handshake().peer_rank())
    return refuse(guest, "it asks for another rank than it proved");
  guest.in.clear();
  guest.rank = request.value().rank;
  guest.own = request.value().process == process_token();
  guest.stage = Stage::kWaiting;
  guest.since_ns = now;
  patience_ns_ = std::max(patience_ns_, request.value().time_left_ns > 0 ? request.value().time_left_ns : kNever);
  if (request.value().time_left_ns > 0)
    ranks_deadline_ns_ = std::min(ranks_deadline_ns_, now + std::min(request.value().time_left_ns, kNever / 2 - now));
  board_.arrive(request.value(), format_address(guest.from), guest.own);
}

// A waiting rank sends only the reason for which it gives up. Anything else that can be read is the end of its
// connection.
void RendezvousServer::watch_waiting(Guest& guest) {
  const Result<bool> whole = read_message(guest);
  if (whole.ok() && !whole.value()) return;
  if (whole.ok()) {
    const Result<JoinReport> report = decode_join_report(std::string_view(guest.in).substr(4));
    if (report.ok() && report.value().error.code != Code::kSuccess) board_.fail(report.value().error);
  }
  gone(guest);
}

// A rank that connects to its neighbours reports the result once. One whose connection ends without a report has died.
// All ranks that are still connecting are told so. Otherwise they would blame a rank that fails because of it.
void RendezvousServer::read_report(Guest& guest, int64_t now) {
  const Result<bool> whole = read_message(guest);
  if (whole.ok() && !whole.value()) return;
  guest.since_ns = now;
  if (!whole.ok()) {
    guest.stage = Stage::kGone;
    return board_.leave(guest.rank);
  }
  const Result<JoinReport> report = decode_join_report(std::string_view(guest.in).substr(4));
  guest.stage = report.ok() ? Stage::kLeaving : Stage::kGone;
  if (!report.ok()) return board_.leave(guest.rank);
  if (report.value().error.code != Code::kSuccess) board_.fail(report.value().error);
}

void RendezvousServer::say(Guest& guest, const JoinAnswer& answer, bool last, int64_t now) {
  guest.out += framed(encode(answer));
  guest.last = last;
  guest.stage = last ? Stage::kLeaving : Stage::kConnecting;
  guest.since_ns = now;
  write(guest);
}

void RendezvousServer::no_longer_waits(int32_t rank) {
  if (std::find(answered_.begin(), answered_.end(), rank) == answered_.end()) answered_.push_back(rank);
}

void RendezvousServer::write(Guest& guest) {
  while (guest.has_output()) {
    const auto rest = std::as_bytes(std::span(guest.out)).subspan(guest.out_at);
    const Result<size_t> sent = send_bytes(guest.socket.get(), rest);
    if (!sent.ok()) return gone(guest);
    if (sent.value() == 0) return;
    guest.out_at += sent.value();
  }
  no_longer_waits(guest.rank);
  if (guest.last) end_sending(guest.socket.get());  // the rank reads it and then closes the connection
}

// The rank's connection has ended, or nothing can be sent to it.
void RendezvousServer::gone(Guest& guest) {
  no_longer_waits(guest.rank);
  if (!guest.is(Stage::kLeaving)) board_.leave(guest.rank);
  guest.out.clear();
  guest.out_at = 0;
  guest.stage = Stage::kGone;
}

void RendezvousServer::refuse(Guest& guest, const std::string& reason) {
  const std::string host = format_host(guest.from);
  ++refused_;
  if (guest.exchange.handshake().secret_differs()) {
    ++secret_refusals_;
    const std::string who = host + " (as rank " + std::to_string(guest.exchange.handshake().peer_rank()) + ")";
    const bool known = std::find(secret_refused_.begin(), secret_refused_.end(), who) != secret_refused_.end();
    if (!known && secret_refused_.size() < kMostRefusedShown) secret_refused_.push_back(who);
  } else {
    last_refusal_ = reason;
  }
  if (refused_once_.first(host + reason))
    LOG(kWarn, kBootstrap, "the rendezvous refused a connection from %s: %s", format_address(guest.from).c_str(),
        reason.c_str());
  guest.stage = Stage::kGone;
}

}  // namespace trestle
