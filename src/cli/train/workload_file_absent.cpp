// Replaces workload_file.cpp if nlohmann-json was not found when Trestle was built.
#include "cli/train/workload_file.h"

namespace trestle {

Result<GradientWorkload> parse_workload(const std::string&, const std::string& source) {
  return Error{Code::kInvalidUsage,
               source + ": workload files are not built in (nlohmann-json was not found when Trestle was built)"};
}

}  // namespace trestle
