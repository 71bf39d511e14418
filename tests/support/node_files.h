// NodeFiles: a folder like the kernel's "/sys/devices/system/node", with invented NUMA nodes. One thread.
#pragma once

#include <string>
#include <vector>

#include "local/temporary_folder.h"

namespace trestle {

class NodeFiles : public TemporaryFolder {
 public:
  // One node per list of processors.
  explicit NodeFiles(const std::vector<std::string>& processors) {
    for (size_t node = 0; node < processors.size(); ++node)
      write("node" + std::to_string(node) + "/cpulist", processors[node] + "\n");
    if (processors.empty()) return;
    write("online", (processors.size() == 1 ? "0" : "0-" + std::to_string(processors.size() - 1)) + "\n");
  }
};

}  // namespace trestle
