// CaptureBook: the captured calls of a communicator. Graphs come and go, and may be launched when the communicator has
// ended: they know their calls by numbers in this book only.
//
// Shared by the communicator and the graphs' calls (captured_calls.h); any thread. Its mutex is held while one call is
// made, and comes before those of CallPath.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/calls/call_planner.h"

namespace trestle {

class Communicator;
class Operation;
class Stream;

// A call with all that it needs, so that making it again plans nothing and asks no driver.
struct CapturedCall {
  Call call;
  std::unique_ptr<const HeldCall> held;
  PreparedCall prepared;
  uint64_t number = 0;  // CallPath::number_capture()
};

class CaptureBook {
 public:
  explicit CaptureBook(Communicator& communicator);
  CaptureBook(const CaptureBook&) = delete;
  CaptureBook& operator=(const CaptureBook&) = delete;

  // Returns the number by which the others know it. Before close().
  uint64_t add(CapturedCall call);
  void remove(uint64_t id);

  // Makes the call once more; the operation is for the stream of the launch. nullptr: the communicator takes no calls.
  Operation* commit(uint64_t id, uint64_t replay, Stream& stream);
  void committed();  // to be called after the operations were put on streams
  // The call's communicator fails, with a sentence that begins with its rank and names the call.
  void fail(uint64_t id, uint64_t replay, const Error& error);
  // "" : it takes calls; else why not, with the name of the rank.
  std::string why_closed();

  // The communicator makes no more of these calls. Then, when the operations have ended, it lets go of their memory.
  void close();
  void clear();

 private:
  const std::string name_;  // of the rank and its communicator
  Mutex mutex_;
  Communicator* communicator_ TRESTLE_GUARDED_BY(mutex_);  // nullptr: closed
  std::map<uint64_t, CapturedCall> calls_ TRESTLE_GUARDED_BY(mutex_);
  uint64_t next_ TRESTLE_GUARDED_BY(mutex_) = 0;
};

}  // namespace trestle
