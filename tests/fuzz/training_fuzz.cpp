// Workload files of `trestle train`, and names of policies: any text gives a step that every policy can plan, or an
// error with a sentence.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "cli/train/workload_file.h"
#include "gradient/network_cost.h"
#include "gradient/policy/policies.h"

using namespace trestle;

namespace {

constexpr size_t kMostPlannedTensors = 30;  // more takes long

void plan_all(const GradientWorkload& workload) {
  const GradientLink link = halved_link({1e-3, 1e-9});
  for (const ChosenPolicy& chosen : allowed_policies(kLibertyNone)) {
    const Result<PlannedStep> step = plan_step(chosen, workload, link);
    if (!step.ok()) {
      CHECK(step.error().code == Code::kInvalidArgument, "a plan breaks its rules");
      continue;
    }
    const double compute_s = workload.forward_s() + workload.backward_s();
    CHECK(step.value().time.iteration_s >= compute_s * (1 - 1e-9), "a step is shorter than its compute time");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<ChosenPolicy> policy = parse_gradient_policy(text);
  CHECK(policy.ok() || !policy.error().message.empty(), "an error without a sentence");
  const Result<GradientWorkload> parsed = parse_workload(text, "file");
  if (!parsed.ok()) {
    CHECK(parsed.error().code == Code::kInvalidArgument, "a malformed workload file has a code of its own");
    CHECK(parsed.error().message.find("file:") == 0, "an error does not name the file and the line");
    return 0;
  }
  CHECK(!parsed.value().tensors.empty(), "a workload without tensors was accepted");
  if (parsed.value().tensors.size() <= kMostPlannedTensors) plan_all(parsed.value());
  return 0;
}
