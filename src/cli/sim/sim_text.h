// One simulated operation as text, as JSON and as a Chrome trace. Pure, any thread.
#pragma once

#include <string>

#include "cli/sim/sim_view.h"

namespace trestle {

std::string sim_text(const SimView& view);
// One object: time_ns, utilization (0 to 1), ideal_time_ns, fluid_bound_ns, sched, chunks (list of bytes, rs, ag:
// dimensions from 1, in order), dimensions (list of busy_ns, bytes, order: list of [chunk, stage] from 0, in start
// order; where rails were simulated one by one, also rails: list of interface, bytes, share (0 to 1), busy_ns,
// again_bytes, losses).
std::string sim_json(const SimView& view);
// For chrome://tracing and Perfetto. Each dimension is a process; its threads are rows of phases that do not overlap.
std::string sim_trace(const SimView& view);

}  // namespace trestle
