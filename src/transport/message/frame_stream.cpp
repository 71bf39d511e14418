#include "transport/message/frame_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace trestle {
namespace {

// Messages are committed to the stream up to this many bytes ahead. That is enough for one system call to carry many
// small frames, and little enough that an older message still overtakes messages that are only ready.
constexpr size_t kMostCommittedBytes = 64 * 1024;

iovec vector_of(const std::byte* data, size_t bytes) {
  return {const_cast<std::byte*>(data), bytes};
}

void copy_into(PieceCursor<Piece>& to, std::span<const std::byte> data) {
  while (!data.empty()) {
    const Piece piece = to.rest();
    const size_t step = std::min(piece.bytes, data.size());
    std::memcpy(piece.data, data.data(), step);
    to.advance(step);
    data = data.subspan(step);
  }
}

}  // namespace

// ---- input

size_t FrameStream::target(std::span<iovec> vectors) const {
  size_t used = 0;
  if (left_ == 0 || dropped_) return 0;
  for (size_t ahead = 0; ahead < rest_.pieces_left() && used < vectors.size(); ++ahead) {
    const Piece piece = rest_.peek(ahead);
    if (piece.bytes > 0) vectors[used++] = {piece.data, piece.bytes};
  }
  return used;
}

Status FrameStream::filled(size_t bytes, int32_t rank, RailEvents& events) {
  CHECK(bytes <= left_, "more was received than was asked for");
  if (bytes == 0) return {};
  rest_.advance(bytes);
  return took(bytes, rank, events);
}

Status FrameStream::took(uint64_t bytes, int32_t rank, RailEvents& events) {
  left_ -= bytes;
  return left_ == 0 ? events.end(rank) : Status{};
}

Status FrameStream::take(std::span<const std::byte> data, int32_t rank, RailEvents& events) {
  while (!data.empty()) {
    if (left_ > 0) {
      const size_t bytes = std::min<uint64_t>(data.size(), left_);
      if (!dropped_) copy_into(rest_, data.first(bytes));
      TRY(took(bytes, rank, events));
      data = data.subspan(bytes);
      continue;
    }
    const size_t bytes = std::min(data.size(), kFrameBytes - header_bytes_);
    std::memcpy(&header_[header_bytes_], data.data(), bytes);
    header_bytes_ += bytes;
    data = data.subspan(bytes);
    if (header_bytes_ < kFrameBytes) break;
    header_bytes_ = 0;
    TRY(handle(rank, events));
  }
  return {};
}

Status FrameStream::handle(int32_t rank, RailEvents& events) {
  const Frame frame = TRY(decode_frame(header_.data(), check_in_));
  const std::span<const Piece> pieces = TRY(events.begin(rank, frame));
  left_ = has_payload(frame.type) ? frame.length : 0;
  dropped_ = pieces.empty();
  rest_ = PieceCursor<Piece>(pieces);
  return left_ == 0 ? events.end(rank) : Status{};
}

// ---- output

FrameStream::Entry& FrameStream::add_entry() {
  Entry& added = entry(count_++);
  added.heads.clear();
  added.heads_at = 0;
  added.has_fragment = false;
  added.left = 0;
  return added;
}

// Where order counts, headers without payload go behind what is committed already, so that both ends can count frames.
// Else they go before the first fragment that is not begun. Null: nowhere now.
FrameStream::Entry* FrameStream::entry_for_control() {
  for (size_t i = 0; i < count_; ++i) {
    const bool last = i + 1 == count_;
    if (in_order_ ? last && !entry(i).has_fragment : !entry(i).fragment_begun()) return &entry(i);
  }
  return count_ < kMostEntries ? &add_entry() : nullptr;
}

