#include "engine/work/runs.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

Runs::Runs(size_t most_sources) {
  from_.reserve(most_sources);
  sources_.reserve(most_sources);
}

void Runs::begin(const Work& work) {
  to_ = Cursor<Piece>(work.destination);
  from_.clear();
  for (const std::span<const ConstPiece>& source : work.sources) from_.emplace_back(source);
  sources_.resize(from_.size());
  element_bytes_ = work.kind == WorkKind::kCopy ? 1 : size_of(work.spec.type);
}

bool Runs::next(bool join) {
  if (to_.at_end()) return false;
  destination_ = to_.data();
  std::transform(from_.begin(), from_.end(), sources_.begin(), [](const auto& source) {
    CHECK(!source.at_end(), "a source is shorter than the destination");
    return source.data();
  });
  writes_host_ = to_.on_host();
  reads_host_ = next_reads_host();
  bytes_ = pass_contiguous();
  while (join && continues()) bytes_ += pass_contiguous();
  return true;
}

bool Runs::next_reads_host() const {
  return std::any_of(from_.begin(), from_.end(), [](const auto& source) { return source.on_host(); });
}

// The bytes up to the next boundary of any list.
uint64_t Runs::pass_contiguous() {
  uint64_t bytes = to_.left();
  for (const auto& source : from_) bytes = std::min(bytes, source.left());
  CHECK(bytes % element_bytes_ == 0, "a transport cut a view inside an element");
  to_.skip(bytes);
  for (auto& source : from_) source.skip(bytes);
  return bytes;
}

// Whether all lists go on at the end of the present run.
bool Runs::continues() const {
  if (to_.at_end() || to_.data() != destination_ + bytes_ || to_.on_host() != writes_host_) return false;
  for (size_t i = 0; i < from_.size(); ++i) {
    if (from_[i].at_end() || from_[i].data() != sources_[i] + bytes_) return false;
  }
  return next_reads_host() == reads_host_;
}

}  // namespace trestle
