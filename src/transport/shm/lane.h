// A lane: the shared memory through which one rank (its owner, the producer) sends to one other (the consumer).
//
//   control segment: header | ring of descriptors | small slots        made at the pair's first message
//   data segment:    big slots                                         made with the first large message
//
// The ring carries 64-byte descriptors in order; the consumer always drains it. Data lies in slots, which the consumer
// gives back in any order. So a message without a receive holds its slots and nothing else. Some slots of each kind are
// kept for messages whose receiver is waiting (`solicited`). So no message ever waits behind another.
//
// Words that both sides touch: a descriptor's sequence number (producer), `consumed` and `given_back` (consumer),
// `owner_asleep` (owner). Publishing and giving back are sequentially consistent stores followed by a look at the other
// side's `asleep` word. A rank that goes to sleep sets that word and then looks again. So one of the two sees the
// other. Nothing that the other process wrote is trusted beyond its own lane: sizes and numbers are checked where they
// are read. Each class is used by one thread at a time, under the rank's progress lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "memory/segment.h"
#include "transport/transport.h"

namespace trestle {

enum class DescriptorKind : uint8_t {
  kInline = 1,      // whole message in `extra`; uses small slot extra_slot only as a count
  kSmall = 2,       // whole message in small slot extra_slot
  kData = 3,        // the next slots.count big slots of a message, all full except the message's last
  kAsk = 4,         // the message waits for kClear
  kMapped = 5,      // whole message in the sender's memory: extra is a MappedPiece
  kMappedList = 6,  // whole message in the sender's memory: slots.count MappedPieces in small slot extra_slot
  kClear = 7,       // to the sender of `tag`: the receive is posted
  kRead = 8,        // to the sender of `tag`: the mapped memory was read
  kForget = 9,      // extra.mapped.id was freed
  kNotice = 10,     // only states what its sender runs
  kDivided = 11,    // whole message in two outboxes: extra is a DividedPlace
};

inline constexpr size_t kInlineBytes = 20;
inline constexpr size_t kSlotsPerDescriptor = 20;
inline constexpr size_t kMostSlots = 64;
// Descriptor::flags
inline constexpr uint8_t kSolicited = 1;
inline constexpr uint8_t kWholeInRing = 2;  // in the ring only: phase and message hold MessageTag::whole

struct MappedPiece {
  uint64_t id = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A message whose beginning lies in the sender's outbox, and its end in the sender's outbox of host memory.
struct DividedPlace {
  uint64_t first_bytes = 0;
  uint32_t first_unit = 0;  // in units of Outbox::kUnitBytes
  uint32_t second_unit = 0;
};

// Of kRead, where a device has read the message: how long before, for both parts of memory (ReadTimes).
struct ReadAges {
  uint32_t device_ns = kUnknown;
  uint32_t host_ns = kUnknown;
  static constexpr uint32_t kUnknown = UINT32_MAX;
};

struct Descriptor {
  DescriptorKind kind{};
  uint8_t count = 0;
  uint8_t flags = 0;
  uint8_t extra_slot = 0;
  uint64_t bytes = 0;  // of the whole message
  MessageTag tag;
  union {
    std::array<std::byte, kInlineBytes> data;
    std::array<uint8_t, kSlotsPerDescriptor> slots;
    MappedPiece mapped;  // its `bytes` are the message's
    DividedPlace divided;
    ReadAges ages;
  } extra{};
};
static_assert(sizeof(DividedPlace) <= kInlineBytes && sizeof(ReadAges) <= kInlineBytes);

// A descriptor as it lies in the ring: one cache line. A sequence number of 16 bits and a check of 48 leave 20 bytes
// for the smallest messages.
struct DescriptorLine {
  uint16_t sequence;  // atomic; low bits of position + 1: the descriptor that was here before has others
  uint16_t check_high;
  DescriptorKind kind;
  uint8_t count;
  uint8_t flags;
  uint8_t extra_slot;
  uint64_t bytes;
  uint64_t operation;
  uint64_t offset;
  uint32_t phase;
  uint32_t message;
  uint32_t check_low;
  std::array<std::byte, kInlineBytes> extra;
};
static_assert(sizeof(DescriptorLine) == 64 && kSlotsPerDescriptor == kInlineBytes && kInlineBytes >= 16);

// The sizes of a lane, stated by its owner; constant.
struct LaneShape {
  uint32_t descriptors = 128;  // a power of two
  uint32_t small_slots = 32;
  uint32_t small_bytes = 4096;
  uint32_t big_slots = 16;
  uint32_t big_bytes = 64 * 1024;

