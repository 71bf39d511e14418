// RankInfo: what every rank tells all others before a communicator exists, and the check that all ranks agree.
//
// Value type, any thread. Decoding trusts nothing: it checks every length against the bytes that are there and against
// a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

struct RankInfo {
  int32_t rank = 0;
  uint32_t version = 0;                                     // TRESTLE_VERSION_CODE
  RankPlace place;                                          // place.process_id: process_token()
  uint32_t pid = 0;                                         // for messages
  std::map<std::string, std::string> addresses;             // transport's name -> Transport::address()
  uint64_t configuration_hash = 0;                          // config_hash()
  std::vector<std::pair<std::string, std::string>> agreed;  // name and text of the variables that must be equal
  std::string rails;                                        // TRESTLE_RAILS
  uint64_t topology_hash = 0;  // of the topology file's contents and the requested dims; 0: none
};

inline constexpr size_t kMaxRankInfoBytes = 64 * 1024;

std::string encode(const RankInfo& info);
// kRemoteError describes what is wrong.
Result<RankInfo> decode_rank_info(const std::string& bytes);

// A number that no other process has: random, drawn once per process and again in a forked child.
uint64_t process_token();
// The process_token() of this process, then those of the processes that forked it, the nearest first, as far as they
// had one; at most 16.
std::vector<uint64_t> process_lineage();

// "rank 3 (host a, pid 12)"
std::string rank_name(const RankInfo& info);
std::string own_rank_name(int32_t rank);

// infos[r] is rank r's. Success, or kInvalidUsage with the same sentence on all ranks: the lowest rank that differs
// from rank 0, what differs (version, variable, topology, which dimensions TRESTLE_RAILS names interfaces for), and
// both values. kInvalidArgument if a rank's TRESTLE_RAILS cannot be read.
Status compare_configuration(const std::vector<RankInfo>& infos);

}  // namespace trestle
