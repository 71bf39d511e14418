#include "transport/shm/lane.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace trestle {

namespace {

constexpr uint32_t kDescriptorsPerNote = 16;  // how often the consumer publishes its position

// The sequence number of a descriptor in shared memory: its only word that both sides touch at the same time.
std::atomic_ref<uint16_t> sequence_of(DescriptorLine& line) {
  return std::atomic_ref<uint16_t>(line.sequence);
}
static_assert(std::atomic_ref<uint16_t>::is_always_lock_free);

size_t slots_offset(const LaneShape& shape) {
  const size_t end = sizeof(LaneHeader) + size_t{shape.descriptors} * sizeof(DescriptorLine);
  return (end + 4095) / 4096 * 4096;
}

}  // namespace

size_t LaneShape::control_bytes() const {
  return slots_offset(*this) + size_t{small_slots} * small_bytes;
}

bool LaneShape::sane() const {
  const auto between = [](uint32_t value, uint32_t low, uint32_t high) { return value >= low && value <= high; };
  return std::has_single_bit(descriptors) && between(descriptors, 64, kMostRingDescriptors) &&
         between(small_slots, 4, kMostSlots) && between(big_slots, 4, kMostSlots) &&
         between(small_bytes, 1024, 1 << 20) && small_bytes % 64 == 0 && between(big_bytes, 4096, 16 << 20) &&
         big_bytes % 4096 == 0;
}

LaneShape lane_shape(int32_t ranks) {
  constexpr size_t kDataBytesPerRank = size_t{2560} * 1024;
  LaneShape shape;
  const size_t peers = static_cast<size_t>(std::max(ranks - 1, 1));
  if (ranks > 16) {
    shape.small_slots = 16;
    shape.small_bytes = 2048;
  }
  const size_t share = kDataBytesPerRank / peers;
  shape.big_bytes = share >= (size_t{1} << 20) ? 64 * 1024 : 32 * 1024;
  shape.big_slots = static_cast<uint32_t>(std::clamp<size_t>(share / shape.big_bytes, 4, 16));
  return shape;
}

void SlotPool::start(uint32_t slots, std::atomic<uint8_t>* given_back) {
  total_ = slots;
  free_ = slots == 64 ? ~uint64_t{0} : (uint64_t{1} << slots) - 1;
  given_back_ = given_back;
}

uint32_t SlotPool::available(uint32_t enough) {
  const auto known = static_cast<uint32_t>(std::popcount(free_));
  if (known >= enough) return known;
  for (uint32_t slot = 0; slot < total_; ++slot) {
    const uint64_t bit = uint64_t{1} << slot;
    if ((free_ & bit) == 0 && given_back_[slot].load(std::memory_order_seq_cst) == handed_out_[slot]) free_ |= bit;
  }
  return static_cast<uint32_t>(std::popcount(free_));
}

uint32_t SlotPool::take() {
  CHECK(free_ != 0, "a slot was taken where none is free");
  const auto slot = static_cast<uint32_t>(std::countr_zero(free_));
  free_ &= free_ - 1;
  ++handed_out_[slot];
  return slot;
}

Status OutLane::create(const LaneShape& shape) {
  CHECK(shape.sane(), "a lane's shape is out of its limits");
  shape_ = shape;
  control_ = TRY(Segment::create("trestle-lane", shape.control_bytes(), false));
  LaneHeader* const made = new (control_.data()) LaneHeader{};
  made->shape = shape;
  small_.start(shape.small_slots, made->small_given_back.data());
  big_.start(shape.big_slots, made->big_given_back.data());
  return {};
}

Status OutLane::create_data() {
  data_ = TRY(Segment::create("trestle-data", shape_.data_bytes(), false));
  return {};
}

std::byte* OutLane::small_slot(uint32_t slot) {
  return control_.data() + slots_offset(shape_) + size_t{slot} * shape_.small_bytes;
}

DescriptorLine* OutLane::ring() {
  return reinterpret_cast<DescriptorLine*>(control_.data() + sizeof(LaneHeader));
}

uint32_t OutLane::room(uint32_t enough) {
  const auto known = static_cast<uint32_t>(shape_.descriptors - (produced_ - consumed_));
  if (known >= enough) return known;
  const uint64_t told = header()->consumed.load(std::memory_order_seq_cst);
  // A consumer that reports a wrong position only harms its own messages.
  if (told <= produced_ && told >= consumed_) consumed_ = told;
  return static_cast<uint32_t>(shape_.descriptors - (produced_ - consumed_));
}

