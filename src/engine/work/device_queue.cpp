#include "engine/work/device_queue.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/out_of_memory.h"

namespace trestle {

namespace {

constexpr uint32_t kPartsPerTurn = 4;  // of one call, which holds the progress lock

}  // namespace

Result<std::unique_ptr<DeviceQueue>> DeviceQueue::create(Device& device, std::shared_ptr<DeviceKernels> kernels,
                                                         std::optional<GateWay> way) {
  std::unique_ptr<DeviceQueue> queue(new DeviceQueue(device));
  TRY(queue->prepare(std::move(kernels), way.value_or(best_way(device))));
  return queue;
}

Status DeviceQueue::prepare(std::shared_ptr<DeviceKernels> kernels, GateWay way) {
  TRY(timer_.open());
  kernels_ = std::move(kernels);
  if (kernels_ == nullptr) kernels_ = TRY(DeviceKernels::create(device_));
  // Collectives go before the program's own kernels, which wait for them.
  stream_ = TRY(device_.make_stream(true));
  has_stream_ = true;
  mark_ = TRY(Mark::create(device_, way, kMostParts));
  launches_.emplace(device_, *kernels_, stream_);
  return {};
}

DeviceQueue::~DeviceQueue() {
  close(INT64_MAX);
  mark_.reset();
  if (!has_stream_) return;
  // A device that fails has failed its users already.
  [[maybe_unused]] const Status destroyed = device_.destroy_stream(stream_);
}

void DeviceQueue::submit(Work& work) {
  work.state = WorkState::kSubmitted;
  work.result = {};
  work.next = nullptr;
  if (closed_) return;
  (first_ == nullptr ? first_ : last_->next) = &work;
  last_ = &work;
  if (issued_ == nullptr) issued_ = &work;
  timer_.moved();
  issue();
  timer_.begin_beside_sleeper();
}

bool DeviceQueue::poll() {
  if (closed_ || first_ == nullptr) return false;
  const uint32_t first_part = first_part_;
  look();
  bool ended = end_parts();
  issue();
  if (failure_) ended = end_failed() || ended;
  if (ended || first_part_ != first_part) timer_.moved();
  return ended;
}

// ---- submitting

bool DeviceQueue::has_room() const {
  return part_count_ < kMostParts && mark_->has_room() && launches_under_way_ < kMostLaunches;
}

void DeviceQueue::issue() {
  for (uint32_t part = 0; part < kPartsPerTurn && issued_ != nullptr && !failure_ && has_room(); ++part) {
    if (!issue_part()) return;
  }
}

// False: the driver failed.
bool DeviceQueue::issue_part() {
  if (!begun_) issued_->result = launches_->begin(*issued_);
  begun_ = true;
  // Work that was submitted in part cannot be continued. So a lack of memory is a failure too, and is not tried again.
  Status launched = unless_out_of_memory([this] { return launch_part(); },
                                         [] {
                                           return Status(Error{Code::kSystemError, "out of memory"});
                                         });
  if (!launched.ok()) fail(std::move(launched).error());
  return !failure_;
}

Status DeviceQueue::launch_part() {
  const uint32_t before = launches_->submitted();
  TRY(launches_->go_on(kLaunchesPerPart));
  const uint32_t launches = launches_->submitted() - before;
  // Work without launches has ended when the work before it has.
  if (launches > 0) last_ticket_ = TRY(mark_->put(stream_));
  const bool ends_work = launches_->is_finished();
  parts_[(first_part_ + part_count_++) % kMostParts] = {last_ticket_, launches, ends_work};
  launches_under_way_ += launches;
  if (ends_work) {
    issued_ = issued_->next;
    begun_ = false;
  }
  return {};
}

// ---- ending

void DeviceQueue::look() {
  if (failure_) return;
  Result<uint32_t> reached = mark_->reached();
  if (reached.ok()) {
    reached_ = reached.value();
  } else {
    fail(std::move(reached).error());
  }
}

bool DeviceQueue::first_part_ended() const {
  return part_count_ > 0 && Mark::is_past(reached_, parts_[first_part_].ticket);
}

bool DeviceQueue::end_parts() {
  bool ended = false;
  while (first_part_ended()) {
    const Part part = parts_[first_part_];
    first_part_ = (first_part_ + 1) % kMostParts;
    --part_count_;
    launches_under_way_ -= part.launches;
    if (!part.ends_work) continue;
    end_first();
    ended = true;
  }
  return ended;
}

void DeviceQueue::end_first() {
  Work& work = *std::exchange(first_, first_->next);
  work.state = WorkState::kDone;
  if (work.touched != nullptr) *work.touched = true;
}

// After a failure work may still run, and writes to its memory.
bool DeviceQueue::end_failed() {
  if (!rests_ && still_runs()) return false;
  rests_ = true;
  // What has reached its mark was done. A device that is broken has no answer.
  if (const Result<uint32_t> reached = mark_->reached(); reached.ok()) reached_ = reached.value();
  bool ended = end_parts();
  part_count_ = 0;
  issued_ = nullptr;
  for (; first_ != nullptr; ended = true) {
    if (first_->result.ok()) first_->result = *failure_;
    end_first();
  }
  return ended;
}

// A broken device runs nothing. It answers every question with its error; other errors do not come twice.
bool DeviceQueue::still_runs() {
  if (!has_stream_) return false;
  Result<bool> idle = device_.is_idle(stream_);
  if (!idle.ok()) idle = device_.is_idle(stream_);
  return idle.ok() && !idle.value();
}

void DeviceQueue::fail(Error error) {
  if (failure_) return;
  failure_ = unless_out_of_memory(
      [&] {
        const DeviceInfo& info = device_.info();
        return Error{error.code,
                     "work on device " + std::to_string(info.index) + " (" + info.name + ") failed: " + error.message};
      },
      [&] { return std::move(error); });
}

// ---- sleeping

bool DeviceQueue::might_find_something() {
  look();
  if (failure_) return !still_runs();
  return first_part_ended() || (issued_ != nullptr && has_room());
}

bool DeviceQueue::prepare_sleep() {
  const bool waits = !closed_ && first_ != nullptr;
  if (waits && (!timer_.may_sleep() || might_find_something())) return false;
  timer_.prepare(waits);
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
