// The scopes of trestleCallConfigPush. They belong to the calling thread. Used by src/api only.
#pragma once

#include "comm/calls/call.h"

namespace trestle {

// Applies the calling thread's trestleCallConfigPush scopes to the call.
void apply_call_config(Call& call);

}  // namespace trestle
