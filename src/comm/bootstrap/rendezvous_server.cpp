#include "comm/bootstrap/rendezvous_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/bootstrap/byte_text.h"
#include "comm/bootstrap/rendezvous_board.h"

namespace trestle {
namespace {

constexpr int64_t kMs = 1'000'000;
// How long a failed rendezvous stays to tell those who come late.
constexpr int64_t kFailureStayNs = 60'000 * kMs;

class Server {
 public:
  Server(Listener listener, const RendezvousOptions& options)
      : listener_(std::move(listener)), options_(options), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void run();
  void stop() {
    stopped_.store(true);
    eventfd_write(wake_.get(), 1);
  }

 private:
  enum class Stage : uint8_t { kHandshake, kRequest, kWaiting, kAnswering, kLeaving, kGone };
  struct Guest {
    Guest(UniqueFd fd, const Credentials& credentials, int64_t now)
        : socket(std::move(fd)), handshake(Role::kAcceptor, Purpose::kRendezvous, credentials), since_ns(now) {}
    UniqueFd socket;
    Handshake handshake;
    Stage stage = Stage::kHandshake;
    int64_t since_ns;  // of the stage
    std::string from;
    std::string bytes;  // of the request
    std::string out;    // of the answer
    size_t out_at = 0;
    int32_t rank = -1;
  };

  void accept_guests(int64_t now);
  void serve(Guest& guest, short events, int64_t now);
  void shake(Guest& guest, int64_t now);
  void read_request(Guest& guest, int64_t now);
  void watch_waiting(Guest& guest);
  void answer_all(int64_t now);
  void write_answer(Guest& guest, int64_t now);
  void refuse(Guest& guest, const std::string& reason);
  void drop_late(int64_t now);
  int timeout_ms(int64_t now) const;
  bool finished(int64_t now) const;
  static short events_of(const Guest& guest);

  Listener listener_;
  const RendezvousOptions options_;
  UniqueFd wake_;
  std::atomic<bool> stopped_{false};
  std::list<Guest> guests_;
  RendezvousBoard board_;
  OncePerKey refused_once_;
  size_t refused_ = 0;
  std::string last_refusal_;
  int64_t ranks_deadline_ns_ = kNever;  // the earliest moment at which a waiting rank gives up
  int64_t failed_at_ns_ = kNever;
  std::vector<int32_t> answered_;
};

void Server::run() {
  while (!stopped_.load()) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.fd.get(), POLLIN, 0}};
    std::vector<Guest*> order;
    for (Guest& guest : guests_) {
      fds.push_back({guest.socket.get(), events_of(guest), 0});
      order.push_back(&guest);
    }
    if (::poll(fds.data(), fds.size(), timeout_ms(monotonic_clock().now_ns())) < 0) continue;
    const int64_t now = monotonic_clock().now_ns();
    for (size_t i = 0; i < order.size(); ++i) {
      if (fds[i + 2].revents != 0) serve(*order[i], fds[i + 2].revents, now);
    }
    if (fds[1].revents != 0) accept_guests(now);
    drop_late(now);
    if (!board_.decided() && now >= std::min(options_.deadline_ns, ranks_deadline_ns_))
      board_.time_over(refused_ == 0 ? ""
                                     : "; " + std::to_string(refused_) +
                                           " connections were refused, the last because " + last_refusal_);
    if (board_.failed() && failed_at_ns_ == kNever) failed_at_ns_ = now;
    if (board_.decided()) answer_all(now);
    guests_.remove_if([](const Guest& guest) { return guest.stage == Stage::kGone; });
    if (finished(now)) break;
  }
  // A forked child may hold a copy of the descriptor: the port must not look alive because of it.
  ::shutdown(listener_.fd.get(), SHUT_RDWR);
  listener_.fd.reset();
}

short Server::events_of(const Guest& guest) {
  if (guest.stage == Stage::kHandshake && guest.handshake.wanted() == 0) return POLLOUT;
  return guest.stage == Stage::kAnswering ? POLLOUT : POLLIN;
}

