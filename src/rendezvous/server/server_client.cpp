// A rendezvous server's exchange of messages with one connection.
#include <poll.h>

#include <algorithm>
#include <array>

#include "base/text/byte_text.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/server/server_impl.h"

namespace trestle {
namespace {

constexpr size_t kMostRefusedShown = 8;

bool is_own(const JoinRequest& request) {
  return !request.lineage.empty() && request.lineage.front() == process_token();
}

}  // namespace

void RendezvousServer::serve(Client& client, short events, int64_t now) {
  const bool readable = (events & (POLLIN | POLLHUP | POLLERR)) != 0;
  if (client.is(Stage::kHandshake)) step_handshake(client, now);
  if (client.is(Stage::kRequest)) read_request(client, now);
  if (client.has_output()) write(client);
  if (client.is(Stage::kWaiting) && readable) return watch_waiting(client);
  if (client.is(Stage::kConnecting) && readable) return read_report(client, now);
  if (client.is(Stage::kClosing) && readable) {
    std::array<std::byte, 256> ignored;
    const Result<size_t> got = receive_bytes(client.socket.get(), ignored);
    if (!got.ok() || got.value() == kEndOfStream) client.stage = Stage::kClosed;
  }
}

void RendezvousServer::step_handshake(Client& client, int64_t now) {
  const Result<bool> done = client.exchange.step(client.socket.get());
  if (!done.ok()) return refuse(client, done.error().message);
  if (!done.value()) return;
  client.stage = Stage::kRequest;
  client.since_ns = now;
}

// Reads one message, with its length in front, into client.in. False: it is not complete yet.
Result<bool> RendezvousServer::read_message(Client& client) {
  std::array<std::byte, 1024> buffer;
  while (true) {
    ByteReader header(client.in);
    const size_t wanted = client.in.size() < 4 ? 4 : size_t{4} + header.integer<uint32_t>();
    if (wanted > kMaxJoinBytes) return Error{Code::kRemoteError, "its request is too long"};
    if (client.in.size() >= 4 && client.in.size() == wanted) return true;
    const size_t room = std::min(wanted - client.in.size(), buffer.size());
    const size_t got = TRY(receive_bytes(client.socket.get(), std::span(buffer).first(room)));
    if (got == kEndOfStream)
      return Error{Code::kRemoteError, "it closed the connection before it had asked for anything"};
    if (got == 0) return false;
    client.in.append(reinterpret_cast<const char*>(buffer.data()), got);
  }
}

void RendezvousServer::read_request(Client& client, int64_t now) {
  const Result<bool> whole = read_message(client);
  if (!whole.ok()) return refuse(client, whole.error().message);
  if (!whole.value()) return;
  const Result<JoinRequest> request = decode_join_request(std::string_view(client.in).substr(4));
  if (!request.ok()) return refuse(client, request.error().message);
  if (request.value().rank != client.exchange.handshake().peer_rank())
    return refuse(client, "it asks for another rank than it proved");
  client.in.clear();
  client.rank = request.value().rank;
  client.own = is_own(request.value());
  client.stage = Stage::kWaiting;
  client.since_ns = now;
  client.at = &gatherings_.seat(request.value(), format_address(client.from), client.own, now);
  make_room_for(client.at->board.nranks());
}

// A waiting rank sends only its reason to give up. Anything else that can be read is the end of its connection.
void RendezvousServer::watch_waiting(Client& client) {
  const Result<bool> whole = read_message(client);
  if (whole.ok() && !whole.value()) return;
  if (whole.ok()) {
    const Result<JoinReport> report = decode_join_report(std::string_view(client.in).substr(4));
    if (report.ok() && report.value().error.code != Code::kSuccess)
      client.at->board.leave(client.rank, report.value().error);
  }
  connection_lost(client);
}

// A rank that connects to its neighbours reports the result once. One whose connection ends without a report has died.
// All ranks that are still connecting are told so. Otherwise they would blame a rank that fails because of it.
void RendezvousServer::read_report(Client& client, int64_t now) {
  const Result<bool> whole = read_message(client);
  if (whole.ok() && !whole.value()) return;
  client.since_ns = now;
  if (!whole.ok()) {
    client.stage = Stage::kClosed;
    return client.at->board.leave(client.rank);
  }
  const Result<JoinReport> report = decode_join_report(std::string_view(client.in).substr(4));
  client.stage = report.ok() ? Stage::kClosing : Stage::kClosed;
  if (!report.ok()) return client.at->board.leave(client.rank);
  if (report.value().error.code != Code::kSuccess) client.at->board.leave(client.rank, report.value().error);
}

void RendezvousServer::send_answer(Client& client, const JoinAnswer& answer, bool last, int64_t now) {
  client.out += framed(encode(answer));
  client.last = last;
  client.stage = last ? Stage::kClosing : Stage::kConnecting;
  client.since_ns = now;
  write(client);
}

void RendezvousServer::write(Client& client) {
  while (client.has_output()) {
    const auto rest = std::as_bytes(std::span(client.out)).subspan(client.out_at);
    const Result<size_t> sent = send_bytes(client.socket.get(), rest);
    if (!sent.ok()) return connection_lost(client);
    if (sent.value() == 0) return;
    client.out_at += sent.value();
  }
  if (client.at != nullptr && !client.is(Stage::kWaiting)) client.at->no_longer_waits(client.rank);
  if (client.last) end_sending(client.socket.get());  // the rank reads it and then closes the connection
}

// The rank's connection has ended, or nothing can be sent to it.
void RendezvousServer::connection_lost(Client& client) {
  client.at->no_longer_waits(client.rank);
  if (!client.is(Stage::kClosing)) client.at->board.leave(client.rank);
  client.out.clear();
  client.out_at = 0;
  client.stage = Stage::kClosed;
}

void RendezvousServer::refuse(Client& client, const std::string& reason) {
  const std::string host = format_host(client.from);
  ++refused_;
  if (client.exchange.handshake().secret_differs()) {
    ++secret_refusals_;
    const std::string who = host + " (as rank " + std::to_string(client.exchange.handshake().peer_rank()) + ")";
    const bool known = std::find(secret_refused_.begin(), secret_refused_.end(), who) != secret_refused_.end();
    if (!known && secret_refused_.size() < kMostRefusedShown) secret_refused_.push_back(who);
  } else {
    last_refusal_ = reason;
  }
  client.stage = Stage::kClosed;
  if (!refused_once_.first(host + reason)) return;
  const std::string from = format_address(client.from);
  // Another job looks for a free port, which is no fault of either.
  if (client.exchange.handshake().job_differs()) {
    LOG(kInfo, kBootstrap, "the rendezvous refused a connection from %s: %s", from.c_str(), reason.c_str());
  } else {
    LOG(kWarn, kBootstrap, "the rendezvous refused a connection from %s: %s", from.c_str(), reason.c_str());
  }
}

}  // namespace trestle
