// CapturedCalls: the calls that take one place in a graph: one call, or those of a group on one stream.
//
//   capture   the calls are checked, planned and numbered, and get their memory. The graph gets a place for them.
//   launch    the device comes to the place, and is held there. A thread of the driver leaves an errand.
//   errand    the process's poller makes the calls, as one replay, on a stream that has only this place.
//   end       the last call is done, or has failed: the launch goes on.
//
// Numbers do not depend on when a device comes to a place: ranks may launch different graphs in different orders, and
// make other calls meanwhile. All ranks must capture the same calls in the same order, and launch each capture equally
// often.
//
// Kept by the graph. If a launch finds a communicator that takes no calls any more, it goes on without its calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/calls/capture_book.h"
#include "engine/stream/outer_stream.h"
#include "engine/stream/stream.h"
#include "engine/stream/stream_poller.h"

namespace trestle {

struct CaptureRequest {
  Communicator* communicator;
  const Call* call;
};

class CapturedCalls : public GraphCalls, public Errand {
 public:
  // Takes a place in the graph that the outer stream is being captured into. The communicators take calls. Errors:
  // those of a call, and the driver's; the graph should then not be used.
  static Status capture(std::span<const CaptureRequest> requests, Stream& stream);
  CapturedCalls() = default;
  CapturedCalls(const CapturedCalls&) = delete;
  CapturedCalls& operator=(const CapturedCalls&) = delete;
  ~CapturedCalls() override;

  bool are_ready() const override { return ready_.load(std::memory_order_acquire); }
  void arrived(bool overlaps) override;
  void run() override;

 private:
  struct Entry {
    std::shared_ptr<CaptureBook> book;
    uint64_t id;
  };
  void add(const CaptureRequest& request, CapturedCall captured);
  void make_calls(uint64_t replay);
  void say_left_out();

  std::shared_ptr<Stream> stream_;  // of the launches
  std::vector<Entry> entries_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> overlaps_{false};
  // Of the poller's thread.
  uint64_t replays_ = 0;
  bool said_ = false;
};

}  // namespace trestle
