// Names of calls between ranks, used by inquiries about which rank is to blame for a late one.
#pragma once

#include <cstdint>
#include <string>

namespace trestle {

// The kinds of calls in which a rank may wait for others. All but the first wait over the control mesh.
enum class CallKind : uint8_t { kOperation, kSplit, kFinalize, kCreation };

// Identifies a call of a rank, so that another rank can ask about it. Collectives are numbered. Messages are numbered
// per pair of ranks and direction. Splits have numbers of their own.
struct OperationKey {
  uint64_t number = 0;
  int32_t peer = -1;  // of a message; -1: a collective
  bool sending = false;
  CallKind kind = CallKind::kOperation;
  bool operator==(const OperationKey&) const = default;
};

// A call whose deadline has passed, or that waits for long.
struct Overdue {
  OperationKey operation;
  int32_t awaited = -1;  // the awaited rank; -1: none can be named
  int64_t timeout_ns = 0;
  std::string sentence;
  int64_t waited_s = 0;  // it waits for that long, which is only said; 0: its deadline has passed
};

}  // namespace trestle
