// What the phases of a chunk do for an average. Pure, any thread.
#pragma once

#include <vector>

#include "engine/prepare/prepared.h"

namespace trestle {

// Small floats: the chunk's first reductions multiply what ranks contribute. Other types: the chunk's last reducing
// phase divides what it has added.
Status mark_average(std::vector<PreparedPhase>& phases, DataType type, const PrepareContext& context);

}  // namespace trestle
