#include "transport/tcp/tcp.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/text/value_text.h"
#include "transport/message/rail_transport.h"
#include "transport/tcp/epoll_key.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

constexpr size_t kReadBufferBytes = 64 * 1024;
// Size of a read after a payload, or before a large one: room for the next headers. Bytes of the next payload that are
// read with it are copied once more.
constexpr size_t kHeaderReadBytes = 2 * 1024;
constexpr size_t kMostVectorsAtOnce = 2 * kMaxPieces;
// Limits per connection and progress(), so that no peer keeps the others waiting.
constexpr size_t kReadBudgetBytes = size_t{4} << 20;
constexpr int kWriteBudget = 8;  // system calls
// If this rank waits for at most this many peers, it tries their sockets directly and polls epoll only now and then.
// That saves one system call per message.
constexpr size_t kMostDirect = 2;
constexpr uint32_t kDirectPollEvery = 8;
constexpr uint32_t kIdlePollEvery = 32;
constexpr int kRailEventsAtOnce = 64;

AttemptContext context_of(const EndpointConfig& config, const TcpTransportOptions& options) {
  AttemptContext context;
  context.job = config.job;
  context.rank = config.rank;
  context.credentials = {config.secret, job_id(config.job), config.rank};
  context.options.congestion = options.congestion;
  context.options.unsent_bytes = static_cast<int>(std::min<uint64_t>(options.unsent_bytes, 1 << 30));
  return context;
}

size_t total(std::span<const iovec> vectors) {
  size_t bytes = 0;
  for (const iovec& vector : vectors) bytes += vector.iov_len;
  return bytes;
}

}  // namespace

Status tcp_probe() {
  return handshake_probe();
}

Result<std::unique_ptr<Transport>> make_tcp_transport(const EndpointConfig& config,
                                                      const TcpTransportOptions& options) {
  const auto look = [&]() -> Result<RailChoice> { return choose_tcp_rails(TRY(read_interfaces()), config, options); };
  return std::unique_ptr<Transport>(
      std::make_unique<RailTransport>(config, "tcp", TRY(make_tcp_rails(config, options, look))));
}

TcpRail::TcpRail(const EndpointConfig& config, const TcpTransportOptions& options, Listener listener, UniqueFd epoll,
                 const std::string& bound_to)
    : context_(context_of(config, options)),
      bound_to_(bound_to),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      address_(format_address(listener_.address)),
      peers_(config.ranks),
      vectors_(kMostVectorsAtOnce),
      read_buffer_(kReadBufferBytes) {}

Result<std::unique_ptr<TcpRail>> TcpRail::create(const EndpointConfig& config, const TcpTransportOptions& options,
                                                 Listener listener, const std::string& bound_to) {
  TRY(tcp_probe());
  UniqueFd epoll = UniqueFd::open([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll) return Error{Code::kSystemError, std::string("epoll_create: ") + std::strerror(errno)};
  std::unique_ptr<TcpRail> rail(new TcpRail(config, options, std::move(listener), std::move(epoll), bound_to));
  TRY(rail->watch(rail->listener_.fd.get(), epoll_key(EpollKind::kListener, 0)));
  if (bound_to.empty()) return rail;
  for (const HostInterface& here : TRY(read_interfaces())) {
    for (const InterfaceAddress& one : here.addresses) rail->hosts_here_.push_back(one.address);
  }
  return rail;
}

bool TcpRail::is_here(const SocketAddress& address) const {
  return std::find(hosts_here_.begin(), hosts_here_.end(), HostAddress(address)) != hosts_here_.end();
}

std::string TcpRail::fault() const {
  return bound_to_.empty() ? std::string() : interface_fault(bound_to_, listener_.address);
}

Status TcpRail::set_peers(const std::vector<std::string>& addresses) {
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    if (addresses[rank].empty() || static_cast<int32_t>(rank) == context_.rank) continue;
    peers_[rank].address = TRY(parse_address(addresses[rank]));
  }
  make_room();
  return {};
}

// Two descriptors per peer: two ranks may connect to each other at the same time.
void TcpRail::make_room() {
  const auto reachable = static_cast<size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.address.length != 0; }));
  room_ = DescriptorRoom(2 * reachable);
  if (!room_.shortage().empty())
    LOG(kWarn, kNet, "rank %d may not reach all of its %zu peers over tcp: %s", context_.rank, reachable,
        room_.shortage().c_str());
}

Error TcpRail::fail(Code code, std::string sentence) {
  if (!error_.has_value()) error_ = Error{code, std::move(sentence)};
  return *error_;
}

Status TcpRail::connection_lost(int32_t rank, const Error& error) {
  return lose(rank, Error{error.code, "tcp connection with " + name(rank) + ": " + error.message});
}

