// A planned step as bytes, which rank 0 sends to the others, and as JSON. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gradient/policy/policy.h"

namespace trestle {

// Equal plans have equal bytes. The single messages' times are left out.
std::vector<std::byte> plan_bytes(const PlannedStep& step);
// Error (kInternalError): these are not the bytes of a plan.
Result<PlannedStep> plan_from_bytes(std::span<const std::byte> bytes);
// Different bytes have different checksums, except in one case of about 2^64.
uint64_t checksum(std::span<const std::byte> bytes);

// The members that `trestle train --json` gives a policy. A number that is not finite is null, as there.
std::string plan_json(const PlannedStep& step);
// A workload as `trestle train --workload` reads it.
std::string workload_json(const GradientWorkload& workload);

}  // namespace trestle
