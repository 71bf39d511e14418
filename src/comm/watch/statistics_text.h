// A communicator's statistics in one line for the log. Pure; any thread.
#pragma once

#include <string>

#include "engine/run/statistics.h"
#include "topology/topology.h"

namespace trestle {

// "1200 operations (3 failed), 4.2 GiB given, waited 1.3 s; dimension 1: 2.1 GiB sent, busy 71 %; ..."
std::string to_text(const StatisticsReading& reading, const Topology& topology);

}  // namespace trestle