// `why` is a whole sentence.
Status TcpRail::lose(int32_t rank, const Error& why) {
  const Status lost = events_->lost(rank, why);
  if (!lost.ok()) return fail(lost.error().code, lost.error().message);
  drop(rank);
  return {};
}

void TcpRail::drop(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const SocketAddress address = peer.address;
  if (peer.fd) connected_.erase(std::remove(connected_.begin(), connected_.end(), rank), connected_.end());
  const auto promised = [rank](const Stranger& s) { return s.attempt->promised() && s.attempt->peer() == rank; };
  strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(), promised), strangers_.end());
  queue_.end(rank);
  peer = Peer();
  peer.address = address;
}

// Of the events, and of what the stream cannot read. Most of them continue the peer's name. Those about both ranks are
// whole sentences.
Error TcpRail::event_error(int32_t rank, const Error& error) {
  const bool whole = error.code == Code::kInvalidUsage;
  return fail(error.code, whole ? error.message : name(rank) + " " + error.message);
}

bool TcpRail::has_output(int32_t rank) const {
  const Peer& peer = peers_[rank];
  return (peer.stream != nullptr && peer.stream->has_output()) || events_->peer(rank).has_output;
}

bool TcpRail::is_idle(int32_t rank) const {
  const Peer& peer = peers_[rank];
  return peer.fd && peer.writable && !peer.stream->has_output();
}

bool TcpRail::should_poll() {
  if (poll_now_ || unsettled_ || !strangers_.empty() || accept_again_ || awaiting_ > kMostDirect) return true;
  return ++polls_skipped_ >= (awaiting_ > 0 ? kDirectPollEvery : kIdlePollEvery);
}

Result<bool> TcpRail::progress() {
  if (error_.has_value()) return *error_;
  if (closed_) return false;
  bool moved = should_poll() && TRY(poll_events());
  TRY(connect_those_in_line());
  const bool direct = awaiting_ <= kMostDirect;
  awaiting_ = 0;
  unsettled_ = false;
  for (size_t i = 0; i < connected_.size();) {
    const int32_t rank = connected_[i];
    moved = TRY(serve(rank, direct)) || moved;
    if (peers_[rank].fd) ++i;  // else it was removed from connected_
  }
  if (connected_.size() + 1 != peers_.size()) {
    for (const Peer& peer : peers_) unsettled_ = unsettled_ || (!peer.fd && (peer.attempt != nullptr || peer.yielded));
  }
  if (error_.has_value()) return *error_;
  return moved;
}

// Reads and writes what can move, and counts what is left. Queries of the events take much of a small message's time
// outside the kernel, so it makes few.
Result<bool> TcpRail::serve(int32_t rank, bool direct) {
  Peer& peer = peers_[rank];
  RailPeer wants = events_->peer(rank);
  bool moved = false;
  if (peer.readable || (direct && wants.awaited)) {
    moved = TRY(read_from(rank));
    if (!peer.fd) return true;
    if (moved && peer.unsent.looks_again()) look_at_unsent(rank);
    if (moved) wants = events_->peer(rank);
    // An acknowledgement must not wait for an edge: this may be the last round for long. Fragments must, or the next
    // acknowledgement would wait behind them.
    if (moved && wants.in_order && wants.has_output && !peer.writable) {
      TRY(write(rank, false));
      if (!peer.fd) return true;
      wants = events_->peer(rank);
    }
  }
  if (peer.writable && (wants.has_output || peer.stream->has_output())) {
    moved = TRY(write(rank)) || moved;
    if (!peer.fd) return true;
    wants = events_->peer(rank);
  }
  awaiting_ += wants.awaited ? 1 : 0;
  unsettled_ = unsettled_ || (!peer.writable && (wants.has_output || peer.stream->has_output()));
  return moved;
}

