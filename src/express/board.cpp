#include "express/board.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"

namespace trestle {

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

Board::Board(const EndpointConfig& config)
    : rank_(config.rank), ranks_(config.ranks), config_(config), seen_(static_cast<size_t>(config.ranks)) {}

Board::~Board() = default;

Result<std::unique_ptr<Board>> Board::create(const EndpointConfig& config, bool one_process, const HostKin& kin) {
  std::unique_ptr<Board> board(new Board(config));
  if (one_process) {
    // Held from now on, so that every rank finds the same memory, whichever is first and whichever leaves early.
    board->process_memory_ = ProcessMemory::find_or_make(config.job, bytes_for(config.ranks));
    board->use_memory(board->process_memory_->begin);
  } else {
    TRY(board->make(kin));
  }
  return board;
}

void Board::use_memory(std::byte* memory) {
  static_assert(sizeof(Doorbells::Shared) % alignof(Row) == 0 && alignof(Row) % alignof(Doorbells::Place) == 0);
  attention_ = reinterpret_cast<Doorbells::Shared*>(memory);
  rows_ = reinterpret_cast<Row*>(memory + sizeof(Doorbells::Shared));
  places_ = reinterpret_cast<Doorbells::Place*>(rows_ + ranks_);
}

Status Board::make(const HostKin& kin) {
  if (rank_ == 0) {
    segment_ = TRY(Segment::create("trestle-board", bytes_for(ranks_), false));
    use_memory(segment_.data());
  }
  if (ranks_ == 1) return {};
  exchange_ = TRY(DescriptorExchange::open(kin, config_.job + "/board", rank_, "the board of small collectives"));
  return {};
}

Status Board::open(const std::vector<std::string>& addresses, int64_t deadline_ns, const ExchangeWatch& watch) {
  if (exchange_) TRY(share(addresses, deadline_ns, watch));
  exchange_.reset();
  segment_.close_fd();
  doorbells_ = TRY(Doorbells::open(*attention_, places_, rank_, ranks_));
  if (segment_) {
    LOG(kInfo, kShm, "shm: rank %d %s the board of small collectives, %zu bytes", rank_,
        rank_ == 0 ? "has opened" : "has mapped", segment_.bytes());
  }
  return {};
}

Status Board::share(const std::vector<std::string>& addresses, int64_t deadline_ns, const ExchangeWatch& watch) {
  DescriptorParcels parcels{{segment_.fd()}, std::vector<bool>(seen_.size()), std::vector<bool>(seen_.size())};
  if (rank_ == 0) parcels.to.assign(seen_.size(), true);
  parcels.to[0] = false;
  parcels.from[0] = rank_ != 0;
  auto got = TRY(exchange_->run(parcels, addresses, config_.peer_names, deadline_ns, watch));
  if (rank_ == 0) return {};
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (bytes_for(ranks_) + page - 1) / page * page;
  segment_ = TRY(Segment::adopt(std::move(got[0].front()), bytes, true));
  use_memory(segment_.data());
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