int Server::timeout_ms(int64_t now) const {
  int64_t due = std::min(options_.deadline_ns, ranks_deadline_ns_);
  if (board_.decided()) due = failed_at_ns_ == kNever ? kNever : failed_at_ns_ + kFailureStayNs;
  for (const Guest& guest : guests_) {
    if (guest.stage != Stage::kWaiting) due = std::min(due, guest.since_ns + options_.handshake_timeout_ns);
  }
  if (due == kNever) return -1;
  return static_cast<int>(std::clamp<int64_t>((due - now) / kMs + 1, 0, 60'000));
}

bool Server::finished(int64_t now) const {
  if (!board_.decided()) return false;
  const bool all_gone =
      std::none_of(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.rank >= 0; });
  const bool all_told = board_.nranks() > 0 && answered_.size() >= static_cast<size_t>(board_.nranks());
  if (all_told && all_gone) return true;
  // Nobody came at all: there is nobody to tell. Otherwise a failure stays for those who come late.
  if (board_.failed() && board_.nranks() == 0) return true;
  return board_.failed() && now >= failed_at_ns_ + kFailureStayNs && all_gone;
}

void Server::accept_guests(int64_t now) {
  while (true) {
    Result<UniqueFd> accepted = accept_connection(listener_.fd.get());
    if (!accepted.ok()) {
      // Out of descriptors: those that strangers hold are the ones that can be had back.
      LOG(kWarn, kBootstrap, "the rendezvous cannot accept a connection: %s", accepted.error().message.c_str());
      for (Guest& guest : guests_) {
        if (guest.rank < 0) guest.stage = Stage::kGone;
      }
      return;
    }
    if (!accepted.value()) return;
    const auto half_open = std::count_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.rank < 0; });
    if (static_cast<size_t>(half_open) >= kMaxHalfOpen) {
      const auto oldest = std::find_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.rank < 0; });
      guests_.erase(oldest);
    }
    guests_.emplace_back(std::move(accepted).value(), options_.credentials, now);
    Guest& guest = guests_.back();
    guest.from = format_address(peer_address(guest.socket.get()));
  }
}

void Server::serve(Guest& guest, short events, int64_t now) {
  if (guest.stage == Stage::kHandshake) shake(guest, now);
  if (guest.stage == Stage::kRequest) read_request(guest, now);
  if (guest.stage == Stage::kWaiting && (events & (POLLIN | POLLHUP | POLLERR)) != 0) watch_waiting(guest);
  if (guest.stage == Stage::kAnswering) write_answer(guest, now);
  if (guest.stage == Stage::kLeaving) {
    std::array<std::byte, 256> ignored;
    const Result<size_t> got = receive_bytes(guest.socket.get(), ignored);
    if (!got.ok() || got.value() == kEndOfStream) guest.stage = Stage::kGone;
  }
}

void Server::shake(Guest& guest, int64_t now) {
  std::array<std::byte, kHelloBytes> buffer;
  while (!guest.handshake.done()) {
    if (!guest.handshake.outgoing().empty()) {
      const Result<size_t> sent = send_bytes(guest.socket.get(), guest.handshake.outgoing());
      if (!sent.ok()) return refuse(guest, sent.error().message);
      if (sent.value() == 0) return;
      guest.handshake.sent(sent.value());
      continue;
    }
    const Result<size_t> got = receive_bytes(guest.socket.get(), std::span(buffer).first(guest.handshake.wanted()));
    if (!got.ok()) return refuse(guest, got.error().message);
    if (got.value() == kEndOfStream) return refuse(guest, "it closed the connection within the handshake");
    if (got.value() == 0) return;
    const Status status = guest.handshake.received(std::span(buffer).first(got.value()));
    if (!status.ok()) {
      if (!guest.handshake.outgoing().empty()) (void)send_bytes(guest.socket.get(), guest.handshake.outgoing());
      return refuse(guest, status.error().message);
    }
  }
  guest.stage = Stage::kRequest;
  guest.since_ns = now;
}

void Server::read_request(Guest& guest, int64_t now) {
  std::array<std::byte, 1024> buffer;
  while (true) {
    ByteReader header(guest.bytes);
    const size_t wanted = guest.bytes.size() < 4 ? 4 : size_t{4} + header.integer<uint32_t>();
    if (wanted > kMaxJoinBytes) return refuse(guest, "its request is too long");
    if (guest.bytes.size() >= 4 && guest.bytes.size() == wanted) break;
    const size_t room = std::min(wanted - guest.bytes.size(), buffer.size());
    const Result<size_t> got = receive_bytes(guest.socket.get(), std::span(buffer).first(room));
    if (!got.ok()) return refuse(guest, got.error().message);
    if (got.value() == kEndOfStream) return refuse(guest, "it closed the connection before it had asked for anything");
    if (got.value() == 0) return;
    guest.bytes.append(reinterpret_cast<const char*>(buffer.data()), got.value());
  }
  const Result<JoinRequest> request = decode_join_request(std::string_view(guest.bytes).substr(4));
  if (!request.ok()) return refuse(guest, request.error().message);
  if (request.value().rank != guest.handshake.peer_rank())
    return refuse(guest, "it asks for another rank than it proved");
  guest.rank = request.value().rank;
  guest.stage = Stage::kWaiting;
  guest.since_ns = now;
  if (request.value().time_left_ns > 0)
    ranks_deadline_ns_ = std::min(ranks_deadline_ns_, now + request.value().time_left_ns);
  board_.arrive(request.value(), guest.from);
}

