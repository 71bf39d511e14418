#include "base/files/text_file.h"
#include "cli/train/workload_file.h"

namespace trestle {

Result<GradientWorkload> read_workload_file(const std::string& path) {
  return parse_workload(TRY(read_text_file("workload file", path, 4)), path);
}

}  // namespace trestle
