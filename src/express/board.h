// Board: slots that all ranks of a communicator share, for collectives so small that a message would cost more than the
// data. The ranks are on one host (one memfd, made by rank 0 and passed to the others) or in one process (heap memory,
// found by the communicator's id).
//
// Each rank has kBoardSlots slots that only it writes: [sequence number, stamp and floor, payload]. Up to
// kBoardLineBytes of payload are in the cache line of the sequence number, so such an operation moves one line per pair
// of ranks. A stamp is kStampBits, and all ranks must give an operation the same one. A rank that finds another stamp
// in a peer's slot knows that the peer runs another operation there. Stamp and floor share a word: the floor is stored
// as its distance from the operation's number, which is at most kBoardSlots.
//
// Contract. Operations are numbered 0, 1, 2, ... in the same order on all ranks. A rank's floor is the number of
// operations that it has completed in order: it has read everything of operations 0 .. floor-1. Operation s uses slot s
// % kBoardSlots, which held operation s - kBoardSlots. So my_payload(s) may be written only when every peer's floor is
// at least s - kBoardSlots + 1. Then: write my_payload(s), publish(s, floor, stamp); for each peer wait for
// arrived(peer, s, stamp), read payload(peer, s); set_floor(s + 1) when all operations up to s are complete. A peer's
// payload stays unchanged until this rank's floor is above s.
//
// A rank that has polled for long enough sleeps until a peer writes (express/doorbells.h).
//
// Owned by a communicator. create() and open() on one thread; the rest under the rank's progress lock. Only open()
// blocks and, besides create(), can fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "express/doorbells.h"
#include "memory/segment.h"
#include "transport/shm/descriptor_exchange.h"
#include "transport/transport.h"

namespace trestle {

inline constexpr uint64_t kBoardSlots = 8;
inline constexpr size_t kBoardPayloadBytes = 8192;
inline constexpr size_t kBoardLineBytes = 48;
inline constexpr int kStampBits = 60;

class Board {
 public:
  enum class Arrival : uint8_t { kNotYet, kHere, kOther };

  // Rank 0 makes the memory; with `one_process` (all ranks are threads of this process) the first rank does. Uses rank,
  // ranks, job and peer_names of the configuration. kin: over which rank 0 gives it to the others.
  static Result<std::unique_ptr<Board>> create(const EndpointConfig& config, bool one_process, const HostKin& kin);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // The others pass it to open(); "": they need none.
  std::string address() const { return exchange_ ? exchange_->address() : ""; }
  // After all ranks have created theirs; all ranks call it, from threads or processes of their own. addresses: of all
  // ranks. Blocks until this rank has the memory, and rank 0 until all others have it, at most until `deadline_ns` of
  // the monotonic clock: kTimeout names the missing rank. Within one process it does not wait. While it waits it calls
  // `watch`.
  Status open(const std::vector<std::string>& addresses, int64_t deadline_ns, const ExchangeWatch& watch = {});

  // Of the memory that all ranks share: counted on rank 0, 0 on others. Any thread.
  uint64_t memory_bytes() const { return rank_ == 0 ? bytes_for(ranks_) : 0; }

  std::byte* my_payload(uint64_t sequence) { return mine(sequence)->payload; }
  void publish(uint64_t sequence, uint64_t floor, uint64_t stamp) {
    Slot* const slot = mine(sequence);
    slot->stamp_and_lead.store(stamp << kLeadBits | (sequence - floor), std::memory_order_relaxed);
    slot->number.store(sequence + 1, std::memory_order_release);
    doorbells_.wrote();
  }
  // Whether the peer has published this operation; then its payload can be read. kOther: with another stamp.
  Arrival arrived(int32_t peer, uint64_t sequence, uint64_t stamp) {
    const Slot* const slot = slot_of(peer, sequence);
    if (slot->number.load(std::memory_order_acquire) != sequence + 1) return Arrival::kNotYet;
    // The floor comes for free: it is in the line that was just fetched.
    const uint64_t word = slot->stamp_and_lead.load(std::memory_order_relaxed);
    const uint64_t floor = sequence - (word & kMostLead);
    if (floor > seen_[peer].arrived) seen_[peer].arrived = floor;
    return word >> kLeadBits == stamp ? Arrival::kHere : Arrival::kOther;
  }
  // Stamp of an operation that has arrived.
  uint64_t stamp(int32_t peer, uint64_t sequence) const {
    return slot_of(peer, sequence)->stamp_and_lead.load(std::memory_order_relaxed) >> kLeadBits;
  }
  const std::byte* payload(int32_t peer, uint64_t sequence) const { return slot_of(peer, sequence)->payload; }

  // At least the peer's floor at its last publish() that arrived here. A second call reads the floor of now.
  uint64_t floor(int32_t peer);
  void set_floor(uint64_t floor) {
    row(rank_)->floor.store(floor, std::memory_order_release);
    doorbells_.wrote_aside();
  }

  // After open(): for a rank that sleeps until a peer's publication arrives, or (Doorbells::kAnything) until a
  // publication or a floor does.
  Doorbells& doorbells() { return doorbells_; }

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> number;  // of the operation + 1; 0: never used
    // Low bits: the operation's number minus the rank's floor when it published.
    std::atomic<uint64_t> stamp_and_lead;
    std::byte payload[kBoardPayloadBytes];
  };
  static_assert(sizeof(Slot) % 64 == 0);
  static constexpr int kLeadBits = 64 - kStampBits;
  static constexpr uint64_t kMostLead = (1u << kLeadBits) - 1;
  static_assert(kBoardSlots <= kMostLead);
  // In a line of its own: the owner writes it after every operation, the others rarely read it.
  struct Row {
    alignas(64) std::atomic<uint64_t> floor;
    alignas(128) Slot slots[kBoardSlots];
  };
  struct Seen {
    uint64_t arrived = 0;
    uint64_t returned = 0;
  };
  struct ProcessMemory;
  static size_t bytes_for(int32_t ranks) {
    return sizeof(Doorbells::Shared) + (sizeof(Row) + sizeof(Doorbells::Place)) * static_cast<size_t>(ranks);
  }
  void use_memory(std::byte* memory);

  explicit Board(const EndpointConfig& config);
  Row* row(int32_t rank) const { return rows_ + rank; }
  Slot* mine(uint64_t sequence) { return &row(rank_)->slots[sequence % kBoardSlots]; }
  const Slot* slot_of(int32_t rank, uint64_t sequence) const { return &row(rank)->slots[sequence % kBoardSlots]; }
  Status make(const HostKin& kin);
  Status share(const std::vector<std::string>& addresses, int64_t deadline_ns, const ExchangeWatch& watch);

  const int32_t rank_;
  const int32_t ranks_;
  EndpointConfig config_;                         // used until open() is done
  std::unique_ptr<DescriptorExchange> exchange_;  // until it is open
  Segment segment_;
  std::shared_ptr<ProcessMemory> process_memory_;
  // In the shared memory, in this order; all zero at first.
  Doorbells::Shared* attention_ = nullptr;
  Row* rows_ = nullptr;
  Doorbells::Place* places_ = nullptr;
  Doorbells doorbells_;
  std::vector<Seen> seen_;
};

}  // namespace trestle