// A waiting rank says nothing: whatever can be read is its end.
void Server::watch_waiting(Guest& guest) {
  std::array<std::byte, 16> buffer;
  const Result<size_t> got = receive_bytes(guest.socket.get(), buffer);
  if (got.ok() && got.value() == 0) return;
  guest.stage = Stage::kGone;
  if (!board_.decided()) board_.leave(guest.rank);
}

// Rank 0 last: mostly it is of this process, which may end as soon as it has its answer.
void Server::answer_all(int64_t now) {
  std::vector<Guest*> waiting;
  for (Guest& guest : guests_) {
    if (guest.stage == Stage::kWaiting) waiting.push_back(&guest);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Guest* a, const Guest* b) { return a->rank > b->rank; });
  for (Guest* guest : waiting) {
    guest->out = framed(encode(board_.answer_for(guest->rank)));
    guest->stage = Stage::kAnswering;
    guest->since_ns = now;
    write_answer(*guest, now);
  }
}

void Server::write_answer(Guest& guest, int64_t now) {
  while (guest.out_at < guest.out.size()) {
    const auto rest = std::as_bytes(std::span(guest.out)).subspan(guest.out_at);
    const Result<size_t> sent = send_bytes(guest.socket.get(), rest);
    if (!sent.ok()) {
      guest.stage = Stage::kGone;
      break;
    }
    if (sent.value() == 0) return;
    guest.out_at += sent.value();
  }
  if (std::find(answered_.begin(), answered_.end(), guest.rank) == answered_.end()) answered_.push_back(guest.rank);
  if (guest.stage == Stage::kGone) return;
  end_sending(guest.socket.get());
  guest.stage = Stage::kLeaving;  // until the rank has read it and ends the connection
  guest.since_ns = now;
}

void Server::refuse(Guest& guest, const std::string& reason) {
  ++refused_;
  last_refusal_ = reason;
  const std::string host = guest.from.substr(0, guest.from.rfind(':'));
  if (refused_once_.first(host + reason))
    LOG(kWarn, kBootstrap, "the rendezvous refused a connection from %s: %s", guest.from.c_str(), reason.c_str());
  guest.stage = Stage::kGone;
}

void Server::drop_late(int64_t now) {
  for (Guest& guest : guests_) {
    if (guest.stage == Stage::kWaiting || guest.stage == Stage::kGone) continue;
    if (now - guest.since_ns < options_.handshake_timeout_ns) continue;
    if (guest.rank < 0)
      refuse(guest, "it did not prove itself in time");
    else
      guest.stage = Stage::kGone;
  }
}

// The servers of this process and their threads.
class Registry {
 public:
  ~Registry() {
    const bool forked = owner_ != getpid();
    for (Entry& entry : entries_) {
      if (forked) {
        entry.thread.detach();  // it runs in the parent only
        (void)entry.server.release();
      } else {
        entry.server->stop();
        entry.thread.join();
      }
    }
  }

  Status add(std::unique_ptr<Server> server) {
    const std::lock_guard lock(mutex_);
    reap();
    entries_.emplace_back(std::move(server));
    Entry& entry = entries_.back();
    auto thread = Thread::start([&entry] {
      entry.server->run();
      entry.done.store(true, std::memory_order_release);
    });
    if (!thread.ok()) {
      entries_.pop_back();
      return std::move(thread).error();
    }
    entry.thread = std::move(thread).value();
    return {};
  }

  size_t running() {
    const std::lock_guard lock(mutex_);
    reap();
    return entries_.size();
  }

 private:
  struct Entry {
    explicit Entry(std::unique_ptr<Server> made) : server(std::move(made)) {}
    std::unique_ptr<Server> server;
    Thread thread;
    std::atomic<bool> done{false};
  };

  void reap() {
    if (owner_ != getpid()) {  // after a fork
      for (Entry& entry : entries_) {
        entry.thread.detach();
        (void)entry.server.release();
      }
      entries_.clear();
      owner_ = getpid();
    }
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!entry->done.load(std::memory_order_acquire)) {
        ++entry;
        continue;
      }
      entry->thread.join();
      entry = entries_.erase(entry);
    }
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
  pid_t owner_ = getpid();
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

Status start_rendezvous(Listener listener, const RendezvousOptions& options) {
  return registry().add(std::make_unique<Server>(std::move(listener), options));
}

size_t running_rendezvous() {
  return registry().running();
}

}  // namespace trestle
