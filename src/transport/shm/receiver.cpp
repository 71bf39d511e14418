#include "transport/shm/receiver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "kernels/copy.h"
#include "memory/outbox.h"

namespace trestle {

namespace {

constexpr int kDescriptorsPerProgress = 64;
// Calls of progress() without any movement after which views are moved out of the lane. The value only has to be
// finite.
constexpr uint32_t kStuckCalls = 256;
// A destination this large is not read again soon.
constexpr size_t kStreamingBytes = 128 * 1024;
// A spilled message's memory is kept for the next one up to this size.
constexpr size_t kMostKeptBytes = 512 * 1024;

// Of moments long ago: the greatest age that there is.
ReadAges ages_of(const ReadTimes& times) {
  const int64_t now_ns = monotonic_clock().now_ns();
  const auto age = [now_ns](int64_t at_ns) {
    return at_ns == 0 ? ReadAges::kUnknown
                      : static_cast<uint32_t>(std::clamp<int64_t>(now_ns - at_ns, 0, ReadAges::kUnknown - 1));
  };
  return {age(times.device_ns), age(times.host_ns)};
}

}  // namespace

Error Receiver::protocol_error(const char* what) const {
  return {Code::kRemoteError, channel_.name(peer_) + " " + what};
}

Status Receiver::on_frame(const HostFrame& frame, UniqueFd fd) {
  Status status;
  const char* what = nullptr;
  if (frame.kind != HostFrameKind::kRead && !fd)
    return Error{Code::kSystemError, "no open file is left for shared memory of " + channel_.name(peer_) +
                                         " (limit of open files: ulimit -n)"};
  switch (frame.kind) {
    case HostFrameKind::kLane:
      what = "lane";
      if (lane_) return protocol_error("sent its lane of shared memory twice");
      status = lane_.adopt(std::move(fd), frame.bytes);
      break;
    case HostFrameKind::kData:
      what = "data segment";
      status = lane_.adopt_data(std::move(fd), frame.bytes);
      break;
    case HostFrameKind::kMemory:
      what = "memory";
      status = memory_.adopt(frame.id, std::move(fd), frame.bytes);
      break;
    case HostFrameKind::kWake:
    case HostFrameKind::kGoodbye:
    case HostFrameKind::kRead:
    case HostFrameKind::kParcel:
    case HostFrameKind::kBytes:
      break;
  }
  if (!status.ok()) return Error{status.error().code, channel_.name(peer_) + ": " + status.error().message};
  if (what != nullptr) {
    LOG(kInfo, kShm, "shm: mapped the %s of %llu bytes of %s", what, static_cast<unsigned long long>(frame.bytes),
        channel_.name(peer_).c_str());
  }
  return {};
}

Receiver::Incoming& Receiver::make(const MessageTag& tag, uint64_t bytes) {
  if (free_ == nullptr) free_ = &pool_.emplace_back();
  Incoming& message = *free_;
  free_ = message.next;
  message.tag = tag;
  message.bytes = bytes;
  message.received = 0;
  message.request = nullptr;
  message.next = nullptr;
  message.listed = message.asked = message.solicited = message.in_line = message.from_memory = message.spilled = false;
  message.on_device = false;
  message.piece = message.piece_offset = 0;
  return message;
}

void Receiver::recycle(Incoming& message) {
  if (message.own.size() > kMostKeptBytes) {
    memory_meter_.subtract(message.own.size());
    std::vector<std::byte>().swap(message.own);
  }
  message.next = free_;
  free_ = &message;
}

void Receiver::list(Incoming& message) {
  CHECK(messages_.insert(message.tag, &message), "a message was listed twice");
  message.listed = true;
  if (message.request != nullptr) ++matched_;
}

void Receiver::unlist(Incoming& message) {
  if (!message.listed) return;
  messages_.take(message.tag);
  message.listed = false;
  if (message.request != nullptr) --matched_;
}

Status Receiver::post(RecvRequest& request) {
  request.transport = {};
  request.view.clear();
  request.state = RequestState::kPending;
  Incoming* const message = messages_.get(request.tag);
  if (message == nullptr) {
    CHECK(posted_.insert(request.tag, &request), "a message tag was used twice");
    return {};
  }
  CHECK(message->request == nullptr, "a message tag was used twice");
  unlist(*message);
  TRY(match(*message, request));
  if (message->received == message->bytes && !message->asked) return deliver(*message);
  list(*message);
  return {};
}

Status Receiver::match(Incoming& message, RecvRequest& request) {
  const auto own = [this] { return agreement_ != nullptr ? agreement_->name(agreement_->rank()) : "this rank"; };
  if (sizes_differ(message.tag, message.bytes, request.tag, request.bytes))
    return different_sizes(channel_.name(peer_), own(), message.tag, message.bytes, request.tag, request.bytes);
  if (places_differ(message.tag, request.tag))
    return different_places(channel_.name(peer_), own(), message.tag, request.tag);
  message.request = &request;
  if (message.asked) clear(message);
  return {};
}

void Receiver::clear(Incoming& message) {
  Descriptor answer;
  answer.kind = DescriptorKind::kClear;
  answer.tag = message.tag;
  answers_.push_control(answer);
}

Result<bool> Receiver::progress() {
  if (!lane_) return false;
  bool moved = false;
  Descriptor descriptor;
  for (int i = 0; i < kDescriptorsPerProgress && lane_.peek(descriptor); ++i) {
    TRY(take(descriptor));
    lane_.advance();
    moved = gave_back_ = true;
    stuck_ = 0;
  }
  if (deferred_first_ != nullptr || arriving_view_ != nullptr) [[unlikely]]
    spill_if_stuck();
  return moved;
}

Status Receiver::take(const Descriptor& descriptor) {
  switch (descriptor.kind) {
    case DescriptorKind::kClear:
      return answers_.on_clear(descriptor);
    case DescriptorKind::kRead:
      return answers_.on_read(descriptor);
    case DescriptorKind::kForget:
      memory_.forget(descriptor.extra.mapped.id);
      return {};
    case DescriptorKind::kInline:
    case DescriptorKind::kSmall:
    case DescriptorKind::kData:
    case DescriptorKind::kAsk:
    case DescriptorKind::kMapped:
    case DescriptorKind::kMappedList:
    case DescriptorKind::kDivided:
    case DescriptorKind::kNotice:
      // Checks first which call the peer runs, because any other error follows from a difference there.
      if (agreement_ != nullptr && !agreement_->heard(peer_, descriptor.tag)) return agreement_->error();
      return descriptor.kind == DescriptorKind::kNotice ? Status() : take_message(descriptor);
  }
  return protocol_error("wrote something unknown into its lane");
}

Status Receiver::take_message(const Descriptor& descriptor) {
  Incoming* message = messages_.get(descriptor.tag);
  if (message == nullptr) {
    if ((descriptor.flags & kSolicited) != 0) return protocol_error("sent a message that was not asked for");
    message = &make(descriptor.tag, descriptor.bytes);
    message->asked = descriptor.kind == DescriptorKind::kAsk;
    RecvRequest* const request = posted_.take(descriptor.tag);
    if (request != nullptr) TRY(match(*message, *request));
    if (message->asked) {
      list(*message);
      return {};
    }
  } else if (message->bytes != descriptor.bytes || (descriptor.flags & kSolicited) == 0 ||
             message->request == nullptr) {
    return protocol_error("sent a message twice");
  }
  if ((descriptor.flags & kSolicited) != 0) message->solicited = true;
  TRY(take_payload(*message, descriptor));
  if (message->request == nullptr || message->received != message->bytes) {
    if (!message->listed) list(*message);
    return {};
  }
  unlist(*message);
  return deliver(*message);
}

Status Receiver::take_payload(Incoming& message, const Descriptor& descriptor) {
  switch (descriptor.kind) {
    case DescriptorKind::kDivided:
      return take_divided(message, descriptor);
    case DescriptorKind::kInline:
    case DescriptorKind::kSmall:
      message.in_line = descriptor.kind == DescriptorKind::kInline;
      if (descriptor.bytes > (message.in_line ? kInlineBytes : lane_.shape().small_bytes) ||
          descriptor.extra_slot >= lane_.shape().small_slots || message.received != 0) {
        return protocol_error("described a short message that cannot be");
      }
      if (message.in_line) message.line = descriptor.extra.data;
      message.small_slot = descriptor.extra_slot;
      message.received = message.bytes;
      ++small_held_;
      return {};
    case DescriptorKind::kData:
      return take_big(message, descriptor);
    default:
      return take_mapped(message, descriptor);
  }
}

size_t Receiver::slot_bytes(const Incoming& message, size_t index) const {
  const uint64_t begin = uint64_t{index} * lane_.shape().big_bytes;
  return std::min<uint64_t>(lane_.shape().big_bytes, message.bytes - begin);
}

Status Receiver::take_big(Incoming& message, const Descriptor& descriptor) {
  if (!lane_.has_data()) TRY(channel_.read_frames(peer_));
  if (!lane_.has_data()) return protocol_error("sent data before the memory that holds it");
  const uint64_t unit = lane_.shape().big_bytes;
  if (descriptor.count == 0 || descriptor.count > kSlotsPerDescriptor || message.received % unit != 0 ||
      message.received >= message.bytes || descriptor.count > (message.bytes - message.received + unit - 1) / unit) {
    return protocol_error("described a long message that cannot be");
  }
  for (size_t i = 0; i < descriptor.count; ++i) {
    if (descriptor.extra.slots[i] >= lane_.shape().big_slots) return protocol_error("named a slot that does not exist");
    message.big_slots.push_back(descriptor.extra.slots[i]);
    ++big_held_;
  }
  message.received = std::min<uint64_t>(message.received + descriptor.count * unit, message.bytes);
  if (message.request == nullptr) return {};
  if (message.request->pieces.empty()) {
    arriving_view_ = message.received == message.bytes ? nullptr : &message;
    // A message that will not fit is spilled at once: waiting would not help.
    const uint64_t most = uint64_t{lane_.shape().big_slots} * 3 / 4 * unit;
    if (message.spilled || message.bytes > most) spill(message);
  } else {
    copy_out_slots(message);
  }
  return {};
}

Status Receiver::take_divided(Incoming& message, const Descriptor& descriptor) {
  if (message.received != 0) return protocol_error("sent a message twice");
  const DividedPlace& at = descriptor.extra.divided;
  const uint64_t first = at.first_bytes;
  if (first == 0 || first >= message.bytes || (message.bytes - first) % Outbox::kUnitBytes != 0)
    return protocol_error("divided a message that cannot be");
  const PeerMemory::Place places[] = {
      memory_.in_outbox(true, at.first_unit * Outbox::kUnitBytes, first),
      memory_.in_outbox(false, at.second_unit * Outbox::kUnitBytes, message.bytes - first)};
  if (places[0].data == nullptr || places[1].data == nullptr)
    return protocol_error("named memory that it did not share");
  message.mapped = {{places[0].data, first, places[0].outbox},
                    {places[1].data, message.bytes - first, places[1].outbox}};
  message.on_device = message.from_memory = true;
  message.received = message.bytes;
  return {};
}

Status Receiver::take_mapped(Incoming& message, const Descriptor& descriptor) {
  const bool listed = descriptor.kind == DescriptorKind::kMappedList;
  if (message.received != 0 || descriptor.extra_slot >= lane_.shape().small_slots)
    return protocol_error("sent a message twice");
  const size_t count = listed ? size_t{descriptor.count} + 1 : 1;
  if (count * sizeof(MappedPiece) > lane_.shape().small_bytes) return protocol_error("sent too long a list of pieces");
  message.mapped.clear();
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    MappedPiece piece = descriptor.extra.mapped;
    piece.bytes = message.bytes;
    if (listed) std::memcpy(&piece, lane_.small_slot(descriptor.extra_slot) + i * sizeof piece, sizeof piece);
    if (!memory_.knows(piece.id)) TRY(channel_.read_frames(peer_));
    const PeerMemory::Place place = memory_.resolve(piece);
    if (place.data == nullptr) return protocol_error("named memory that it did not share");
    const bool on_device = place.outbox != nullptr;
    if (i != 0 && on_device != message.on_device) return protocol_error("sent pieces of host and device together");
    message.on_device = on_device;
    message.mapped.push_back({place.data, piece.bytes, place.outbox});
    bytes += piece.bytes;
  }
  if (listed) lane_.give_back_small(descriptor.extra_slot);
  if (bytes != message.bytes) return protocol_error("sent pieces that do not make up the message");
  message.from_memory = true;
  message.received = message.bytes;
  return {};
}

