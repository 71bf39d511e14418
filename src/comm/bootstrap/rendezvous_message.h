// What a rank and the root server say to each other after the handshake: one JoinRequest, one JoinAnswer. Also the
// sentences about lists of ranks.
//
// Values, any thread. On the wire: length u32, then the message; decoding trusts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trestle {

struct JoinRequest {
  uint32_t version = 0;  // TRESTLE_VERSION_CODE
  int32_t nranks = 0;
  int32_t rank = 0;
  int64_t time_left_ns = 0;  // until the rank gives up; 0: never
  std::string address;       // where it listens
};

struct JoinAnswer {
  Error error{Code::kSuccess, {}};     // kSuccess: go on
  std::vector<std::string> addresses;  // of the ranks rank + 2^k
};

inline constexpr size_t kMaxJoinBytes = 64 * 1024;

std::string encode(const JoinRequest& request);
std::string encode(const JoinAnswer& answer);
Result<JoinRequest> decode_join_request(std::string_view bytes);
Result<JoinAnswer> decode_join_answer(std::string_view bytes);
// With its length in front.
std::string framed(const std::string& message);

// "rank 3", "ranks 3, 5 and 6", "ranks 1, 2, ... and 40 more"
std::string rank_list(const std::vector<int32_t>& ranks);

}  // namespace trestle
