#include "engine/work/device_lane.h"

namespace trestle {

Result<std::unique_ptr<DeviceLane>> DeviceLane::create(Device& device, GateWay way, uint32_t* word) {
  std::unique_ptr<DeviceLane> lane(new DeviceLane(device));
  // Collectives go before the program's own kernels, which wait for them.
  lane->stream_ = TRY(device.make_stream(true));
  lane->has_stream_ = true;
  lane->mark_ = TRY(Mark::create(device, way, kMostParts, word, true));
  return lane;
}

DeviceLane::~DeviceLane() {
  mark_.reset();
  if (!has_stream_) return;
  // A device that fails has failed its users already.
  [[maybe_unused]] const Status destroyed = device_.destroy_stream(stream_);
}

Result<uint32_t> DeviceLane::end_part(uint32_t launches, bool for_others) {
  const uint32_t ticket = TRY(for_others ? mark_->put_for_others(stream_) : mark_->put(stream_));
  parts_[(first_part_ + part_count_++) % kMostParts] = {ticket, launches};
  launches_under_way_ += launches;
  return ticket;
}

Status DeviceLane::follow(DeviceLane& other, uint32_t ticket) {
  return other.has_reached(ticket) ? Status() : other.mark_->let_wait(stream_, ticket);
}

Status DeviceLane::look() {
  reached_ = TRY(mark_->reached());
  return {};
}

bool DeviceLane::end_parts() {
  bool ended = false;
  for (; first_part_ended(); ended = true) {
    launches_under_way_ -= parts_[first_part_].launches;
    first_part_ = (first_part_ + 1) % kMostParts;
    --part_count_;
  }
  return ended;
}

// A broken device answers every question with its error; other errors do not come twice.
bool DeviceLane::still_runs() {
  Result<bool> idle = device_.is_idle(stream_);
  if (!idle.ok()) idle = device_.is_idle(stream_);
  return idle.ok() && !idle.value();
}

}  // namespace trestle
