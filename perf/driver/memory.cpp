#include "perf/driver/memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace trestle::perf {
namespace {

constexpr size_t kUnknown = std::numeric_limits<size_t>::max();

size_t read_number(const char* path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? value : kUnknown;  // "max" is not a number: no limit
}

size_t system_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  size_t value = 0;
  while (file >> name >> value) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return value * 1024;
  }
  return kUnknown;
}

}  // namespace

size_t available_memory_bytes() {
  const size_t limit = read_number("/sys/fs/cgroup/memory.max"), used = read_number("/sys/fs/cgroup/memory.current");
  const size_t rest = limit == kUnknown || used == kUnknown ? kUnknown : limit - std::min(limit, used);
  return std::min(rest, system_available_bytes());
}

int local_processes(int processes) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    const char* text = std::getenv(name);
    const int value = text != nullptr ? std::atoi(text) : 0;
    if (value > 0) return std::min(value, processes);
  }
  return processes;
}

}  // namespace trestle::perf
