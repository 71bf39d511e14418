// Replaces json_dimensions.cpp if nlohmann-json was not found when Trestle was built.
#include "topology/internal.h"

namespace trestle {

Result<std::vector<Dimension>> parse_json_dimensions(const std::string&, const std::string& source) {
  return Error{Code::kInvalidUsage,
               source + ": topology files are not built in (nlohmann-json was not found when Trestle was built)"};
}

}  // namespace trestle
