// The messages between the ranks of a split: blobs of two all-gathers over the parent's control mesh, and a letter of a
// rank that gives up. Values; pure; any thread. Texts of other ranks are not trusted: sizes are bounded, and malformed
// ones are errors or ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace trestle {

// The first blob: what one rank contributes to the split.
struct SplitPart {
  int32_t color = 0;
  int32_t key = 0;
  uint64_t process = 0;   // equal for ranks of one process
  bool has_place = true;  // false: newcomm is NULL
  std::string refusal;    // why it cannot take part, as a sentence; or ""
};
std::string encode(const SplitPart& part);
// Error: `sender`, a rank's name, did not send a part.
Result<SplitPart> decode_split_part(const std::string& bytes, const std::string& sender);

// The second blob: where a rank waits for its neighbours.
struct SplitAddress {
  Code code = Code::kSuccess;  // else why it could not open one
  std::string address;         // "": all ranks are in one process
  std::string sentence;
};
std::string encode(const SplitAddress& address);
Result<SplitAddress> decode_split_address(const std::string& bytes, const std::string& sender);

// The letter: a member of the new communicator gives up while it joins.
struct SplitFailure {
  uint64_t number = 0;  // of the split
  Error error;
};
std::string encode(const SplitFailure& failure);
bool is_split_failure(const std::string& letter);
// nullopt: the letter is malformed.
std::optional<SplitFailure> decode_split_failure(const std::string& letter);

}  // namespace trestle