void Receiver::copy_out(Incoming& message, const std::byte* data, size_t bytes) {
  const bool streaming = message.bytes >= kStreamingBytes;
  while (bytes != 0) {
    const Piece& piece = message.request->pieces[message.piece];
    const size_t part = std::min(bytes, piece.bytes - message.piece_offset);
    copy(piece.data + message.piece_offset, data, part, streaming);
    data += part;
    bytes -= part;
    message.piece_offset += part;
    if (message.piece_offset == piece.bytes) {
      ++message.piece;
      message.piece_offset = 0;
    }
  }
}

// Copies out the slots that are here; earlier ones were copied before.
void Receiver::copy_out_slots(Incoming& message) {
  const uint64_t unit = lane_.shape().big_bytes;
  const size_t first = (message.received + unit - 1) / unit - message.big_slots.size();
  for (size_t i = 0; i < message.big_slots.size(); ++i) {
    copy_out(message, lane_.big_slot(message.big_slots[i]), slot_bytes(message, first + i));
    lane_.give_back_big(message.big_slots[i]);
    --big_held_;
  }
  gave_back_ = gave_back_ || !message.big_slots.empty();
  message.big_slots.clear();
}

// Hands over a message that is matched and complete.
Status Receiver::deliver(Incoming& message) {
  RecvRequest& request = *message.request;
  if (message.on_device) {
    if (!is_on_device(request.tag)) return protocol_error("sent memory of a device where data lies in host memory");
    hand_over(message);
    return {};
  }
  if (request.pieces.empty()) {
    if (message.solicited && !message.spilled && !message.in_line && slots_scarce(message)) {
      message.next = nullptr;
      (deferred_last_ != nullptr ? deferred_last_->next : deferred_first_) = &message;
      deferred_last_ = &message;
      return {};
    }
    hand_over(message);
    return {};
  }
  if (message.from_memory) {
    for (const ConstPiece& piece : message.mapped) copy_out(message, piece.data, piece.bytes);
  } else if (message.in_line) {
    copy_out(message, message.line.data(), message.bytes);
  } else if (message.small_slot >= 0) {
    copy_out(message, lane_.small_slot(static_cast<uint32_t>(message.small_slot)), message.bytes);
  } else {
    copy_out_slots(message);
  }
  give_back(message);
  recycle(message);
  request.state = RequestState::kDone;
  return {};
}