  size_t control_bytes() const;
  size_t data_bytes() const { return size_t{big_slots} * big_bytes; }
  bool sane() const;
};
inline constexpr uint32_t kMostRingDescriptors = 4096;
static_assert(kMostRingDescriptors <= UINT16_MAX, "a sequence number tells a lap of the ring from the one before");

// The more ranks, the smaller the lanes, so that a rank that talks to all others needs only a few MiB.
LaneShape lane_shape(int32_t ranks);

struct LaneHeader {
  alignas(64) LaneShape shape;
  alignas(64) std::atomic<uint64_t> consumed;
  alignas(64) std::atomic<uint32_t> owner_asleep;
  // How often each slot was given back, modulo 256. The owner knows how often it handed the slot out.
  alignas(64) std::array<std::atomic<uint8_t>, kMostSlots> small_given_back;
  alignas(64) std::array<std::atomic<uint8_t>, kMostSlots> big_given_back;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint8_t>::is_always_lock_free);

// The producer's view of one kind of slots.
class SlotPool {
 public:
  void start(uint32_t slots, std::atomic<uint8_t>* given_back);
  uint32_t total() const { return total_; }
  // Kept for solicited messages.
  uint32_t reserve() const { return (total_ + 3) / 4; }
  // Number of free slots. Checks which slots came back only if fewer than `enough` are known to be free.
  uint32_t available(uint32_t enough);
  uint32_t take();  // the free slot with the lowest number; there must be one

 private:
  uint32_t total_ = 0;
  uint64_t free_ = 0;  // bits
  std::atomic<uint8_t>* given_back_ = nullptr;
  std::array<uint8_t, kMostSlots> handed_out_{};
};

class OutLane {
 public:
  Status create(const LaneShape& shape);
  Status create_data();
  explicit operator bool() const { return static_cast<bool>(control_); }
  bool has_data() const { return static_cast<bool>(data_); }
  const LaneShape& shape() const { return shape_; }
  Segment& control() { return control_; }
  Segment& data() { return data_; }
  SlotPool& small() { return small_; }
  SlotPool& big() { return big_; }
  std::byte* small_slot(uint32_t slot);
  std::byte* big_slot(uint32_t slot) { return data_.data() + size_t{slot} * shape_.big_bytes; }

  // A lower bound of the free descriptors; exact when fewer than `enough`.
  uint32_t room(uint32_t enough);
  // There must be room. The caller then wakes the consumer if it sleeps.
  void push(const Descriptor& descriptor);
  void set_asleep(bool asleep);

 private:
  DescriptorLine* ring();
  LaneHeader* header() { return reinterpret_cast<LaneHeader*>(control_.data()); }

  LaneShape shape_;
  Segment control_;
  Segment data_;
  SlotPool small_;
  SlotPool big_;
  uint64_t produced_ = 0;
  uint64_t consumed_ = 0;  // as last seen
};

class InLane {
 public:
  // Errors are kRemoteError: the peer sent no valid lane.
  Status adopt(UniqueFd control, size_t bytes);
  Status adopt_data(UniqueFd data, size_t bytes);
  explicit operator bool() const { return static_cast<bool>(control_); }
  bool has_data() const { return static_cast<bool>(data_); }
  const LaneShape& shape() const { return shape_; }
  const std::byte* small_slot(uint32_t slot) const;
  const std::byte* big_slot(uint32_t slot) const { return data_.data() + size_t{slot} * shape_.big_bytes; }

  // The next descriptor, if there is one. It is copied, so that its writer cannot change it while it is examined.
  bool peek(Descriptor& descriptor) const;
  bool waiting() const;
  void advance();
  void give_back_small(uint32_t slot) { give_back(header()->small_given_back[slot]); }
  void give_back_big(uint32_t slot) { give_back(header()->big_given_back[slot]); }
  // True once for every time that the owner announced its sleep: then wake it.
  bool take_asleep();

 private:
  const DescriptorLine* ring() const;
  LaneHeader* header() const { return reinterpret_cast<LaneHeader*>(control_.data()); }
  static void give_back(std::atomic<uint8_t>& word);

  LaneShape shape_;
  Segment control_;
  Segment data_;
  uint64_t position_ = 0;
  uint64_t told_ = 0;  // `consumed` as last written
};

}  // namespace trestle