void OutLane::push(const Descriptor& descriptor) {
  DescriptorLine& place = ring()[produced_ & (shape_.descriptors - 1)];
  const auto sequence = static_cast<uint16_t>(++produced_);
  place.kind = descriptor.kind;
  place.count = descriptor.count;
  const uint64_t whole = descriptor.tag.whole;
  CHECK(whole == 0 || (descriptor.tag.phase == 0 && descriptor.tag.message == 0),
        "a message of many says how long all of it is");
  place.flags = whole != 0 ? descriptor.flags | kWholeInRing : descriptor.flags;
  place.extra_slot = descriptor.extra_slot;
  place.bytes = descriptor.bytes;
  place.operation = descriptor.tag.operation;
  place.offset = descriptor.tag.offset;
  place.phase = whole != 0 ? static_cast<uint32_t>(whole >> 32) : descriptor.tag.phase;
  place.message = whole != 0 ? static_cast<uint32_t>(whole) : descriptor.tag.message;
  place.check_low = static_cast<uint32_t>(descriptor.tag.check);
  place.check_high = static_cast<uint16_t>(descriptor.tag.check >> 32);
  std::memcpy(place.extra.data(), &descriptor.extra, place.extra.size());
  // An exchange, because the following look at the consumer's `asleep` word must not be reordered before it.
  sequence_of(place).exchange(sequence, std::memory_order_seq_cst);
}

void OutLane::set_asleep(bool asleep) {
  header()->owner_asleep.exchange(asleep ? 1 : 0, std::memory_order_seq_cst);
}

Status InLane::adopt(UniqueFd control, size_t bytes) {
  if (bytes < sizeof(LaneHeader)) return Error{Code::kRemoteError, "sent a lane that is too short"};
  Segment segment = TRY(Segment::adopt(std::move(control), bytes, true));
  const LaneShape shape = reinterpret_cast<const LaneHeader*>(segment.data())->shape;
  if (!shape.sane() || shape.control_bytes() > bytes)
    return Error{Code::kRemoteError, "sent a lane of an unknown shape"};
  segment.close_fd();
  shape_ = shape;
  control_ = std::move(segment);
  return {};
}

Status InLane::adopt_data(UniqueFd data, size_t bytes) {
  if (!*this || bytes < shape_.data_bytes()) return Error{Code::kRemoteError, "sent a data area that is too short"};
  Segment segment = TRY(Segment::adopt(std::move(data), bytes, false));
  segment.close_fd();
  data_ = std::move(segment);
  return {};
}

const std::byte* InLane::small_slot(uint32_t slot) const {
  return control_.data() + slots_offset(shape_) + size_t{slot} * shape_.small_bytes;
}

const DescriptorLine* InLane::ring() const {
  return reinterpret_cast<const DescriptorLine*>(control_.data() + sizeof(LaneHeader));
}

bool InLane::waiting() const {
  auto& place = const_cast<DescriptorLine&>(ring()[position_ & (shape_.descriptors - 1)]);
  return sequence_of(place).load(std::memory_order_seq_cst) == static_cast<uint16_t>(position_ + 1);
}

bool InLane::peek(Descriptor& descriptor) const {
  if (!waiting()) return false;
  const DescriptorLine& place = ring()[position_ & (shape_.descriptors - 1)];
  descriptor.kind = place.kind;
  descriptor.count = place.count;
  descriptor.flags = place.flags & ~kWholeInRing;
  descriptor.extra_slot = place.extra_slot;
  descriptor.bytes = place.bytes;
  const uint64_t check = uint64_t{place.check_high} << 32 | place.check_low;
  descriptor.tag = {place.operation, place.phase, place.message, place.offset, check};
  if ((place.flags & kWholeInRing) != 0) {
    descriptor.tag.whole = uint64_t{place.phase} << 32 | place.message;
    descriptor.tag.phase = descriptor.tag.message = 0;
  }
  std::memcpy(&descriptor.extra, place.extra.data(), place.extra.size());
  return true;
}

void InLane::advance() {
  ++position_;
  if (position_ - told_ >= kDescriptorsPerNote) {
    told_ = position_;
    header()->consumed.store(position_, std::memory_order_seq_cst);
  }
}

void InLane::give_back(std::atomic<uint8_t>& word) {
  // Only this side writes the word.
  const auto next = static_cast<uint8_t>(word.load(std::memory_order_relaxed) + 1);
  word.exchange(next, std::memory_order_seq_cst);
}

bool InLane::take_asleep() {
  std::atomic<uint32_t>& asleep = header()->owner_asleep;
  if (asleep.load(std::memory_order_seq_cst) == 0) return false;
  return asleep.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace trestle
