// A communicator's statistics in lines for the log. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/run/statistics.h"
#include "topology/topology.h"
#include "transport/rail_report.h"

namespace trestle {

// "1200 operations (3 failed), 4.2 GiB given, waited 1.3 s of 9.5 s; dimension 1: 2.1 GiB sent, busy 71 %"
std::string to_text(const StatisticsReading& reading, const Topology& topology);

// "rail eth0: 2.1 GiB sent, 67 %, 0 connections lost", one for each rail of this rank, over all peers with which it has
// several. Empty if there is no such peer.
std::vector<std::string> rail_texts(std::span<const RailReport> reports);

}  // namespace trestle
