#include "comm/device/driver_watch.h"

#include <algorithm>
#include <utility>

#include "engine/run/engine.h"
#include "engine/run/stream.h"
#include "engine/run/stream_poller.h"

namespace trestle {

namespace {

constexpr int64_t kBetweenLooksNs = 1'000'000'000;

uint32_t looks_of(int64_t timeout_ns) {
  if (timeout_ns <= 0) return DriverWatch::kMostLooks;
  return static_cast<uint32_t>(
      std::clamp<int64_t>(timeout_ns / kBetweenLooksNs, DriverWatch::kFewestLooks, DriverWatch::kMostLooks));
}

}  // namespace

DriverWatch::DriverWatch(const std::shared_ptr<Engine>& engine, std::shared_ptr<DriverCalls> calls, std::string name,
                         int64_t timeout_ns)
    : engine_(engine), calls_(std::move(calls)), name_(std::move(name)), most_looks_(looks_of(timeout_ns)) {}

void DriverWatch::poll(int64_t now_ns) {
  if (now_ns < due_ns_) return;
  due_ns_ = now_ns + kBetweenLooksNs;
  const uint32_t turns = calls_->turns();
  const bool is_same_call = turns % 2 == 1 && turns == turns_;
  turns_ = turns;
  looks_ = is_same_call ? looks_ + 1 : 0;
  if (looks_ < most_looks_) return;
  break_circle();
}

void DriverWatch::break_circle() {
  const std::shared_ptr<Engine> engine = engine_.lock();
  if (engine == nullptr) return;
  const Error why{Code::kUnhandledDeviceError,
                  name_ + ": CUDA's driver has not returned from a call for " + std::to_string(looks_) +
                      " s. Another thread of this process may be in a call of the driver that waits for a stream which "
                      "a collective holds: the first launch of a kernel, which loads it (CUDA_MODULE_LOADING=EAGER "
                      "loads kernels before), a copy to or from memory that is not pinned, cudaFree or cudaMalloc. The "
                      "communicator fails, and its streams go on; what its calls had begun may still write to their "
                      "buffers until CommAbort or CommDestroy has returned"};
  engine->fail(why);
  calls_->end();
  if (engine->device_board() != nullptr) engine->device_board()->abort_kernels();
  // The thread may wait for streams of other communicators as well.
  StreamPoller::process().let_go(let_go_own_ ? nullptr : engine.get(), why);
  let_go_own_ = true;
}

}  // namespace trestle
