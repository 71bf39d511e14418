// What a scheduler of gradients needs of its communicators beyond the public functions. Used by src/api only.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "gradient/executor/links/link_access.h"
#include "trestle/trestle.h"

namespace trestle {

// Errors: a communicator takes no calls. The communicators need not outlive the result.
Result<std::unique_ptr<LinkAccess>> make_link_access(const std::vector<trestleComm_t>& comms);

}  // namespace trestle
