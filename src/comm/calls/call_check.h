// CallCheck: TRESTLE_CHECK=1. Checks that all ranks make the same calls in the same order, and reports both calls in
// words if they differ.
//
// Every message of an operation carries a check of the call that its sender runs (transport/agreement.h). That finds
// most mistakes but can only report a hash. With CallCheck, every rank sends a letter of the control mesh about each of
// its collectives to the next rank (modulo N), and about each Send to its receiver. A rank compares each letter with
// its own call of that number, whichever comes first. Calls that are equal around the ring are equal everywhere. No
// call waits for a letter, so calls stay asynchronous. A mistake is found some hops later, also when the operation
// itself has finished. Calls without data, splits and the finalization are not operations, but they take a number and
// are compared too.
//
// Owned by a communicator; any thread. Bounded: each side remembers kRemembered calls, older ones are no longer
// compared.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/rank_names.h"
#include "base/result.h"
#include "engine/prepare/prepared.h"
#include "engine/run/operation.h"

namespace trestle {

// The parts of a call that must be equal: `hash` of all of them but the place, `text` for people, at most kMostCallText
// bytes.
struct CallSummary {
  uint64_t hash = 0;
  std::string text;
  DataPlace place = DataPlace::kHost;
};
inline constexpr size_t kMostCallText = 1024;
// Collective: everything except what each rank may choose (buffers, in place, lengths that only two ranks know).
// Message: type and count.
CallSummary summary_of(const PrepareRequest& request);
// For a call that is not an operation but has a place in the order of calls.
CallSummary summary_of(const char* function);

class CallCheck {
 public:
  static constexpr size_t kRemembered = 4096;

  CallCheck(int32_t rank, const RankNames& names) : rank_(rank), names_(names) {}

  struct Letter {
    int32_t to = 0;
    std::string text;
  };
  // This rank makes a call. Returns the letter to send, if any; kInvalidUsage: another rank's call differs.
  Result<std::optional<Letter>> made(const OperationKey& operation, const CallSummary& summary);
  // False: the letter is of another kind.
  static bool is_letter(const std::string& text);
  // A malformed letter is ignored.
  Status heard(int32_t from, const std::string& text);

 private:
  using Key = std::pair<int32_t, uint64_t>;  // peer of a message or -1, number
  struct Book {
    std::map<Key, CallSummary> calls;
    std::deque<Key> ages;
    void write(const Key& key, CallSummary summary);
  };
  Status heard_call(const Key& key, int32_t from, const CallSummary& theirs);
  Status compare(const Key& key, int32_t other, const CallSummary& theirs, const CallSummary& ours) const;

  const int32_t rank_;
  const RankNames names_;
  Mutex mutex_;
  Book own_ TRESTLE_GUARDED_BY(mutex_);
  Book theirs_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
