#include "engine/prepare/binding.h"

#include <algorithm>
#include <numeric>

#include "transport/transport.h"

namespace trestle {

Placement Placement::direct(BufferId buffer, uint32_t element_bytes) {
  Placement p;
  p.buffer_ = buffer;
  p.element_bytes_ = element_bytes;
  return p;
}

Placement Placement::shard(BufferId buffer, uint32_t element_bytes, ElementRange shard) {
  Placement p = direct(buffer, element_bytes);
  p.origin_ = shard.offset;
  return p;
}

Placement Placement::displaced(BufferId buffer, uint32_t element_bytes, const std::vector<ElementRange>& shards,
                               const std::vector<uint64_t>& starts) {
  Placement p = direct(buffer, element_bytes);
  for (size_t u = 0; u < shards.size(); ++u) p.shift_.push_back(starts[u] - shards[u].offset);
  return p;
}

Placement Placement::packed(uint32_t element_bytes, uint64_t offset) {
  Placement p = direct(BufferId::kStaging, element_bytes);
  p.packed_ = true;
  p.next_ = offset;
  return p;
}

Placement Placement::staged(uint32_t element_bytes, uint64_t offset, uint64_t first) {
  Placement p = direct(BufferId::kStaging, element_bytes);
  p.origin_ = first;
  p.begin_ = offset;
  return p;
}

uint64_t Placement::append(int32_t unit, ElementRange range) {
  if (unit_offset_.size() <= static_cast<size_t>(unit)) unit_offset_.resize(unit + 1, 0);
  unit_offset_[unit] = next_ - range.offset * element_bytes_;
  next_ += range.count * element_bytes_;
  return range.count * element_bytes_;
}

PieceRef Placement::locate(int32_t unit, ElementRange range) const {
  const uint64_t bytes = range.count * element_bytes_;
  if (packed_) return {buffer_, unit_offset_[unit] + range.offset * element_bytes_, bytes};
  if (!shift_.empty()) range.offset += shift_[static_cast<size_t>(unit)];
  // An empty range may lie before the shard. Its offset is never used.
  const uint64_t offset = range.offset >= origin_ ? (range.offset - origin_) * element_bytes_ : 0;
  return {buffer_, begin_ + offset, bytes};
}

bool Placement::same_memory(const Placement& other, bool operation_in_place) const {
  // Every phase that stages its results has a place of its own in staging.
  if (buffer_ == BufferId::kStaging || other.buffer_ == BufferId::kStaging) return false;
  if (buffer_ == other.buffer_) return origin_ == other.origin_;
  return operation_in_place;
}

void TableBuilder::add(int32_t unit, ElementRange range) {
  const PieceRef piece = place_.locate(unit, range);
  if (piece.bytes == 0) return;
  const bool block_has_pieces = table_.first.back() < table_.pieces.size();
  if (block_has_pieces) {
    PieceRef& last = table_.pieces.back();
    if (last.buffer == piece.buffer && last.offset + last.bytes == piece.offset) {
      last.bytes += piece.bytes;
      return;
    }
  }
  table_.pieces.push_back(piece);
}

BlockTable TableBuilder::take() {
  table_.first.push_back(static_cast<uint32_t>(table_.pieces.size()));
  return std::move(table_);
}

namespace {

// The bytes of the first `blocks` blocks of a step.
uint64_t bytes_before(const PreparedPhase& phase, const Step& step, uint32_t blocks) {
  if (step.kind == StepKind::kRecv && !phase.received_bytes.empty()) {
    const auto first = phase.received_bytes.begin() + step.destination.first;
    return std::accumulate(first, first + blocks, uint64_t{0});
  }
  return phase.logical_begin[step.logical_first + blocks] - phase.logical_begin[step.logical_first];
}

ByteDependency to_bytes(const PreparedPhase& phase, const Step& mine, const Dependency& dependency) {
  const Step& its = phase.plan->steps[dependency.step];
  ByteDependency result;
  result.step = dependency.step;
  result.my_begin = bytes_before(phase, mine, dependency.my_first);
  result.my_end = bytes_before(phase, mine, dependency.my_first + dependency.count);
  result.its_begin = bytes_before(phase, its, dependency.its_first);
  result.its_end = bytes_before(phase, its, dependency.its_first + dependency.count);
  const auto length = [&phase](const Step& step, uint32_t block) {
    return bytes_before(phase, step, block + 1) - bytes_before(phase, step, block);
  };
  for (uint32_t i = 0; i < dependency.count && dependency.count > 1; ++i)
    result.whole |= length(mine, dependency.my_first + i) != length(its, dependency.its_first + i);
  // Empty blocks wait together with the byte before them.
  if (result.my_begin == result.my_end && result.my_begin > 0) --result.my_begin;
  return result;
}

// A message has at most kMaxPieces pieces, and both sides must cut it alike. So the bound follows from values that they
// share.
uint64_t bounded_segment(uint64_t preferred, const Scatter& scatter) {
  if (scatter.units <= kMaxPieces / 2) return preferred;
  const uint64_t bound = kMaxPieces / 2 * scatter.shortest_bytes;
  uint64_t segment = 64;
  while (segment * 2 <= std::min(preferred, bound)) segment *= 2;
  return segment;
}

}  // namespace

void bind_steps(PreparedPhase& phase, const SegmentRule& rule, const Scatter& scatter, uint64_t& staging_bytes) {
  const Plan& plan = *phase.plan;
  phase.logical_begin.assign(1, 0);
  uint64_t longest = 0;
  for (uint64_t bytes : phase.logical_bytes) {
    phase.logical_begin.push_back(phase.logical_begin.back() + bytes);
    longest = std::max(longest, bytes);
  }
  phase.scratch_stride = (longest + 63) / 64 * 64;
  phase.scratch_offset = staging_bytes;
  staging_bytes += phase.scratch_stride * plan.scratch;
  phase.segment_bytes = bounded_segment(rule.bytes, scatter);
  for (const Step& step : plan.steps) {
    phase.step_bytes.push_back(bytes_before(phase, step, step.blocks));
    phase.step_segment_bytes.push_back(
        segment_bytes_of({phase.segment_bytes, rule.per_message}, phase.step_bytes.back()));
    for (uint32_t d = 0; d < step.dependencies; ++d) {
      phase.dependencies.push_back(to_bytes(phase, step, plan.dependencies[step.first_dependency + d]));
    }
  }
}

}  // namespace trestle
