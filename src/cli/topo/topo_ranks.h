// The hosts and processors of the ranks of a job, gathered over a communicator of it.
#pragma once

#include <vector>

#include "base/config/config.h"
#include "base/result.h"
#include "cli/topo/topo_view.h"
#include "topology/topology.h"

namespace trestle {

struct RanksOfJob {
  std::vector<RankPlace> places;  // by rank, with what the library exchanges when it makes a communicator
  std::vector<RankView> ranks;    // by rank
  std::vector<HostView> others;   // hosts other than rank 0's, each once
  int rank = 0;                   // this one
};

// Blocks until all ranks of the job are here. `machine` is this rank's. Without a launcher, or with one rank: empty
// lists. Errors: those of the library.
Result<RanksOfJob> gather_ranks(const Config& config, const Machine& machine);

// What a rank tells the others about itself. Its text has at most 1000 bytes.
struct RankLetter {
  std::string host;
  std::string identity;  // equal: same host
  std::string boot_id;
  std::string processors;  // of the rank: "0-3"; "": too many to write
  std::string summary;     // of its machine
  bool operator==(const RankLetter&) const = default;
};
std::string encode(const RankLetter& letter);
RankLetter decode_letter(const std::string& text);
// The lists of RanksOfJob from the letters of all ranks.
RanksOfJob ranks_from(const std::vector<RankLetter>& letters);

}  // namespace trestle
