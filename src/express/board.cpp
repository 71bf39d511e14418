#include "express/board.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"
#include "transport/shm/sockets.h"
#include "transport/socket/socket.h"

namespace trestle {

namespace {

Credentials credentials(const EndpointConfig& config) {
  return {config.secret, job_id(config.job + "/board"), config.rank};
}

// Waits until one of the sockets or the watch has an event, at most a second.
Status wait_for(int32_t rank, std::vector<pollfd>& sockets, int64_t deadline_ns, const BoardWatch& watch) {
  constexpr int64_t kMostMs = 1000;
  if (watch.awaits) watch.awaits(rank);
  if (watch.look) TRY(watch.look());
  const int64_t left_ns = deadline_ns - monotonic_clock().now_ns();
  if (left_ns <= 0) return Error{Code::kTimeout, "the deadline passed"};
  if (watch.fd >= 0) sockets.push_back({watch.fd, POLLIN, 0});
  (void)::poll(sockets.data(), sockets.size(), static_cast<int>(std::min(left_ns / 1'000'000 + 1, kMostMs)));
  return {};
}

}  // namespace

// Memory of a communicator whose ranks are threads of this process. It is found by the communicator's id while any of
// its boards exists.
struct Board::ProcessMemory {
  explicit ProcessMemory(size_t bytes) : begin(static_cast<std::byte*>(::operator new(bytes, kAlignment))) {
    std::memset(begin, 0, bytes);
  }
  ~ProcessMemory() { ::operator delete(begin, kAlignment); }
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;
  static constexpr std::align_val_t kAlignment{alignof(Row)};
  std::byte* const begin;

