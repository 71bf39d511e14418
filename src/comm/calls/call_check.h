// CallCheck: TRESTLE_CHECK=1. Whether all ranks make the same calls in the same order, told with both calls in words.
//
// Every message of an operation carries a check of what its sender runs (transport/agreement.h), which finds most
// mistakes but can only say "hash". Here every rank tells the next rank (modulo N) of each of its collectives in a
// letter of the control mesh, and the receiver of each Send of that; who gets a letter compares it with its own call of
// that number, whichever comes first. What is equal around the ring is equal everywhere. Nobody waits for a letter: a
// call is as asynchronous as ever, and a mistake is found some hops later, also where the operation itself was
// finished. Calls without data, splits and the finalization are no operations, but take a number and are told too.
//
// Owned by a communicator; any thread. Bounded: of kRemembered calls on either side, older ones are no longer compared.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/prepare/prepared.h"
#include "engine/run/operation.h"

namespace trestle {

// What has to be alike: `hash` of all of it, `text` for people, at most kMostCallText bytes.
struct CallSummary {
  uint64_t hash = 0;
  std::string text;
};
inline constexpr size_t kMostCallText = 1024;
// Of a collective: everything but what each rank may choose (buffers, in place, lengths that only two ranks know). Of a
// message: type and count.
CallSummary summary_of(const PrepareRequest& request);
// Of a call that is no operation and has its place in their order all the same.
CallSummary summary_of(const char* function);

class CallCheck {
 public:
  static constexpr size_t kRemembered = 4096;

  CallCheck(int32_t rank, std::vector<std::string> names) : rank_(rank), names_(std::move(names)) {}

  struct Letter {
    int32_t to = 0;
    std::string text;
  };
  // This rank makes a call. The letter that is to be sent, if any; kInvalidUsage: another rank's call differs.
  Result<std::optional<Letter>> made(const OperationKey& operation, const CallSummary& summary);
  // False: not a letter of ours.
  static bool is_letter(const std::string& text);
  // Nonsense is ignored.
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
  const std::vector<std::string> names_;
  Mutex mutex_;
  Book own_ TRESTLE_GUARDED_BY(mutex_);
  Book theirs_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