Result<bool> TcpRail::poll_events() {
  poll_now_ = false;
  polls_skipped_ = 0;
  epoll_event events[kRailEventsAtOnce];
  const int count = ::epoll_wait(epoll_.get(), events, kRailEventsAtOnce, 0);
  if (count == kRailEventsAtOnce) poll_now_ = true;
  bool accepting = accept_again_;
  for (int i = 0; i < count; ++i) {
    const uint32_t number = number_of(events[i].data.u64);
    switch (kind_of(events[i].data.u64)) {
      case EpollKind::kListener:
        accepting = true;
        break;
      case EpollKind::kTimer:
        break;
      case EpollKind::kStranger:
        drive_stranger(number);
        break;
      case EpollKind::kOutgoing:
        TRY(drive_outgoing(static_cast<int32_t>(number)));
        break;
      case EpollKind::kConnected: {
        Peer& peer = peers_[number];
        peer.readable = peer.readable || (events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0;
        peer.writable = peer.writable || (events[i].events & EPOLLOUT) != 0;
        peer.hangup = peer.hangup || (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        break;
      }
    }
  }
  if (accepting) accept_strangers();
  drop_late_strangers();
  return count > 0;
}

Result<bool> TcpRail::read_from(int32_t rank) {
  Peer& peer = peers_[rank];
  FrameStream& stream = *peer.stream;
  bool moved = false;
  for (size_t budget = kReadBudgetBytes;;) {
    size_t used = stream.target(std::span(vectors_).first(kMaxPieces));
    const size_t target = total(std::span(vectors_).first(used));
    const size_t behind = used > 0 || events_->peer(rank).expects_large ? kHeaderReadBytes : kReadBufferBytes;
    vectors_[used++] = {read_buffer_.data(), behind};
    Result<size_t> got = receive_vectors(peer.fd.get(), std::span(vectors_).first(used));
    if (!got.ok() && !events_->peer(rank).left) {
      TRY(connection_lost(rank, got.error()));
      return true;
    }
    if (!got.ok() || got.value() == kEndOfStream) {
      TRY(peer_ended(rank));
      return true;
    }
    const size_t direct = std::min(got.value(), target);
    Status status = stream.filled(direct, rank, *events_);
    if (status.ok()) status = stream.take(std::span(read_buffer_).first(got.value() - direct), rank, *events_);
    if (!status.ok()) return event_error(rank, status.error());
    moved = moved || got.value() > 0;
    // A short read: the socket is empty, and epoll reports when more arrives.
    peer.readable = got.value() > 0 && (got.value() == target + behind || peer.hangup);
    if (!peer.readable || got.value() >= budget) return moved;
    budget -= got.value();
  }
}

void TcpRail::limit_unsent(int32_t rank) {
  Peer& peer = peers_[rank];
  const uint64_t limit = peer.unsent.change(events_->hold_bytes(rank));
  if (limit != 0) set_unsent_limit(peer.fd.get(), limit);
}

void TcpRail::look_at_unsent(int32_t rank) {
  Peer& peer = peers_[rank];
  const int64_t now = monotonic_clock().now_ns();
  if (peer.unsent.wants_second_look(now)) peer.unsent.saw_again(sending_counts(peer.fd.get()), now);
}

Result<bool> TcpRail::write(int32_t rank) {
  if (peers_[rank].unsent.looks_again()) look_at_unsent(rank);
  limit_unsent(rank);
  return write(rank, true);
}

Result<bool> TcpRail::write(int32_t rank, bool fragments) {
  Peer& peer = peers_[rank];
  bool moved = false;
  for (int calls = 0; calls < kWriteBudget; ++calls) {
    const size_t used = peer.stream->fill_output(vectors_, rank, *events_, fragments);
    if (used == 0) break;
    const size_t wanted = total(std::span(vectors_).first(used));
    Result<size_t> sent = send_vectors(peer.fd.get(), std::span(vectors_).first(used));
    if (!sent.ok()) {
      // A goodbye may lie here unread, after other data.
      for (peer.readable = true; peer.readable && !events_->peer(rank).left;) TRY(read_from(rank));
      if (!peer.fd) return true;
      if (!events_->peer(rank).left) {
        TRY(connection_lost(rank, sent.error()));
        return true;
      }
      // The peer has said goodbye and closed. Our answer is lost, which does not matter unless a message is open.
      TRY(peer_ended(rank));
      return true;
    }
    peer.stream->wrote(sent.value(), rank, *events_);
    peer.unsent.wrote(sent.value());
    if (peer.unsent.wants_look()) peer.unsent.saw(sending_counts(peer.fd.get()), monotonic_clock().now_ns());
    moved = moved || sent.value() > 0;
    if (sent.value() < wanted) {
      peer.writable = false;
      break;
    }
  }
  return moved;
}

Status TcpRail::peer_ended(int32_t rank) {
  Peer& peer = peers_[rank];
  const Status ended = events_->ended(rank);
  if (!ended.ok()) return event_error(rank, ended.error());
  if (!events_->peer(rank).left) {  // other rails go on
    drop(rank);
    return {};
  }
  peer.left = true;
  peer.fd.reset();
  connected_.erase(std::remove(connected_.begin(), connected_.end(), rank), connected_.end());
  return {};
}

bool TcpRail::prepare_sleep() {
  poll_now_ = true;
  if (error_.has_value() || admission_.more_wait()) return false;
  for (const int32_t rank : connected_) {
    const Peer& peer = peers_[rank];
    if (peer.readable || (peer.writable && has_output(rank))) return false;
  }
  return arm_timer();
}

}  // namespace trestle
