#include "perf/driver/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace trestle::perf {

void adopt_test_variables() {
  constexpr std::string_view kOurs = "TRESTLE_TESTS_";
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(kOurs)) entries.emplace_back(*entry);
  }
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (!value.empty()) setenv(("NCCL_TESTS_" + name.substr(kOurs.size())).c_str(), value.c_str(), 1);
    unsetenv(name.c_str());
  }
}

std::string test_variable(const std::string& name) {
  const char* value = std::getenv(("NCCL_TESTS_" + name).c_str());
  return value != nullptr ? value : "";
}

}  // namespace trestle::perf
