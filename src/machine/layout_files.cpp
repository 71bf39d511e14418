#include <algorithm>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/cpu/numa.h"
#include "base/files/kernel_file.h"
#include "machine/layout.h"

namespace trestle {
namespace {

// The bytes that a line "MemTotal: 65433 kB" says, which may begin with "Node 0 "; 0: no line says any.
uint64_t memory_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find("MemTotal:");
    if (at == std::string::npos) continue;
    uint64_t kib = 0;
    std::istringstream(line.substr(at + std::string("MemTotal:").size())) >> kib;
    return kib * 1024;
  }
  return 0;
}

LayoutProcessor read_processor(const std::string& folder, int number) {
  const std::string place = folder + "/cpu" + std::to_string(number) + "/topology/";
  LayoutProcessor processor{.number = number};
  const auto siblings = read_processors(place + "thread_siblings_list");
  if (siblings.ok() && !siblings.value().empty()) processor.core = siblings.value().front();
  // Some virtual machines have no numbers of sockets and report -1.
  const int64_t unknown = processor.core < 0 ? -1 : 0;
  processor.package = static_cast<int>(std::max(number_in(place + "physical_package_id", unknown), unknown));
  return processor;
}

// A machine without NUMA has no files about nodes.
void add_nodes(const KernelFiles& files, MachineLayout& layout) {
  const std::string folder = files.sysfs + "/devices/system/node";
  const auto nodes = all_numa_nodes(folder);
  if (!nodes.ok() || nodes.value().empty()) {
    layout.nodes.push_back({0, memory_in(files.proc + "/meminfo")});
    for (LayoutProcessor& processor : layout.processors) processor.node = 0;
    return;
  }
  for (const NumaNode& node : nodes.value()) {
    layout.nodes.push_back({node.number, memory_in(folder + "/node" + std::to_string(node.number) + "/meminfo")});
    for (LayoutProcessor& processor : layout.processors) {
      if (std::ranges::binary_search(node.processors, processor.number)) processor.node = node.number;
    }
  }
}

}  // namespace

Result<MachineLayout> layout_from_files(const KernelFiles& files) {
  const std::string folder = files.sysfs + "/devices/system/cpu";
  MachineLayout layout;
  layout.source = "the kernel's files";
  for (const int number : TRY(read_processors(folder + "/online")))
    layout.processors.push_back(read_processor(folder, number));
  if (layout.processors.empty()) return Error{Code::kSystemError, folder + "/online names no processor"};
  add_nodes(files, layout);
  // Threads of a core are neighbours, and cores of a package.
  std::ranges::sort(layout.processors, [](const LayoutProcessor& a, const LayoutProcessor& b) {
    return std::tuple(a.package, a.core, a.number) < std::tuple(b.package, b.core, b.number);
  });
  return layout;
}

}  // namespace trestle
