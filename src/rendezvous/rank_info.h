// RankInfo: what every rank tells all others before a communicator exists, and the check that all ranks agree.
//
// Value type, any thread. Decoding trusts nothing: it checks every length against the bytes that are there and against
// a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/agree/agree.h"
#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

struct RankInfo {
  int32_t rank = 0;
  RankPlace place;                               // place.process_id: process_token()
  uint32_t pid = 0;                              // for messages
  std::map<std::string, std::string> addresses;  // transport's name -> Transport::address()
  Said agreed;                                   // what must be the same on all ranks
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

// TRESTLE_RAILS: interfaces and rates may differ, because hosts do. kInvalidArgument: it cannot be read.
Result<Fact> rails_fact(const std::string& rails);
// As compare_said(). infos[r] is rank r's.
Status compare_configuration(const std::vector<RankInfo>& infos);

}  // namespace trestle
