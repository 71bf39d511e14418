#include "engine/work/work.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "kernels/copy.h"
#include "kernels/scale.h"

namespace trestle {

namespace {

// Walks several lists of pieces in parallel, one contiguous run at a time.
class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(std::span<const ConstPiece> pieces) : pieces_(pieces) {}
  const std::byte* data() const { return pieces_[index_].data + offset_; }
  uint64_t run() const { return pieces_[index_].bytes - offset_; }
  void skip(uint64_t bytes) {
    offset_ += bytes;
    if (offset_ == pieces_[index_].bytes && index_ + 1 < pieces_.size()) {
      ++index_;
      offset_ = 0;
    }
  }

 private:
  std::span<const ConstPiece> pieces_;
  size_t index_ = 0;
  uint64_t offset_ = 0;
};

bool is_contiguous(const Work& work) {
  return work.destination.size() == 1 &&
         std::all_of(work.sources.begin(), work.sources.end(), [](const auto& source) { return source.size() == 1; });
}

// Does the work on one contiguous run of the destination and of each source.
Status do_run(const Work& work, std::byte* dst, std::span<const std::byte* const> sources, uint64_t bytes) {
  const size_t elements = bytes / size_of(work.spec.type);
  switch (work.kind) {
    case WorkKind::kCopy:
      copy(dst, sources[0], bytes, false);
      return {};
    case WorkKind::kReduce:
      work.reduce(dst, sources, elements, work.spec);
      return {};
    case WorkKind::kFold:
      return work.user->fold(dst, sources, elements, work.spec.type);
    case WorkKind::kScale:
      scale(dst, sources[0], elements, work.spec.type, work.factor);
      return {};
  }
  return {};
}

Status walk(const Work& work, std::span<Cursor> cursors, std::span<const std::byte*> sources) {
  const uint64_t element_bytes = work.kind == WorkKind::kCopy ? 1 : size_of(work.spec.type);
  for (size_t i = 0; i < cursors.size(); ++i) cursors[i] = Cursor(work.sources[i]);
  for (const Piece& piece : work.destination) {
    for (uint64_t at = 0; at < piece.bytes;) {
      uint64_t take = piece.bytes - at;
      for (const Cursor& cursor : cursors) take = std::min(take, cursor.run());
      CHECK(take % element_bytes == 0, "a transport cut a view inside an element");
      for (size_t i = 0; i < cursors.size(); ++i) sources[i] = cursors[i].data();
      TRY(do_run(work, piece.data + at, sources, take));
      for (Cursor& cursor : cursors) cursor.skip(take);
      at += take;
    }
  }
  return {};
}

}  // namespace

Status do_work(const Work& work) {
  if (work.destination.empty()) return {};
  const size_t count = work.sources.size();
  constexpr size_t kMany = 64;
  constexpr size_t kFew = 8;
  std::array<const std::byte*, kMany> pointers;
  if (count <= kMany && is_contiguous(work)) {
    for (size_t i = 0; i < count; ++i) pointers[i] = work.sources[i].front().data;
    return do_run(work, work.destination.front().data, {pointers.data(), count}, work.destination.front().bytes);
  }
  if (count <= kFew) {
    std::array<Cursor, kFew> cursors;
    return walk(work, {cursors.data(), count}, {pointers.data(), count});
  }
  std::vector<Cursor> cursors(count);
  std::vector<const std::byte*> sources(count);
  return walk(work, cursors, sources);
}

}  // namespace trestle
