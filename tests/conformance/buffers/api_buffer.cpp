#include "conformance/buffers/api_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "conformance/buffers/api_values.h"
#include "support/device_memory.h"
#include "support/ranks.h"

namespace api {

namespace {

constexpr size_t kWord = sizeof(uint64_t);

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory plain_memory(size_t bytes) {
  return Memory(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// The memory of earlier buffers of this thread.
constexpr size_t kSpareBytes = size_t{4} << 20;
bool keeps_spare = false;
thread_local std::vector<Memory> spare;

bool may_be_spare(size_t bytes) {
  return keeps_spare && bytes <= kSpareBytes;
}

std::byte* allocate(size_t bytes, bool shared_memory) {
  void* memory = nullptr;
  if (shared_memory) {
    EXPECT_TRUE(ranks::succeeded(trestleMemAlloc(&memory, bytes)));
  } else if (!may_be_spare(bytes)) {
    memory = plain_memory(bytes).release();
  } else if (spare.empty()) {
    memory = plain_memory(kSpareBytes).release();
  } else {
    memory = spare.back().release();
    spare.pop_back();
  }
  if (memory == nullptr) std::abort();
  return static_cast<std::byte*>(memory);
}

void release(std::byte* memory, size_t bytes, bool shared_memory) {
  if (shared_memory) {
    EXPECT_TRUE(ranks::succeeded(trestleMemFree(memory)));
  } else {
    Memory plain(memory);
    if (may_be_spare(bytes)) spare.push_back(std::move(plain));
  }
}

// What is left of a piece between two places.
Piece cut(const Piece& piece, size_t from, size_t to) {
  Piece rest = piece;
  from = std::max(from, piece.at);
  to = std::min(to, piece.at + piece.image.bytes());
  rest.at = from;
  rest.image = from < to ? piece.image.part(from - piece.at, to - from) : Image();
  return rest;
}

// The words of the pattern: a loop over them is as fast as memory.
uint64_t word(uint64_t seed, size_t index) {
  return seed * 0xd1b54a32d192ed03ull + (index + 1) * 0x9e3779b97f4a7c15ull;
}

}  // namespace

Buffer::Buffer(size_t bytes, size_t offset, bool shared_memory, uint64_t seed, const std::vector<Piece>& content)
    : start_(kGuardBytes + offset),
      bytes_(bytes),
      size_(start_ + bytes + kGuardBytes),
      shared_memory_(shared_memory),
      seed_(seed),
      all_(allocate(size_, shared_memory)) {
  for (const Piece& piece : content) expect(piece);
  size_t painted = 0;
  for (const Piece& piece : pieces_) {
    paint(painted, start_ + piece.at);
    painted = start_ + piece.at + piece.image.bytes();
    std::copy_n(piece.image.data(), piece.image.bytes(), data() + piece.at);
  }
  paint(painted, size_);
  if (device_memory::is_wanted()) device_ = device_memory::allocate(size_);
}

Buffer::~Buffer() {
  if (device_ != nullptr) device_memory::free(device_);
  release(all_, size_, shared_memory_);
}

void Buffer::reuse_memory() {
  keeps_spare = true;
}

void Buffer::hand_over() {
  if (device_ != nullptr) device_memory::copy(device_, all_, size_);
}

void Buffer::take_back() {
  if (device_ != nullptr) device_memory::copy(all_, device_, size_);
}

void Buffer::expect(const Piece& piece) {
  std::vector<Piece> pieces;
  for (const Piece& old : pieces_) {
    pieces.push_back(cut(old, 0, piece.at));
    pieces.push_back(cut(old, piece.at + piece.image.bytes(), SIZE_MAX));
  }
  pieces.push_back(piece);
  std::erase_if(pieces, [](const Piece& p) { return p.image.bytes() == 0; });
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.at < b.at; });
  pieces_ = std::move(pieces);
}

void Buffer::spoil() {
  for (const Piece& piece : pieces_) {
    std::transform(piece.image.data(), piece.image.data() + piece.image.bytes(), data() + piece.at,
                   [](std::byte b) { return ~b; });
  }
}

std::byte Buffer::pattern(size_t at) const {
  return static_cast<std::byte>(word(seed_, at / kWord) >> (at % kWord * 8));
}

void Buffer::paint(size_t from, size_t to) {
  for (; from < to && from % kWord != 0; ++from) all_[from] = pattern(from);
  auto* const words = reinterpret_cast<uint64_t*>(all_);
  const size_t last = to / kWord;
  for (size_t i = from / kWord; i < last; ++i) words[i] = word(seed_, i);
  for (from = std::max(from, last * kWord); from < to; ++from) all_[from] = pattern(from);
}

// The first byte in these that is not the pattern's, or `to`.
size_t Buffer::wrong_in_pattern(size_t from, size_t to) const {
  const auto check = [&](size_t end) {
    while (from < end && all_[from] == pattern(from)) ++from;
    return from == end;
  };
  const size_t first = std::min(to, (from + kWord - 1) / kWord * kWord);
  if (from >= to || !check(first)) return std::min(from, to);
  const auto* const words = reinterpret_cast<const uint64_t*>(all_);
  uint64_t wrong = 0;
  const size_t last = to / kWord;
  for (size_t i = first / kWord; i < last; ++i) wrong |= words[i] ^ word(seed_, i);
  if (wrong == 0) from = std::max(first, last * kWord);
  check(to);
  return from;
}

// The byte behind the piece if all of it is right.
size_t Buffer::wrong_in_piece(const Piece& piece) const {
  const std::byte* const got = all_ + start_ + piece.at;
  const std::byte* const wanted = piece.image.data();
  const size_t bytes = piece.image.bytes();
  size_t right = bytes;
  if (bytes != 0 && std::memcmp(got, wanted, bytes) != 0) {
    const size_t size = size_of(piece.type);
    const auto is_right = [&](size_t i) {
      return distance(piece.type, load(piece.type, got, i), load(piece.type, wanted, i)) <= piece.off;
    };
    size_t element = 0;
    while (element < bytes / size && is_right(element)) ++element;
    right = element * size;
    while (right < bytes && got[right] == wanted[right]) ++right;
  }
  return start_ + piece.at + right;
}

size_t Buffer::first_wrong() const {
  size_t right = 0;
  for (const Piece& piece : pieces_) {
    const size_t begin = start_ + piece.at;
    right = wrong_in_pattern(right, begin);
    if (right < begin) return right;
    right = wrong_in_piece(piece);
    if (right < begin + piece.image.bytes()) return right;
  }
  return wrong_in_pattern(right, size_);
}

std::string Buffer::difference() const {
  const size_t at = first_wrong();
  if (at == size_) return "";
  const char* where = at < start_ ? "before the buffer" : at >= start_ + bytes_ ? "behind the buffer" : "in the buffer";
  return std::string("wrong byte ") + where + ", offset " +
         std::to_string(static_cast<int64_t>(at) - static_cast<int64_t>(start_)) + " of " + std::to_string(bytes_);
}

}  // namespace api
