// The messages between a rank and the root server after the handshake, and texts for lists of ranks.
//
//   rank                                 root
//   JoinRequest                  ---->
//                                <----  JoinAnswer: the failure, or where the neighbours are
//   (connects to its neighbours)
//                                <----  JoinAnswer, only when a rank fails or dies meanwhile: why
//                                <----  JoinAnswer without addresses, only when the root's process ends: go on alone
//   JoinReport: connected, or why it gives up (it may do that before the answer)  ---->
//
// Values, any thread. On the wire: length u32, then the message. Decoding trusts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_id.h"
#include "base/rank_names.h"
#include "base/result.h"

namespace trestle {

struct JoinRequest {
  uint32_t version = 0;  // TRESTLE_VERSION_CODE
  int32_t nranks = 0;
  int32_t rank = 0;
  int64_t time_left_ns = 0;  // until the rank gives up; 0: never
  std::string address;       // where it listens: its meeting_text()
  std::string name;          // "rank 3 (host a, pid 12)", for sentences
  // process_lineage(): its process, then those that forked it. Empty: not known.
  std::vector<uint64_t> lineage = {};
  std::string network = {};    // network_identity()
  std::string only_here = {};  // why other hosts cannot reach the rank; "": they can
};

struct JoinAnswer {
  Error error{Code::kSuccess, {}};     // kSuccess: go on
  std::vector<std::string> addresses;  // of the ranks rank + 2^k, then of the ranks rank - 2^k
  std::vector<std::string> names;      // of the same
  int64_t time_left_ns = 0;            // until the first of the ranks gives up; 0: never
  std::string holder;                  // name of a rank in the process that holds the rendezvous; "": none
  std::string progress;                // not "": no answer yet, but whom the ranks wait for; another message follows
  JobId job{};                         // of the communicator that is being made; drawn by the rendezvous
};

// The last message of a rank. kSuccess: it is connected with all its neighbours; else why it gives up.
struct JoinReport {
  Error error{Code::kSuccess, {}};
};

inline constexpr size_t kMaxJoinBytes = 64 * 1024;

std::string encode(const JoinRequest& request);
std::string encode(const JoinAnswer& answer);
std::string encode(const JoinReport& report);
Result<JoinRequest> decode_join_request(std::string_view bytes);
Result<JoinAnswer> decode_join_answer(std::string_view bytes);
Result<JoinReport> decode_join_report(std::string_view bytes);
// The message with its length in front.
std::string framed(const std::string& message);

// "rank 3", "ranks 3, 5 and 6", "ranks 1, 2, ... and 40 more"
std::string rank_list(const std::vector<int32_t>& ranks);

}  // namespace trestle
