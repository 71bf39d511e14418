#include "transport/shm/sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "kernels/copy.h"
#include "memory/mem_alloc.h"
#include "memory/outbox.h"
#include "memory/region.h"

namespace trestle {

namespace {

// Ring places that only control descriptors use: answers must get out even when the rank sends at full speed.
constexpr uint32_t kControlRoom = 32;

SendRequest* next_of(const SendRequest& request) {
  return static_cast<SendRequest*>(request.transport.pointer[0]);
}

// The position of copy_out() in the pieces of a request.
uint64_t& offset_of(SendRequest& request) {
  return request.transport.word[0];
}
uint64_t& piece_of(SendRequest& request) {
  return request.transport.word[1];
}
uint64_t& piece_offset_of(SendRequest& request) {
  return request.transport.word[2];
}

bool is_on_device(const SendRequest& request) {
  return !request.pieces.empty() && request.pieces[0].region != nullptr && request.pieces[0].region->on_device();
}

// The clock of another process may count from another moment, so ages travel.
ReadTimes times_of(const ReadAges& ages) {
  const int64_t now_ns = monotonic_clock().now_ns();
  const auto time = [now_ns](uint32_t age) { return age == ReadAges::kUnknown ? 0 : now_ns - age; };
  return {time(ages.device_ns), time(ages.host_ns)};
}

Descriptor descriptor_for(const SendRequest& request, DescriptorKind kind, uint8_t flags) {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.flags = flags;
  descriptor.bytes = request.bytes;
  descriptor.tag = request.tag;
  return descriptor;
}

}  // namespace

Status Sender::start(const LaneShape& shape) {
  TRY(lane_.create(shape));
  if (options_.memory != nullptr) options_.memory->add(lane_.control().bytes());
  return {};
}

void Sender::push(Descriptor& descriptor) {
  lane_.push(descriptor);
  pushed_ = true;
}

void Sender::push_control(const Descriptor& descriptor) {
  Descriptor copy = descriptor;
  if (backlog_.empty() && lane_ && channel_.ready(peer_) && lane_.room(1) != 0) {
    push(copy);
  } else {
    backlog_.push_back(copy);
  }
}

void Sender::copy_out(SendRequest& request, std::byte* to, size_t bytes, bool streaming) {
  while (bytes != 0) {
    const ConstPiece& piece = request.pieces[piece_of(request)];
    const size_t part = std::min(bytes, piece.bytes - piece_offset_of(request));
    copy(to, piece.data + piece_offset_of(request), part, streaming);
    to += part;
    bytes -= part;
    offset_of(request) += part;
    piece_offset_of(request) += part;
    if (piece_offset_of(request) == piece.bytes) {
      ++piece_of(request);
      piece_offset_of(request) = 0;
    }
  }
}

void Sender::post_notice(SendRequest& request) {
  push_control(descriptor_for(request, DescriptorKind::kNotice, 0));
  request.state = RequestState::kDone;
}

Result<bool> Sender::post(SendRequest& request) {
  refused_ = !backlog_.empty() || lane_.room(kControlRoom + 1) <= kControlRoom;
  if (refused_) return false;
  request.transport = {};
  if (is_on_device(request)) return post_on_device(request);
  const bool unasked = request.bytes <= options_.unasked_bytes;
  if (request.bytes <= lane_.shape().small_bytes) {
    SlotPool& small = lane_.small();
    if (unasked && queue_[0].first == nullptr && small.available(small.reserve() + 1) > small.reserve()) {
      push_small(request, 0);
      request.state = RequestState::kDone;
      return true;
    }
    ask(request);
    return true;
  }
  if (options_.map_memory) {
    bool mapped = false;
    if (!TRY(post_mapped(request, mapped))) return false;
    if (mapped) return true;
  }
  if (!TRY(make_data())) return false;
  SlotPool& big = lane_.big();
  const size_t slots = (request.bytes + lane_.shape().big_bytes - 1) / lane_.shape().big_bytes;
  const size_t wanted = slots + big.reserve();
  if (!unasked || queue_[1].first != nullptr || slots > kSlotsPerDescriptor || wanted > big.total() ||
      big.available(kMostSlots) < wanted) {
    ask(request);
    return true;
  }
  push_big(request, static_cast<uint32_t>(slots), 0);
  request.state = RequestState::kDone;
  return true;
}

void Sender::ask(SendRequest& request) {
  Descriptor descriptor = descriptor_for(request, DescriptorKind::kAsk, 0);
  request.state = RequestState::kPending;
  CHECK(waiting_.insert(request.tag, &request), "a message tag was used twice");
  push(descriptor);
}

void Sender::push_small(SendRequest& request, uint8_t flags) {
  const bool fits = request.bytes <= kInlineBytes;
  Descriptor descriptor = descriptor_for(request, fits ? DescriptorKind::kInline : DescriptorKind::kSmall, flags);
  const uint32_t slot = lane_.small().take();
  descriptor.extra_slot = static_cast<uint8_t>(slot);
  copy_out(request, fits ? descriptor.extra.data.data() : lane_.small_slot(slot), request.bytes, false);
  push(descriptor);
}

bool Sender::push_big(SendRequest& request, uint32_t slots, uint8_t flags) {
  Descriptor descriptor = descriptor_for(request, DescriptorKind::kData, flags);
  while (slots-- != 0 && descriptor.count < kSlotsPerDescriptor && offset_of(request) < request.bytes) {
    const uint32_t slot = lane_.big().take();
    descriptor.extra.slots[descriptor.count++] = static_cast<uint8_t>(slot);
    const uint64_t rest = request.bytes - offset_of(request);
    const uint64_t bytes = std::min<uint64_t>(rest, lane_.shape().big_bytes);
    if (bytes < lane_.shape().big_bytes) {
      copy_out(request, lane_.big_slot(slot), bytes, false);
      continue;
    }
    const int64_t begin_ns = monotonic_clock().now_ns();
    copy_out(request, lane_.big_slot(slot), bytes, stores_.streaming());
    stores_.took(monotonic_clock().now_ns() - begin_ns);
  }
  push(descriptor);
  return offset_of(request) == request.bytes;
}

// Makes the data segment and sends its descriptor. False: try again.
Result<bool> Sender::make_data() {
  if (data_told_) return true;
  if (!lane_.has_data()) {
    TRY(lane_.create_data());
    LOG(kInfo, kShm, "shm: opens a data segment of %zu bytes to %s", lane_.data().bytes(),
        channel_.name(peer_).c_str());
    if (options_.memory != nullptr) options_.memory->add(lane_.data().bytes());
  }
  const HostFrame frame{.kind = HostFrameKind::kData, .bytes = lane_.data().bytes()};
  data_told_ = TRY(channel_.send(peer_, frame, lane_.data().fd()));
  if (data_told_) lane_.data().close_fd();
  return data_told_;
}

namespace {

// The place of a piece, if it lies in memory that peers can map.
MemPlace place_of(const ConstPiece& piece) {
  return piece.region == nullptr ? MemPlace{} : piece.region->place_of(piece.data, piece.bytes);
}

}  // namespace

// Fills in all pieces if every one lies in mappable memory. Neighbours are not joined: lists are short where it
// matters.
bool Sender::fill_pieces(const SendRequest& request, MappedPiece* pieces) const {
  for (size_t i = 0; i < request.pieces.size(); ++i) {
    const MemPlace place = place_of(request.pieces[i]);
    if (place.id == 0) return false;
    pieces[i] = {place.id, place.offset, request.pieces[i].bytes};
  }
  return true;
}

// One piece, or one in each outbox, needs no slot, so nothing keeps it from going.
Result<bool> Sender::post_on_device(SendRequest& request) {
  CHECK(outbox_ != 0 && place_of(request.pieces[0]).id == outbox_,
        "a message in memory of a device that the peer has not opened");
  if (request.pieces.size() == 2) {
    post_divided(request);
    return true;
  }
  CHECK(request.pieces.size() == 1, "a message in memory of a device has many pieces");
  bool mapped = false;
  return TRY(post_mapped(request, mapped)) && mapped;
}

void Sender::post_divided(SendRequest& request) {
  const MemPlace first = place_of(request.pieces[0]);
  const MemPlace second = place_of(request.pieces[1]);
  CHECK(host_outbox_ != 0 && second.id == host_outbox_,
        "a message in host memory that the peer's device does not read");
  CHECK(first.offset % Outbox::kUnitBytes == 0 && second.offset % Outbox::kUnitBytes == 0,
        "a message in an outbox begins between units");
  Descriptor descriptor = descriptor_for(request, DescriptorKind::kDivided, 0);
  descriptor.extra.divided = {request.pieces[0].bytes, static_cast<uint32_t>(first.offset / Outbox::kUnitBytes),
                              static_cast<uint32_t>(second.offset / Outbox::kUnitBytes)};
  wait_for_reader(request);
  push(descriptor);
}

// Until on_read().
void Sender::wait_for_reader(SendRequest& request) {
  request.state = RequestState::kPending;
  CHECK(waiting_.insert(request.tag, &request), "a message tag was used twice");
  request.mapped = true;
}

Result<bool> Sender::share(uint64_t id) {
  if (id == outbox_ || id == host_outbox_) return true;
  if (std::find(shared_.begin(), shared_.end(), id) != shared_.end()) return true;
  const bool registered = options_.registrations != nullptr && options_.registrations->alive(id);
  const MemShare memory = TRY(registered ? options_.registrations->share(id) : mem_share(id));
  const HostFrame frame{.kind = HostFrameKind::kMemory, .id = id, .bytes = memory.bytes};
  if (!TRY(channel_.send(peer_, frame, memory.fd.get()))) return false;
  LOG(kInfo, kShm, "shm: opens memory %llu of the caller, %llu bytes, to %s", static_cast<unsigned long long>(id),
      static_cast<unsigned long long>(memory.bytes), channel_.name(peer_).c_str());
  shared_.push_back(id);
  return true;
}

// False: try again. `mapped`: the message was sent.
Result<bool> Sender::post_mapped(SendRequest& request, bool& mapped) {
  const size_t count = request.pieces.size();
  if (count == 0 || count > kMaxPieces || count * sizeof(MappedPiece) > lane_.shape().small_bytes) return true;
  if (place_of(request.pieces[0]).id == 0) return true;
  MappedPiece pieces[kMaxPieces];
  if (!fill_pieces(request, pieces)) return true;
  SlotPool& small = lane_.small();
  if (count > 1 && (queue_[0].first != nullptr || small.available(small.reserve() + 1) <= small.reserve())) return true;
  for (size_t i = 0; i < count; ++i) {
    if ((i == 0 || pieces[i].id != pieces[i - 1].id) && !TRY(share(pieces[i].id))) return false;
  }
  Descriptor descriptor =
      descriptor_for(request, count == 1 ? DescriptorKind::kMapped : DescriptorKind::kMappedList, 0);
  if (count == 1) {
    descriptor.extra.mapped = pieces[0];
  } else {
    const uint32_t slot = small.take();
    descriptor.extra_slot = static_cast<uint8_t>(slot);
    descriptor.count = static_cast<uint8_t>(count - 1);
    std::memcpy(lane_.small_slot(slot), pieces, count * sizeof(MappedPiece));
  }
  wait_for_reader(request);
  push(descriptor);
  mapped = true;
  return true;
}

Status Sender::on_clear(const Descriptor& descriptor) {
  SendRequest* const request = waiting_.take(descriptor.tag);
  if (request == nullptr) {
    return Error{Code::kRemoteError, channel_.name(peer_) + " asks for a message that is not on offer"};
  }
  request->transport = {};
  Queue& queue = queue_[request->bytes <= lane_.shape().small_bytes ? 0 : 1];
  if (queue.last != nullptr) {
    queue.last->transport.pointer[0] = request;
  } else {
    queue.first = request;
  }
  queue.last = request;
  return {};
}

Status Sender::on_read(const Descriptor& descriptor) {
  SendRequest* const request = waiting_.take(descriptor.tag);
  if (request == nullptr) {
    return Error{Code::kRemoteError, channel_.name(peer_) + " has read a message that was not sent"};
  }
  if (is_on_device(*request)) request->read = times_of(descriptor.extra.ages);
  request->state = RequestState::kDone;
  return {};
}

void Sender::on_last_read(const MessageTag& tag) {
  SendRequest* const request = waiting_.take(tag);
  if (request != nullptr) request->state = RequestState::kDone;
}

std::vector<HostFrame> Sender::unsent_reads() const {
  std::vector<HostFrame> frames;
  for (const Descriptor& descriptor : backlog_) {
    if (descriptor.kind != DescriptorKind::kRead) continue;
    const MessageTag& tag = descriptor.tag;
    frames.push_back({.kind = HostFrameKind::kRead,
                      .id = tag.operation,
                      .bytes = tag.offset,
                      .phase = tag.phase,
                      .message = tag.message});
  }
  return frames;
}

Result<bool> Sender::progress() {
  bool moved = false;
  if (!backlog_.empty() && channel_.ready(peer_)) {
    size_t sent = 0;
    while (sent < backlog_.size() && lane_.room(1) != 0) push(backlog_[sent++]);
    backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(sent));
    moved = sent != 0;
  }
  for (int kind = 0; kind < 2; ++kind) {
    Queue& queue = queue_[kind];
    SlotPool& pool = kind == 0 ? lane_.small() : lane_.big();
    while (queue.first != nullptr && lane_.room(kControlRoom + 1) > kControlRoom) {
      SendRequest& request = *queue.first;
      const size_t left = request.bytes - offset_of(request);
      const size_t unit = lane_.shape().big_bytes;
      const auto wanted = kind == 0 ? 1u : static_cast<uint32_t>(std::min<size_t>((left + unit - 1) / unit, 64));
      // The slots that were given back last are still in a cache: look for them even if others are free.
      const uint32_t free = std::min(pool.available(kind == 0 ? 1 : kMostSlots), wanted);
      if (free == 0) break;
      if (kind == 0) push_small(request, kSolicited);
      moved = true;
      if (kind == 1 && !push_big(request, free, kSolicited)) continue;
      queue.first = next_of(request);
      if (queue.first == nullptr) queue.last = nullptr;
      request.state = RequestState::kDone;
    }
  }
  return moved;
}

bool Sender::could_move() {
  if (!channel_.ready(peer_)) return false;
  if ((refused_ || starved()) && lane_.room(kControlRoom + 1) > kControlRoom) {
    const bool small = queue_[0].first != nullptr && lane_.small().available(1) != 0;
    const bool big = queue_[1].first != nullptr && lane_.big().available(1) != 0;
    if (refused_ || small || big) return true;
  }
  return !backlog_.empty() && lane_.room(1) != 0;
}

void Sender::forget_freed() {
  for (size_t i = 0; i < shared_.size();) {
    const bool registered = options_.registrations != nullptr && options_.registrations->alive(shared_[i]);
    if (registered || mem_alive(shared_[i])) {
      ++i;
      continue;
    }
    Descriptor descriptor;
    descriptor.kind = DescriptorKind::kForget;
    descriptor.extra.mapped.id = shared_[i];
    push_control(descriptor);
    shared_[i] = shared_.back();
    shared_.pop_back();
  }
}

}  // namespace trestle