  struct All {
    Mutex mutex;
    std::map<std::string, std::weak_ptr<ProcessMemory>> boards TRESTLE_GUARDED_BY(mutex);
  };
  static std::shared_ptr<ProcessMemory> find_or_make(const std::string& job, size_t bytes) {
    static constinit PerProcess<All> process;
    All& all = process.get();
    const MutexLock lock(all.mutex);
    std::erase_if(all.boards, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<ProcessMemory>& place = all.boards[job];
    std::shared_ptr<ProcessMemory> memory = place.lock();
    if (memory == nullptr) {
      memory = std::make_shared<ProcessMemory>(bytes);
      place = memory;
    }
    return memory;
  }
};

// A connection of a rank that wants the memory, or of a stranger.
struct Board::PendingPeer {
  PendingPeer(UniqueFd socket, const Credentials& credentials)
      : fd(std::move(socket)), exchange(Role::kAcceptor, Purpose::kShm, credentials) {}
  UniqueFd fd;
  HandshakeExchange exchange;
};

// What rank 0 keeps until all ranks have the memory.
struct Board::Serving {
  explicit Serving(int32_t ranks) : has(static_cast<size_t>(ranks), false) { has[0] = true; }
  bool done() const { return std::find(has.begin(), has.end(), false) == has.end(); }
  int32_t first_missing() const { return static_cast<int32_t>(std::find(has.begin(), has.end(), false) - has.begin()); }
  void warn_once(const std::string& reason) {
    if (warned.first(reason)) LOG(kWarn, kShm, "board: a connection was refused: %s", reason.c_str());
  }
  std::list<PendingPeer> pending;  // oldest first
  std::vector<bool> has;           // the ranks that have the memory
  Admission admission;
  OncePerKey warned;
};

Board::Board(const EndpointConfig& config)
    : rank_(config.rank), ranks_(config.ranks), config_(config), seen_(static_cast<size_t>(config.ranks)) {}

Board::~Board() = default;

std::string Board::name(int32_t rank) const {
  const auto i = static_cast<size_t>(rank);
  const bool known = i < config_.peer_names.size() && !config_.peer_names[i].empty();
  return known ? config_.peer_names[i] : "rank " + std::to_string(rank);
}

Result<std::unique_ptr<Board>> Board::create(const EndpointConfig& config, bool one_process) {
  std::unique_ptr<Board> board(new Board(config));
  if (one_process) {
    // Held from now on, so that every rank finds the same memory, whichever is first and whichever leaves early.
    board->process_memory_ = ProcessMemory::find_or_make(config.job, bytes_for(config.ranks));
    board->use_memory(board->process_memory_->begin);
  } else if (config.rank == 0) {
    TRY(board->make());
  }
  return board;
}

void Board::use_memory(std::byte* memory) {
  static_assert(sizeof(Doorbells::Shared) % alignof(Row) == 0 && alignof(Row) % alignof(Doorbells::Place) == 0);
  attention_ = reinterpret_cast<Doorbells::Shared*>(memory);
  rows_ = reinterpret_cast<Row*>(memory + sizeof(Doorbells::Shared));
  places_ = reinterpret_cast<Doorbells::Place*>(rows_ + ranks_);
}

Status Board::make() {
  segment_ = TRY(Segment::create("trestle-board", bytes_for(ranks_), false));
  use_memory(segment_.data());
  if (ranks_ == 1) return {};
  address_ = fresh_unix_name("trestle-board", config_.job, rank_);
  listener_ = TRY(listen_unix(address_));
  return {};
}

Status Board::open(const std::string& rank0_address, int64_t deadline_ns, const BoardWatch& watch) {
  if (process_memory_ == nullptr && ranks_ > 1) {
    TRY(rank_ == 0 ? serve(deadline_ns, watch) : fetch(rank0_address, deadline_ns, watch));
  }
  listener_.reset();
  segment_.close_fd();
  doorbells_ = TRY(Doorbells::open(*attention_, places_, rank_, ranks_));
  if (segment_) {
    LOG(kInfo, kShm, "shm: rank %d %s the board of small collectives, %zu bytes", rank_,
        rank_ == 0 ? "has opened" : "has mapped", segment_.bytes());
  }
  return {};
}

Status Board::fetch(const std::string& address, int64_t deadline_ns, const BoardWatch& watch) {
  UniqueFd fd;
  while (!fd) {
    Result<UniqueFd> connected = connect_unix(address);
    if (!connected.ok()) return Error{connected.error().code, name(0) + ": " + connected.error().message};
    fd = std::move(connected).value();
    if (fd) break;
    if (monotonic_clock().now_ns() >= deadline_ns) {
      return Error{Code::kTimeout, name(0) + " did not take the connection for the board of small collectives in time"};
    }
    if (watch.look) TRY(watch.look());
    ::sched_yield();  // the listener's queue is full, and no event tells when it is not
  }
  if (!peer_has_same_user(fd.get())) {
    return Error{Code::kRemoteError, "the process that listens for " + name(0) + " belongs to another user"};
  }
  const auto wait = [&](short event) -> Status {
    std::vector<pollfd> sockets{{fd.get(), event, 0}};
    Status waited = wait_for(0, sockets, deadline_ns, watch);
    if (waited.ok() || waited.error().code != Code::kTimeout || monotonic_clock().now_ns() < deadline_ns) return waited;
    return Error{Code::kTimeout, name(0) + " did not hand out the board of small collectives in time"};
  };
  HandshakeExchange exchange(Role::kInitiator, Purpose::kShm, credentials(config_), 0);
  while (true) {
    const Result<bool> done = exchange.step(fd.get());
    if (!done.ok()) return Error{done.error().code, name(0) + ": " + done.error().message};
    if (done.value()) break;
    TRY(wait(exchange.awaited_event()));
  }
  std::vector<UniqueFd> descriptors;
  std::byte note{};
  while (true) {
    const Result<size_t> got = receive_with_descriptors(fd.get(), std::span(&note, 1), descriptors);
    if (!got.ok() || got.value() == kEndOfStream)
      return Error{Code::kRemoteError, name(0) + " closed the connection for the board"};
    if (got.value() != 0) break;
    TRY(wait(POLLIN));
  }
  if (descriptors.empty()) return Error{Code::kRemoteError, name(0) + " sent no memory for the board"};
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (bytes_for(ranks_) + page - 1) / page * page;
  segment_ = TRY(Segment::adopt(std::move(descriptors.front()), bytes, true));
  use_memory(segment_.data());
  return {};
}

Status Board::serve(int64_t deadline_ns, const BoardWatch& watch) {
  Serving serving(ranks_);
  while (!serving.done()) {
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (const PendingPeer& peer : serving.pending)
      watched.push_back({peer.fd.get(), peer.exchange.awaited_event(), 0});
    const int32_t missing = serving.first_missing();
    const Status waited = wait_for(missing, watched, deadline_ns, watch);
    if (!waited.ok() && monotonic_clock().now_ns() >= deadline_ns) {
      return Error{Code::kTimeout, name(missing) + " did not come for the board of small collectives in time"};
    }
    TRY(waited);
    TRY(step_pending(serving));
    Status admitted;
    TRY(serving.admission.take(listener_.get(), monotonic_clock().now_ns(), [&](UniqueFd fd) {
      if (admitted.ok()) admitted = admit(serving, std::move(fd));
    }));
    TRY(admitted);
  }
  return {};
}

Status Board::admit(Serving& serving, UniqueFd fd) const {
  if (!peer_has_same_user(fd.get())) {
    serving.warn_once("it belongs to a process of another user");
    return {};
  }
  const auto last = find_stranger_to_drop(serving.pending, static_cast<size_t>(ranks_) + kMoreStrangers,
                                          [](const PendingPeer& p) { return claim_of(p.exchange.handshake()); });
  if (last != serving.pending.end()) {
    serving.warn_once(kNoRoomForStrangers);
    serving.pending.erase(last);
  }
  PendingPeer& peer = serving.pending.emplace_back(std::move(fd), credentials(config_));
  if (TRY(step(serving, peer))) serving.pending.pop_back();
  return {};
}

// True when the connection is over: it has the memory, or was refused.
Result<bool> Board::step(Serving& serving, PendingPeer& peer) const {
  const Result<bool> done = peer.exchange.step(peer.fd.get());
  if (done.ok() && !done.value()) return false;
  if (done.ok()) TRY(hand_out(peer, serving.has));
  if (!done.ok()) serving.warn_once(done.error().message);
  return true;
}

Status Board::step_pending(Serving& serving) const {
  for (auto peer = serving.pending.begin(); peer != serving.pending.end();) {
    peer = TRY(step(serving, *peer)) ? serving.pending.erase(peer) : std::next(peer);
  }
  return {};
}

Status Board::hand_out(const PendingPeer& pending, std::vector<bool>& has) const {
  const int32_t peer = pending.exchange.handshake().peer_rank();
  if (peer <= 0 || peer >= ranks_ || has[static_cast<size_t>(peer)]) return {};
  const std::byte note{1};
  const int fd = segment_.fd();
  const auto sent = send_with_descriptors(pending.fd.get(), std::span(&note, 1), std::span(&fd, 1));
  if (!sent.ok())
    return Error{sent.error().code,
                 name(peer) + " could not be given the board of small collectives: " + sent.error().message};
  has[static_cast<size_t>(peer)] = true;
  return {};
}

// Reading the peer's row costs a cache line, while publish() has brought its floor along. So the row is read only when
// that floor was returned before.
uint64_t Board::floor(int32_t peer) {
  Seen& seen = seen_[static_cast<size_t>(peer)];
  if (seen.arrived <= seen.returned) {
    seen.arrived = std::max(seen.arrived, row(peer)->floor.load(std::memory_order_acquire));
  }
  seen.returned = std::max(seen.returned, seen.arrived);
  return seen.returned;
}

}  // namespace trestle