// Whether so many slots are held that messages with waiting receivers might starve.
bool Receiver::slots_scarce(const Incoming& message) const {
  const LaneShape& shape = lane_.shape();
  const auto most = [](uint32_t slots) { return slots - (slots + 3) / 4; };
  return message.small_slot >= 0 ? small_held_ > most(shape.small_slots) : big_held_ > most(shape.big_slots);
}

void Receiver::hand_over(Incoming& message) {
  RecvRequest& request = *message.request;
  std::vector<ConstPiece>& view = request.view;
  view.clear();
  if (message.from_memory) {
    view.assign(message.mapped.begin(), message.mapped.end());
  } else if (message.spilled) {
    view.push_back({message.own.data(), message.bytes});
  } else if (message.in_line) {
    view.push_back({message.line.data(), message.bytes});
    give_back(message);
  } else if (message.small_slot >= 0) {
    view.push_back({lane_.small_slot(static_cast<uint32_t>(message.small_slot)), message.bytes});
  } else {
    for (size_t i = 0; i < message.big_slots.size(); ++i) {
      const std::byte* const data = lane_.big_slot(message.big_slots[i]);
      const size_t bytes = slot_bytes(message, i);
      if (!view.empty() && view.back().data + view.back().bytes == data) {
        view.back().bytes += bytes;
      } else {
        view.push_back({data, bytes});
      }
    }
  }
  if (message.bytes == 0) view.clear();
  request.transport.pointer[0] = &message;
  request.state = RequestState::kDone;
}