void FrameStream::commit_control(int32_t rank, RailEvents& events) {
  Entry* place = nullptr;
  Frame header;
  while ((place != nullptr || count_ < kMostEntries || !in_order_) && events.next_control(rank, header)) {
    if (place == nullptr) place = entry_for_control();
    std::array<std::byte, kFrameBytes> wire;
    encode_frame(header, check_out_, wire.data());
    const auto at = place->heads.end() - (place->has_fragment ? static_cast<std::ptrdiff_t>(kFrameBytes) : 0);
    place->heads.insert(at, wire.begin(), wire.end());
  }
}

void FrameStream::commit_fragments(int32_t rank, RailEvents& events) {
  size_t bytes = 0;
  for (size_t i = 0; i < count_; ++i) bytes += entry(i).left;
  while (bytes < kMostCommittedBytes) {
    const bool joins = count_ > 0 && !entry(count_ - 1).has_fragment;
    Fragment fragment;
    if ((!joins && count_ == kMostEntries) || !events.next_fragment(rank, fragment)) return;
    Entry& last = joins ? entry(count_ - 1) : add_entry();
    const size_t at = last.heads.size();
    last.heads.resize(at + kFrameBytes);
    encode_frame(fragment.header, check_out_, &last.heads[at]);
    last.has_fragment = true;
    last.fragment = fragment;
    last.rest = PieceCursor<ConstPiece>(fragment.pieces);
    last.rest.advance(fragment.skip);
    last.left = fragment.header.length;
    bytes += last.left;
  }
}

size_t FrameStream::fill_output(std::span<iovec> vectors, int32_t rank, RailEvents& events, bool fragments) {
  commit_control(rank, events);
  if (fragments) commit_fragments(rank, events);
  size_t used = 0;
  for (size_t i = 0; i < count_ && used < vectors.size(); ++i) {
    const Entry& next = entry(i);
    if (next.heads_at < next.heads.size())
      vectors[used++] = vector_of(&next.heads[next.heads_at], next.heads.size() - next.heads_at);
    uint64_t left = next.left;
    for (size_t ahead = 0; left > 0 && used < vectors.size(); ++ahead) {
      const ConstPiece piece = next.rest.peek(ahead);
      const size_t bytes = std::min<uint64_t>(piece.bytes, left);
      if (bytes > 0) vectors[used++] = vector_of(piece.data, bytes);
      left -= bytes;
    }
    // Nothing may follow a payload that found no room.
    if (left > 0) break;
  }
  return used;
}

// Counts up to `bytes` for the oldest entry, and takes them off. True if the entry is complete.
bool FrameStream::wrote_entry(size_t& bytes, int32_t rank, RailEvents& events) {
  Entry& oldest = entry(0);
  const size_t heads = std::min(bytes, oldest.heads.size() - oldest.heads_at);
  oldest.heads_at += heads;
  bytes -= heads;
  const size_t payload = std::min<uint64_t>(bytes, oldest.left);
  oldest.rest.advance(payload);
  oldest.left -= payload;
  bytes -= payload;
  if (oldest.heads_at < oldest.heads.size() || oldest.left > 0) return false;
  if (oldest.has_fragment) events.written(rank, oldest.fragment);
  first_ = (first_ + 1) % kMostEntries;
  --count_;
  return true;
}

void FrameStream::wrote(size_t bytes, int32_t rank, RailEvents& events) {
  while (bytes > 0) {
    CHECK(count_ > 0, "more was written than was gathered");
    if (!wrote_entry(bytes, rank, events)) return;
  }
}

// A fragment that is partly sent must be finished, so that the peer can read the goodbye after it.
void FrameStream::close() {
  dropped_ = true;
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    Entry& old = entry(i);
    if (old.has_fragment && !old.fragment_begun()) {
      old.heads.resize(old.heads.size() - kFrameBytes);
      old.has_fragment = false;
      old.left = 0;
    }
    if (old.heads.empty()) continue;
    if (kept != i) std::swap(entry(kept), old);
    ++kept;
  }
  count_ = kept;
}

}  // namespace trestle
