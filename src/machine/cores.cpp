#include "machine/cores.h"

#include <algorithm>
#include <string>

#include "base/cpu/numa.h"
#include "base/host.h"

namespace trestle {

std::vector<int> usable_processors() {
  return processors_of(usable_cpu_mask());
}

// Processors of one core need not be neighbours in the list.
Result<std::vector<Core>> cores_of(const MachineLayout& layout, const std::vector<int>& usable) {
  std::vector<Core> cores;
  std::vector<int> names;  // of the cores
  for (const LayoutProcessor& processor : layout.processors) {
    if (!std::ranges::binary_search(usable, processor.number)) continue;
    if (processor.core < 0)
      return Error{Code::kSystemError, layout.source + ": it is not known which core processor " +
                                           std::to_string(processor.number) + " belongs to"};
    const auto at = static_cast<size_t>(std::ranges::find(names, processor.core) - names.begin());
    if (at == names.size()) {
      names.push_back(processor.core);
      cores.push_back({std::max(0, processor.package), {}});
    }
    std::vector<int>& threads = cores[at].processors;
    threads.insert(std::ranges::upper_bound(threads, processor.number), processor.number);
  }
  if (cores.empty()) return Error{Code::kSystemError, layout.source + " does not know the processors of this process"};
  return cores;
}

Result<std::vector<Core>> usable_cores() {
  return cores_of(TRY(read_layout()), usable_processors());
}

}  // namespace trestle
