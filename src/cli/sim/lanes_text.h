// Lanes of phases over time as text: the picture of `trestle plan` and `trestle sim`. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sim/sim_view.h"

namespace trestle {

inline constexpr uint32_t kPictureWidth = 96;

// Two lines per lane, each with `width` parts of the time, then a time axis. The first line shows the chunk on the link
// (0-9a-zA-Z, repeated after 62; '.': none). The second line shows the kind of its phase ('>' reduce-scatter, '<'
// all-gather, '=' another).
std::string lanes_text(const std::vector<SimLane>& lanes, double time_ns, uint32_t width);
// Each fraction as a UTF-8 character from blank (0) to a full block (1).
std::string sparkline(const std::vector<double>& shares);

}  // namespace trestle
