// CapturedCalls: the calls that take one place in a graph: one call, or those of a group on one stream.
//
//   capture   the calls are checked, planned and numbered, and get their memory. The graph gets a place for them.
//   launch    the device comes to the place, and is held there. A thread of the driver leaves an errand: it may neither
//             wait nor call the driver. The end of the graph is an errand, too.
//   errand    the process's poller makes the calls, as one replay, on a stream that has only this place.
//   end       the last call is done, or has failed: the launch goes on.
//
// Numbers do not depend on when a device comes to a place: ranks may launch different graphs in different orders, and
// make other calls meanwhile. All ranks must capture the same calls in the same order, and launch each capture equally
// often.
//
// Places on one lane follow each other in each launch, so they share memory. Launches that overlap on a lane are found,
// and fail the communicators.
//
// Kept by the graph. If a launch finds a communicator that takes no calls any more, it goes on without its calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator/capture_book.h"
#include "engine/run/stream.h"
#include "engine/run/stream_poller.h"
#include "engine/work/outer_stream.h"

namespace trestle {

struct CaptureRequest {
  Communicator* communicator;
  const Call* call;
  Stream* stream;  // on a lane: its outer stream is being captured
};

class CapturedCalls : public GraphCalls, public Errand {
 public:
  // Takes a place in the graph for each stream, in the order in which the streams first come, and numbers the calls in
  // their own order: other ranks may have other streams. The communicators take calls. Errors: those of a call, and the
  // driver's; the graph should then not be used. Once a call has its number, an error fails the communicators.
  static Status capture(std::span<const CaptureRequest> requests);
  explicit CapturedCalls(std::shared_ptr<CaptureLane> lane) : lane_(std::move(lane)) {}
  CapturedCalls(const CapturedCalls&) = delete;
  CapturedCalls& operator=(const CapturedCalls&) = delete;
  ~CapturedCalls() override;

  bool are_ready() const override { return ready_.load(std::memory_order_acquire); }
  void arrived(bool overlaps) override;
  void ended() override { StreamPoller::process().leave(*this); }
  void run() override;

 private:
  // A call between its place and its number.
  struct Placed {
    std::shared_ptr<CapturedCalls> place;
    CapturedCall call;
  };
  struct Entry {
    std::shared_ptr<CaptureBook> book;
    uint64_t id;
  };
  static Status take_places(std::span<const CaptureRequest> requests, std::vector<Placed>& placed);
  void add(const CaptureRequest& request, CapturedCall captured);
  void make_calls(uint64_t replay);
  void say_left_out();

  const std::shared_ptr<CaptureLane> lane_;
  std::shared_ptr<Stream> stream_;  // of the launches
  std::vector<Entry> entries_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> arrived_{false};
  std::atomic<bool> overlaps_{false};
  uint64_t replays_ = 0;  // of the poller's thread
};

}  // namespace trestle
