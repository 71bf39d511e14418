#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "base/config/value_text.h"
#include "base/cpu/numa.h"
#include "base/host.h"
#include "cli/run/cores/cores.h"

namespace trestle {
namespace {

Error unreadable(const std::string& path) {
  return Error{Code::kSystemError, path + " does not tell which core a processor belongs to"};
}

// The first number of a list such as "0-1,64-65". It is the same for all processors of a core.
Result<int64_t> first_number(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return unreadable(path);
  const auto number = parse_integer(line.substr(0, line.find_first_of(",-", 1)));
  if (!number.ok()) return unreadable(path);
  return number;
}

}  // namespace

std::vector<int> usable_processors() {
  return processors_of(usable_cpu_mask());
}

Result<std::vector<Core>> cores_from_files(const std::string& folder, const std::vector<int>& processors) {
  std::map<std::pair<int64_t, int64_t>, Core> found;  // by socket and first processor of the core
  for (const int processor : processors) {
    const std::string place = folder + "/cpu" + std::to_string(processor) + "/topology/";
    // Some virtual machines have no socket numbers and report -1.
    const int64_t socket = std::max<int64_t>(TRY(first_number(place + "physical_package_id")), 0);
    Core& core = found[{socket, TRY(first_number(place + "thread_siblings_list"))}];
    core.socket = static_cast<int>(socket);
    core.processors.push_back(processor);
  }
  std::vector<Core> cores;
  for (auto& [place, core] : found) cores.push_back(std::move(core));
  return cores;
}

}  // namespace trestle
