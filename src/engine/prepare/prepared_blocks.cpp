#include "engine/prepare/prepared_blocks.h"

#include "base/check.h"
#include "engine/prepare/binding.h"

namespace trestle {

namespace {

using Ranges = std::vector<ElementRange>;  // of one buffer, in elements

Ranges ranges_of(const BlockList& list) {
  Ranges ranges;
  for (size_t r = 0; r < list.counts.size(); ++r) ranges.push_back({list.starts[r], list.counts[r]});
  return ranges;
}

// The blocks of both buffers; empty for a buffer that this rank does not have.
struct Sides {
  Ranges input;
  Ranges output;
};

Sides even_sides(const PreparedPhase& phase, const PrepareRequest& request, int32_t rank, const Ranges& units) {
  const auto me = static_cast<size_t>(rank);
  const Ranges own = {{units[me].offset - me * request.count, units[me].count}};
  const auto side = [&](uint32_t blocks) { return blocks == 0 ? Ranges() : blocks == 1 ? own : units; };
  if (units.size() == 1) return {own, own};
  return {side(input_blocks(*phase.plan)), side(output_blocks(*phase.plan))};
}

Sides uneven_sides(const PreparedPhase& phase, const PrepareRequest& request) {
  const Ranges own = {{0, request.count}};
  const auto side = [&](const BlockList& list, uint32_t blocks) {
    return !list.counts.empty() ? ranges_of(list) : blocks != 0 ? own : Ranges();
  };
  return {side(request.blocks->sent, input_blocks(*phase.plan)),
          side(request.blocks->received, output_blocks(*phase.plan))};
}

// The logical blocks of each rank's block.
Ranges cut(const Ranges& ranges, uint32_t parts) {
  Ranges cut;
  cut.reserve(ranges.size() * parts);
  for (const ElementRange& range : ranges) {
    for (uint32_t part = 0; part < parts; ++part) {
      const ElementRange inside = nth_range(range.count, parts, part);
      cut.push_back({range.offset + inside.offset, inside.count});
    }
  }
  return cut;
}

BlockTable table_of(const Ranges& ranges, BufferId buffer, uint32_t element_bytes) {
  TableBuilder table(Placement::direct(buffer, element_bytes));
  for (const ElementRange& range : ranges) {
    table.open_block();
    table.add(0, range);
  }
  return table.take();
}

// By logical block. The side that lists all blocks has their lengths. A rank without such a side knows only its own
// block, unless all blocks are equal.
Ranges logical_blocks(const Sides& sides, const PrepareRequest& request, size_t blocks, size_t rank,
                      const Ranges& units) {
  if (sides.input.size() == blocks) return sides.input;
  if (sides.output.size() == blocks) return sides.output;
  if (!request.blocks) return units;
  Ranges ranges(blocks);
  ranges[rank] = {0, request.count};
  return ranges;
}

}  // namespace

void lay_out_blocks(PreparedPhase& phase, const PrepareRequest& request, int32_t rank, const Ranges& units) {
  CHECK(phase.choice.dimension == kFlat, "blocks that go straight to all ranks have no dimension");
  const auto element_bytes = static_cast<uint32_t>(size_of(request.type));
  Sides sides = request.blocks ? uneven_sides(phase, request) : even_sides(phase, request, rank, units);
  if (const uint32_t parts = parts_of(*phase.plan); parts != 1) {
    sides = {cut(sides.input, parts), cut(sides.output, parts)};
  }
  for (const ElementRange& block :
       logical_blocks(sides, request, phase.plan->blocks, static_cast<size_t>(rank), units)) {
    phase.logical_bytes.push_back(block.count * element_bytes);
  }
  if (phase.choice.kind == PhaseKind::kAllToAllV) {
    for (const ElementRange& block : sides.output) phase.received_bytes.push_back(block.count * element_bytes);
  }
  phase.input = table_of(sides.input, BufferId::kSend, element_bytes);
  phase.output = table_of(sides.output, BufferId::kRecv, element_bytes);
}

}  // namespace trestle
