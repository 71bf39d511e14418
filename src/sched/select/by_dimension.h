// Ways to run a whole collective over the dimensions instead of in one flat phase: which phases, in which order. Pure,
// any thread.
//
//   broadcast    from the outermost dimension in. A phase on dimension d involves the groups whose outer part has the
//                data; its root is the member with the operation's root's coordinate
//   reduce       the mirror: from the innermost dimension out
//   all-reduce   reduce-scatter on the s innermost dimensions, an all-reduce phase on each one beyond (innermost
//                first), all-gather back in; s = 0: all-reduce phases only, for data too small to be split
//   barrier      all-reduce phases only; phases of kind barrier also work
//   all-to-all   an all-to-all phase of all data on each dimension, innermost first. In dimension d a rank forwards all
//                data for the ranks with each of the group's coordinates, from any sender (engine/prepare/layout.h
//                defines the places in between). P_1 + P_2 + ... - D messages instead of N-1, each longer
//
// Open MPI's HAN runs its collectives in this way (Luo et al., "HAN: a Hierarchical AutotuNed Collective Communication
// Framework", IEEE Cluster 2020, section III). All ranks of an all-reduce end with the same bits: an all-reduce phase
// leaves equal bits in its group, so the groups of the next dimension add equal inputs in the same order. The
// all-to-all is that of Bokhari and Berryman ("Complete exchange on a circuit switched mesh", SHPCC 1992), rows first,
// then columns.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.h"
#include "sched/schedule.h"

namespace trestle {

// Phases without algorithms, one list per way. The way that splits the data most comes first. Empty for collectives
// without such ways and for fewer than two dimensions.
std::vector<std::vector<PhaseChoice>> ways_by_dimension(Collective collective, size_t dimensions);

}  // namespace trestle