// Gives back everything of the sender's that the message still holds.
void Receiver::give_back(Incoming& message) {
  if (message.small_slot >= 0) {
    lane_.give_back_small(static_cast<uint32_t>(message.small_slot));
    message.small_slot = -1;
    --small_held_;
    gave_back_ = true;
  }
  for (const uint8_t slot : message.big_slots) lane_.give_back_big(slot);
  big_held_ -= static_cast<uint32_t>(message.big_slots.size());
  gave_back_ = gave_back_ || !message.big_slots.empty();
  message.big_slots.clear();
  if (message.from_memory) {
    Descriptor answer;
    answer.kind = DescriptorKind::kRead;
    answer.tag = message.tag;
    answer.extra.ages = message.on_device ? ages_of(message.request->read) : ReadAges{};
    answers_.push_control(answer);
    message.from_memory = false;
  }
}

void Receiver::release(RecvRequest& request) {
  auto* const message = static_cast<Incoming*>(request.transport.pointer[0]);
  if (message == nullptr) return;
  request.transport.pointer[0] = nullptr;
  give_back(*message);
  recycle(*message);
  stuck_ = 0;
  hand_over_deferred();
}

void Receiver::hand_over_deferred() {
  while (deferred_first_ != nullptr && !slots_scarce(*deferred_first_)) {
    Incoming& message = *deferred_first_;
    deferred_first_ = message.next;
    if (deferred_first_ == nullptr) deferred_last_ = nullptr;
    hand_over(message);
  }
}

