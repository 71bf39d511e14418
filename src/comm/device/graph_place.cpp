#include "comm/device/graph_place.h"

#include <utility>

#include "comm/device/opened_devices.h"
#include "device/gate.h"

namespace trestle {

struct GraphPlace::Shared {
  Shared(OpenedDevice& of, uint32_t* with_word) : device(of), word(with_word), gate(of.device(), with_word) {}
  ~Shared() { device.links().give_word_back(word); }

  OpenedDevice& device;
  uint32_t* const word;
  GraphGate gate;
  std::shared_ptr<CaptureLane> lane;
  std::shared_ptr<GraphCalls> calls;  // until the graph ends
};

GraphPlace::GraphPlace(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

GraphPlace::~GraphPlace() = default;

Result<std::unique_ptr<OuterStream>> GraphPlace::create(OpenedDevice& device, StreamHandle* captured,
                                                        std::shared_ptr<CaptureLane> lane,
                                                        std::shared_ptr<GraphCalls> calls) {
  if (!device.links().waits_for_words()) {
    return Error{Code::kInvalidUsage,
                 "the CUDA stream is being captured into a graph, and this driver cannot let streams wait for words in "
                 "memory, which calls in a graph need: end the capture first"};
  }
  auto shared = std::make_shared<Shared>(device, TRY(device.links().take_word()));
  shared->lane = std::move(lane);
  shared->calls = std::move(calls);
  auto of_graph = std::make_unique<std::shared_ptr<Shared>>(shared);
  std::unique_ptr<OuterStream> place(new GraphPlace(shared));
  TRY(device.device().call_when_graph_ends(captured, &ended, of_graph.release()));
  TRY(shared->gate.capture(captured, &arrived, shared.get()));
  return place;
}

// A thread of the driver is here, in a launch of the graph.
void GraphPlace::arrived(void* argument) {
  Shared& shared = *static_cast<Shared*>(argument);
  if (!shared.calls->are_ready()) return;
  const bool is_free = shared.lane->held.exchange(&shared) == nullptr;
  const bool was_open = shared.gate.close();
  shared.calls->arrived(!is_free || !was_open);
}

// No launch runs any more. The calls have this place, so the graph lets them go.
void GraphPlace::ended(void* argument) {
  const std::unique_ptr<std::shared_ptr<Shared>> shared(static_cast<std::shared_ptr<Shared>*>(argument));
  const std::shared_ptr<GraphCalls> calls = std::move((*shared)->calls);
  calls->ended();
}

int GraphPlace::device() const {
  return shared_->device.device().info().index;
}

Result<OuterStream::Ticket> GraphPlace::put(bool, bool gate) {
  Ticket ticket;
  if (gate) ticket.gate = 0;
  return ticket;
}

Result<OuterStream::Ticket> GraphPlace::put_kernel(const std::function<Status(const OuterPlace&)>&) {
  return Error{Code::kInternalError, "a launch of a graph takes no kernel"};
}

Result<std::unique_ptr<OuterStream>> GraphPlace::capture(std::shared_ptr<CaptureLane>, std::shared_ptr<GraphCalls>) {
  return Error{Code::kInternalError, "a launch of a graph cannot be captured"};
}

// First says that nothing is held on the lane, so that its next place does not seem to overlap this one.
void GraphPlace::open(uint32_t) {
  const void* held = shared_.get();
  shared_->lane->held.compare_exchange_strong(held, nullptr);
  shared_->gate.open();
}

}  // namespace trestle
