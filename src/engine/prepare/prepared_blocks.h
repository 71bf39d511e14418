// The layout of phases that move one block per rank directly between user buffers: all-to-all, gather, scatter and
// their v-variants. Used only while preparing. Pure.
#pragma once

#include <vector>

#include "engine/prepare/prepared.h"

namespace trestle {

// Fills the block lengths and tables of a phase over all ranks whose plan is set. `units`: of the phase's chunk, by
// rank; ignored for a v-variant, which has one chunk.
void lay_out_blocks(PreparedPhase& phase, const PrepareRequest& request, int32_t rank,
                    const std::vector<ElementRange>& units);

}  // namespace trestle
