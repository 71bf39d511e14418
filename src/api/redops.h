// Operators of reductions, built in or made by trestleRedOpCreate. Any thread. Used by src/api only.
#pragma once

#include "comm/communicator/communicator.h"

namespace trestle {

// Sets the operator of a request whose type is set: a built-in or a user-defined one of the communicator.
Status set_op(const Communicator& communicator, const char* function, int op, PrepareRequest& request);

}  // namespace trestle
