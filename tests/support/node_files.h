// NodeFiles: a folder like the kernel's "/sys/devices/system/node", with invented NUMA nodes. It is removed with its
// contents. One thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace trestle {

class NodeFiles {
 public:
  // One node per list of processors.
  explicit NodeFiles(const std::vector<std::string>& processors) {
    EXPECT_NE(mkdtemp(folder_), nullptr);
    for (size_t node = 0; node < processors.size(); ++node)
      write("node" + std::to_string(node) + "/cpulist", processors[node] + "\n");
    if (processors.empty()) return;
    write("online", (processors.size() == 1 ? "0" : "0-" + std::to_string(processors.size() - 1)) + "\n");
  }
  ~NodeFiles() { std::filesystem::remove_all(folder_); }
  NodeFiles(const NodeFiles&) = delete;
  NodeFiles& operator=(const NodeFiles&) = delete;

  std::string folder() const { return folder_; }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

 private:
  char folder_[40] = "/tmp/trestle_nodes_XXXXXX";
};

}  // namespace trestle
