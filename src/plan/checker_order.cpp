// Order: take any two accesses to one cell, one of them a write. The later one in plan order must have a path of
// dependencies to the earlier one. It is enough to check neighbours: a read and the write before it, a write and the
// reads since the write before it, a write and the write before it if there is no read in between. Longer distances are
// chains of these.
#include <utility>

#include "plan/cells.h"
#include "plan/checker_parts.h"

namespace trestle::checking {

namespace {

struct Access {
  uint32_t step = 0;
  uint32_t position = 0;
};

struct CellHistory {
  bool written = false;
  Access writer;
  std::vector<Access> readers;
};

class OrderCheck {
 public:
  explicit OrderCheck(const Plan& plan) : plan_(plan), cells_(plan), histories_(cells_.buffer_cells() + plan.scratch) {}

  Status run() {
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      for (uint32_t s = step.first_source; s < step.first_source + step.sources; ++s) {
        if (plan_.sources[s].peer == kLocal) TRY(reads(i, plan_.sources[s].blocks));
      }
      if (step.kind != StepKind::kSend) TRY(writes(i, step.destination));
    }
    return {};
  }

 private:
  Status reads(uint32_t step, const BlockRange& range) {
    for (uint32_t i = 0; i < range.count; ++i) {
      CellHistory& cell = histories_[cells_.of(range.space, range.first + i)];
      const Access me{step, i};
      if (cell.written && !ordered(me, cell.writer)) {
        return fault(step_name(plan_, step) + " reads " + block_name(range.space, range.first + i) +
                     " without waiting for " + step_name(plan_, cell.writer.step) + ", which writes it");
      }
      cell.readers.push_back(me);
    }
    return {};
  }

  Status writes(uint32_t step, const BlockRange& range) {
    for (uint32_t i = 0; i < range.count; ++i) {
      CellHistory& cell = histories_[cells_.of(range.space, range.first + i)];
      const Access me{step, i};
      for (const Access& reader : cell.readers) {
        if (reader.step == step && reader.position == i) continue;  // reads and writes element by element
        if (reader.step == step || !ordered(me, reader)) {
          return fault(step_name(plan_, step) + " overwrites " + block_name(range.space, range.first + i) +
                       " without waiting for " + step_name(plan_, reader.step) + ", which reads it");
        }
      }
      if (cell.written && cell.readers.empty() && !ordered(me, cell.writer)) {
        return fault(step_name(plan_, step) + " overwrites " + block_name(range.space, range.first + i) +
                     " without waiting for " + step_name(plan_, cell.writer.step) + ", which writes it too");
      }
      cell.readers.clear();
      cell.written = true;
      cell.writer = me;
    }
    return {};
  }

  // Whether `later` waits for `earlier`, directly or through other steps of this rank.
  bool ordered(const Access& later, const Access& earlier) {
    if (waits_directly(later, earlier)) return true;
    // Only hand-written plans get here: searches back through the dependencies.
    std::vector<Access> open{later};
    std::vector<std::vector<bool>> seen(plan_.steps.size());
    while (!open.empty()) {
      const Access at = open.back();
      open.pop_back();
      if (at.step == earlier.step && at.position == earlier.position) return true;
      if (at.step <= earlier.step) continue;
      if (seen[at.step].empty()) seen[at.step].resize(plan_.steps[at.step].blocks);
      if (seen[at.step][at.position]) continue;
      seen[at.step][at.position] = true;
      const Step& step = plan_.steps[at.step];
      for (uint32_t i = 0; i < step.dependencies; ++i) {
        const Dependency& d = plan_.dependencies[step.first_dependency + i];
        if (covers(d, at.position)) open.push_back({d.step, d.its_first + (at.position - d.my_first)});
      }
    }
    return false;
  }

  bool waits_directly(const Access& later, const Access& earlier) const {
    const Step& step = plan_.steps[later.step];
    for (uint32_t i = 0; i < step.dependencies; ++i) {
      const Dependency& d = plan_.dependencies[step.first_dependency + i];
      if (d.step == earlier.step && covers(d, later.position) &&
          d.its_first + (later.position - d.my_first) == earlier.position) {
        return true;
      }
    }
    return false;
  }

  static bool covers(const Dependency& d, uint32_t position) {
    return position >= d.my_first && position - d.my_first < d.count;
  }

  const Plan& plan_;
  Cells cells_;
  std::vector<CellHistory> histories_;
};

}  // namespace

Status check_order(const Plan& plan) {
  return OrderCheck(plan).run();
}

}  // namespace trestle::checking
