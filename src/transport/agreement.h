// Agreement: checks that all ranks run the same operation under the same number.
//
// Owned by a rank's engine, used by it and by the rank's transports under the progress lock. Every message carries a
// check of the operation that its sender runs (MessageTag::check). The engine announces an operation's check when it
// starts the operation. Transports report every message when it arrives, even if no request is posted for it. All later
// checks of an operation are compared with the first one, whichever rank it came from. So the order of starts does not
// matter, and two peers that differ are found before this rank starts. A rank without data of its own agrees with any
// place; the others must agree among themselves.
//
// Bounded: it remembers kRemembered operations. An operation whose slot a newer one has taken, or another captured
// call, is no longer compared; there is never a false alarm. Point-to-point messages (highest bit of the number) are
// not compared here: their numbers count per pair, and their two ends run different operations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rank_names.h"
#include "base/types.h"
#include "memory/place.h"
#include "transport/transport.h"

namespace trestle {

// The check of an operation. The same calls and schedules have the same check on every host. From its lowest bit on:
//
//   collective 8 | half 1 | type 5 | place 2 | operator 8   the call, in a form that an error message can name
//   hash 24                  of everything else that all ranks share: count, root, schedule
//
// Every message carries these 48 bits, and they cost nothing: the header over tcp needs no more bytes, the line of a
// descriptor in shared memory keeps 20 bytes for the smallest messages, and a stamp of the board holds the check beside
// the low bits of the operation's number. 64 bits would lengthen all three only for a longer hash, and a hash of 24
// bits misses only one mistake in 16 million.
constexpr uint64_t operation_check(Collective collective, bool half, DataType type, ReduceOp op, uint64_t hash,
                                   DataPlace place = DataPlace::kHost) {
  return static_cast<uint64_t>(collective) | static_cast<uint64_t>(half) << 8 | static_cast<uint64_t>(type) << 9 |
         static_cast<uint64_t>(place) << 14 | static_cast<uint64_t>(op) << 16 | (hash >> 40) << 24;
}
// Of a message between two ranks: its ends are different calls, and only their places must go together.
constexpr uint64_t message_check(DataPlace place) {
  return static_cast<uint64_t>(place) << 14;
}
static_assert(kCollectives <= 256 && kDataTypes <= 32 && kAllReduceOps <= 256 && kCheckBits == 48);

// "rank 2 runs operation 17 as broadcast of float (hash 0a1b2c), rank 0 as allreduce of float, sum (hash 3d4e5f)"
struct OperationRun {
  std::string rank;  // its name
  uint64_t operation = 0;
  uint64_t check = 0;
};
std::string disagreement(const OperationRun& theirs, const OperationRun& ours);

// "rank 1 (b) sends 4096 bytes to rank 0 (a), which expects 2048, in operation 17": kInvalidUsage, for a rank that
// finds that the two ends of a message differ in size (sizes_differ). `bytes` are those of the segment at either end.
// If the places of their data differ, the sentence is that of different_places().
Error different_sizes(const std::string& sender, const std::string& receiver, const MessageTag& sent,
                      uint64_t sent_bytes, const MessageTag& expected, uint64_t expected_bytes);

// Whether the data of the two ends of a message lies in places that do not go together. A transport whose views are the
// sender's memory must look before it touches that: memory of a device is not for the host, and the other way round.
bool places_differ(const MessageTag& sent, const MessageTag& expected);
// Whether the data of that end lies in memory of a device.
bool is_on_device(const MessageTag& tag);
// "rank 1 (b) sends data in device memory to rank 0 (a), which expects data in host memory, in message 3 between them":
// kInvalidUsage.
Error different_places(const std::string& sender, const std::string& receiver, const MessageTag& sent,
                       const MessageTag& expected);

class Agreement {
 public:
  static constexpr uint64_t kRemembered = 256;  // operations

  // names: of the ranks, for error messages; ranks without a name are called by their numbers.
  Agreement(int32_t rank, const RankNames& names);

  // This rank starts an operation. False: another rank runs it differently; error() names that rank and the difference.
  bool announce(uint64_t operation, uint64_t check) { return same(rank_, operation, check); }
  // A message of the peer has arrived. False: the peer runs the operation differently from the first known rank.
  bool heard(int32_t peer, const MessageTag& tag) {
    const Told& first = first_[slot_of(tag.operation)];
    if (first.operation == tag.operation && first.check == tag.check) return true;
    return same(peer, tag.operation, tag.check);
  }
  // After a false: kInvalidUsage.
  Error error() const { return {Code::kInvalidUsage, sentence_}; }
  // Records a difference that another part has found; returns its error.
  Error found(const OperationRun& theirs, const OperationRun& ours) {
    sentence_ = disagreement(theirs, ours);
    return error();
  }
  // Whether a difference was found.
  bool broken() const { return !sentence_.empty(); }
  std::string name(int32_t rank) const;
  int32_t rank() const { return rank_; }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Told {
    uint64_t operation = kNone;
    uint64_t check = 0;
    int32_t rank = 0;
  };
  // Replays of different captures begin in different slots.
  static constexpr size_t slot_of(uint64_t operation) {
    return static_cast<size_t>((operation ^ operation >> (kReplayBits - 3)) % kRemembered);
  }
  bool same(int32_t rank, uint64_t operation, uint64_t check);

  const int32_t rank_;
  const RankNames names_;
  std::array<Told, kRemembered> first_{};  // by slot: the first known check
  std::string sentence_;
};

}  // namespace trestle