// Moves the part of the message that is here to memory of its own.
void Receiver::spill(Incoming& message) {
  message.spilled = true;
  if (message.own.size() < message.bytes) {
    memory_meter_.add(message.bytes - message.own.size());
    message.own.resize(message.bytes);
  }
  if (message.small_slot >= 0) {
    std::memcpy(message.own.data(), lane_.small_slot(static_cast<uint32_t>(message.small_slot)), message.bytes);
  }
  const uint64_t unit = lane_.shape().big_bytes;
  const size_t first = (message.received + unit - 1) / unit - message.big_slots.size();
  for (size_t i = 0; i < message.big_slots.size(); ++i) {
    copy(message.own.data() + (first + i) * unit, lane_.big_slot(message.big_slots[i]), slot_bytes(message, first + i),
         false);
  }
  give_back(message);
}

void Receiver::expect_rare_calls() {
  if (deferred_first_ != nullptr || arriving_view_ != nullptr) stuck_ += kStuckCalls / 2;
}

void Receiver::spill_if_stuck() {
  hand_over_deferred();
  if (++stuck_ < kStuckCalls) return;
  stuck_ = 0;
  if (deferred_first_ != nullptr) {
    Incoming& message = *deferred_first_;
    deferred_first_ = message.next;
    if (deferred_first_ == nullptr) deferred_last_ = nullptr;
    spill(message);
    hand_over(message);
  } else if (arriving_view_ != nullptr && big_held_ == lane_.shape().big_slots) {
    spill(*arriving_view_);
  }
}

}  // namespace trestle
