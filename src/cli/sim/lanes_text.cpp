#include "cli/sim/lanes_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/text_line.h"

namespace trestle {
namespace {

constexpr std::string_view kChunkNames = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

char kind_mark(PhaseKind kind) {
  return kind == PhaseKind::kReduceScatter ? '>' : kind == PhaseKind::kAllGather ? '<' : '=';
}

// For each part of the time the phase that covers most of it; nullptr if there is none.
std::vector<const SimPhaseView*> shown(const SimLane& lane, double time_ns, uint32_t width) {
  std::vector<const SimPhaseView*> cells(width, nullptr);
  std::vector<double> most_ns(width, 0);
  const double cell_ns = time_ns / width;
  for (const SimPhaseView& phase : lane.phases) {
    for (auto c = static_cast<size_t>(phase.start_ns / cell_ns); c < width; ++c) {
      const double begin_ns = static_cast<double>(c) * cell_ns;
      if (begin_ns >= phase.end_ns) break;
      const double overlap_ns = std::min(phase.end_ns, begin_ns + cell_ns) - std::max(phase.start_ns, begin_ns);
      if (overlap_ns <= most_ns[c]) continue;
      most_ns[c] = overlap_ns;
      cells[c] = &phase;
    }
  }
  return cells;
}

}  // namespace

std::string lanes_text(const std::vector<SimLane>& lanes, double time_ns, uint32_t width) {
  if (time_ns <= 0 || width == 0) return "";
  std::string text;
  for (const SimLane& lane : lanes) {
    std::string chunks;
    std::string kinds;
    for (const SimPhaseView* phase : shown(lane, time_ns, width)) {
      chunks += phase == nullptr ? '.' : kChunkNames[phase->id.chunk % kChunkNames.size()];
      kinds += phase == nullptr ? ' ' : kind_mark(phase->kind);
    }
    char head[128];
    std::snprintf(head, sizeof head, "  %s, busy %.1f %%\n", lane.name.c_str(), 100 * lane.busy_ns / time_ns);
    text += head + ("  |" + chunks) + "|\n  |" + kinds + "|\n";
  }
  std::string axis = "  0";
  const std::string end = time_text(time_ns);
  axis.append(std::max<size_t>(width + 3 - std::min<size_t>(width, end.size()), 4) - axis.size(), ' ');
  return text + axis + end + "\n";
}

std::string sparkline(const std::vector<double>& shares) {
  static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const double share : shares) text += kBlocks[std::clamp(static_cast<int>(std::lround(share * 8)), 0, 8)];
  return text;
}

}  // namespace trestle
