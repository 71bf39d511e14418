#include "engine/work/device_queue.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"

namespace trestle {

namespace {

constexpr uint32_t kPartsPerTurn = 4;  // of one call, which holds the progress lock

}  // namespace

Result<std::unique_ptr<DeviceQueue>> DeviceQueue::create(Device& device, std::shared_ptr<DeviceKernels> kernels,
                                                         std::optional<GateWay> way, const Words& words) {
  std::unique_ptr<DeviceQueue> queue(new DeviceQueue(device));
  TRY(queue->prepare(std::move(kernels), way.value_or(best_way(device)), words));
  return queue;
}

Status DeviceQueue::prepare(std::shared_ptr<DeviceKernels> kernels, GateWay way, const Words& words) {
  TRY(timer_.open());
  kernels_ = std::move(kernels);
  if (kernels_ == nullptr) kernels_ = TRY(DeviceKernels::create(device_));
  for (size_t use = 0; use < kLaneUses; ++use) lanes_[use] = TRY(DeviceLane::create(device_, way, words[use]));
  launches_.emplace(device_, *kernels_, lanes_, flights_);
  return {};
}

DeviceQueue::~DeviceQueue() {
  close(INT64_MAX);
}

void DeviceQueue::submit(Work& work) {
  work.state = WorkState::kSubmitted;
  work.result = {};
  work.ended = {};
  work.next = nullptr;
  if (closed_) return;
  (waiting_first_ == nullptr ? waiting_first_ : waiting_last_->next) = &work;
  waiting_last_ = &work;
  timer_.moved();
  issue();
  timer_.begin_beside_sleeper();
}

bool DeviceQueue::poll() {
  if (closed_ || !waits()) return false;
  look();
  bool ended = flights_.end_done();
  const bool moved = give_back_room();
  issue();
  if (failure_) ended = end_failed() || ended;
  if (ended || moved) timer_.moved();
  return ended;
}

// ---- submitting

bool DeviceQueue::has_room() const {
  const auto lane_has_room = [](const std::unique_ptr<DeviceLane>& lane) { return lane->has_room(); };
  return (begun_ || flights_.has_room()) && std::all_of(lanes_.begin(), lanes_.end(), lane_has_room);
}

void DeviceQueue::issue() {
  for (uint32_t part = 0; part < kPartsPerTurn && waiting_first_ != nullptr && !failure_ && has_room(); ++part) {
    if (!issue_part()) return;
  }
}

// False: the driver failed.
bool DeviceQueue::issue_part() {
  if (!begun_) {
    flights_.begin(*waiting_first_);
    waiting_first_->result = launches_->begin(*waiting_first_);
  }
  begun_ = true;
  Status launched = launch_part();
  if (!launched.ok()) fail(std::move(launched).error());
  return !failure_;
}

Status DeviceQueue::launch_part() {
  TRY(launches_->go_on(kLaunchesPerPart));
  for (const LaneUse use : {LaneUse::kOnDevice, LaneUse::kToHost, LaneUse::kFromHost}) {
    const uint32_t launches = launches_->take_submitted(use);
    if (launches > 0)
      flights_.submitted(use, TRY(lanes_[static_cast<size_t>(use)]->end_part(launches, others_may_follow(use))));
  }
  if (launches_->is_finished()) {
    flights_.submitted_all();
    waiting_first_ = waiting_first_->next;
    begun_ = false;
  }
  return {};
}

// Works that stay within the device are followed by others only while there is work for the host.
bool DeviceQueue::others_may_follow(LaneUse use) const {
  return use != LaneUse::kOnDevice || lanes_[static_cast<size_t>(LaneUse::kToHost)]->is_busy() ||
         lanes_[static_cast<size_t>(LaneUse::kFromHost)]->is_busy();
}

// ---- ending

void DeviceQueue::look() {
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    if (failure_) return;
    if (!lane->is_busy()) continue;
    Status looked = lane->look();
    if (!looked.ok()) fail(std::move(looked).error());
  }
}

bool DeviceQueue::give_back_room() {
  bool any = false;
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) any = lane->end_parts() || any;
  return any;
}

// After a failure work may still run, and writes to its memory. What has reached its mark was done. A device that is
// broken has no answer.
bool DeviceQueue::end_failed() {
  if (!rests_ && still_runs()) return false;
  rests_ = true;
  const bool ended = waits();
  if (begun_) waiting_first_ = waiting_first_->next;  // it is among the flights
  begun_ = false;
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    [[maybe_unused]] const Status looked = lane->look();
  }
  flights_.end_all(*failure_);
  for (; waiting_first_ != nullptr; waiting_first_ = waiting_first_->next) {
    waiting_first_->result = *failure_;
    waiting_first_->state = WorkState::kDone;
    if (waiting_first_->touched != nullptr) *waiting_first_->touched = true;
  }
  return ended;
}

bool DeviceQueue::still_runs() {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const std::unique_ptr<DeviceLane>& lane) { return lane != nullptr && lane->still_runs(); });
}

void DeviceQueue::fail(Error error) {
  if (failure_) return;
  const DeviceInfo& info = device_.info();
  failure_ = Error{error.code,
                   "work on device " + std::to_string(info.index) + " (" + info.name + ") failed: " + error.message};
}

// ---- sleeping

bool DeviceQueue::might_find_something() {
  look();
  if (failure_) return !still_runs();
  const auto has_ended = [](const std::unique_ptr<DeviceLane>& lane) { return lane->first_part_ended(); };
  return flights_.could_end_any() || std::any_of(lanes_.begin(), lanes_.end(), has_ended) ||
         (waiting_first_ != nullptr && has_room());
}

bool DeviceQueue::prepare_sleep() {
  const bool may_end = !closed_ && waits();
  if (may_end && (!timer_.may_sleep() || might_find_something())) return false;
  timer_.prepare(may_end);
  return true;
}

// ---- the end

bool DeviceQueue::close(int64_t give_up_ns) {
  closed_ = true;
  while (!rests_ && still_runs()) {
    if (monotonic_clock().now_ns() >= give_up_ns) return false;
    ::poll(nullptr, 0, 1);
  }
  rests_ = true;
  return true;
}

}  // namespace trestle
