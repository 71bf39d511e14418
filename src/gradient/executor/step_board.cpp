#include "gradient/executor/step_board.h"

#include <algorithm>

namespace trestle {

StepBoard::StepBoard(uint32_t tensors) : count_(tensors), tensors_(new Tensor[tensors]), marks_(tensors) {}

StepBoard::Mark StepBoard::mark(uint32_t tensor, std::byte* gradient) {
  const Marked marked = claim(tensor);
  return {marked, marked == Marked::kYes && settle(tensor, gradient)};
}

std::vector<uint32_t> StepBoard::missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < count_; ++i) {
    if (!is_ready(i)) missing.push_back(i);
  }
  return missing;
}

bool StepBoard::between_steps() const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (is_ready(i)) return false;
  }
  return true;
}

bool StepBoard::is_complete(uint32_t tensor) const {
  return tensors_[tensor].complete.load(std::memory_order_acquire) >= ended();
}

Status StepBoard::wait(uint32_t tensor) {
  Tensor& at = tensors_[tensor];
  const uint64_t step = ended();
  TRY(until([&] { return at.complete.load(std::memory_order_acquire) >= step; }));
  at.waited.store(step, std::memory_order_release);
  return {};
}

Status StepBoard::until(const std::function<bool()>& done) {
  while (!done()) {
    const uint32_t before = news_.count();
    if (done()) break;
    if (auto why = failure()) return *std::move(why);
    news_.wait(before);
  }
  return {};
}

bool StepBoard::advance(uint64_t place) {
  uint64_t before = forward_.load(std::memory_order_acquire);
  while (before < place) {
    if (forward_.compare_exchange_weak(before, place, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool StepBoard::forward_at(uint32_t tensor) {
  return late_gathers_ && advance(ended() * (count_ + uint64_t{1}) + tensor + 1);
}

bool StepBoard::forward_needs(uint32_t tensor) {
  return late_gathers_ && tensors_[tensor].travels &&
         advance(ended() * (count_ + uint64_t{1}) + tensors_[tensor].forward_at + 1);
}

bool StepBoard::forward_over() {
  return late_gathers_ && advance((ended() + 1) * (count_ + uint64_t{1}));
}

void StepBoard::follow(const StepMessages& list) {
  followed_ = true;
  marks_.begin(ended() + 1);
  late_gathers_ = false;
  // A group's last gradient wakes the executor. Group 0: tensors that no message waits for.
  std::vector<uint32_t> group_of(count_, 0), messages_of(count_, 0);
  uint32_t groups = 1;
  for (const StepMessage& message : list.messages) {
    if (message.kind == MessageKind::kAllGather || list.after_backward) continue;
    for (uint32_t i = message.tensors.first; i <= message.tensors.last; ++i) {
      group_of[i] = groups;
      ++messages_of[i];
    }
    ++groups;
  }
  // In a plan of parts, several messages may have parts of one tensor. Such a tensor is a group of its own, because any
  // of these messages may wait for that tensor alone. So there are no more wakes than messages and such tensors. Where
  // every message is of one tensor (priority), each gradient completes a message, and overlap needs a wake for each.
  for (uint32_t i = 0; i < count_; ++i) {
    if (messages_of[i] > 1) group_of[i] = groups++;
  }
  groups_.reset(new Group[groups]);
  for (uint32_t i = 0; i < count_; ++i) {
    tensors_[i].group = group_of[i];
    tensors_[i].travels = list.waits[i];
    tensors_[i].forward_at = 0;
    ++groups_[group_of[i]].tensors;
  }
  for (uint32_t i = 0; i < count_; ++i) tensors_[i].alone = groups_[tensors_[i].group].tensors == 1;
  for (const StepMessage& message : list.messages) {
    if (!message.forward_at) continue;
    late_gathers_ = true;
    for (const uint32_t i : message.results) tensors_[i].forward_at = *message.forward_at;
  }
}

std::optional<StepBoard::Forward> StepBoard::forward() const {
  const uint64_t place = forward_.load(std::memory_order_acquire);
  if (place == 0) return std::nullopt;
  return Forward{(place - 1) / (count_ + uint64_t{1}), static_cast<uint32_t>((place - 1) % (count_ + uint64_t{1}))};
}

void StepBoard::fail(Error error) {
  {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = std::move(error);
  }
  failed_.store(true, std::memory_order_seq_cst);  // failed_ says why
  news_.ring();
}

std::optional<Error> StepBoard::failure() const {
  if (!has_failed()) return std::nullopt;
  const MutexLock lock(mutex_);
  return failure_;
}

}  // namespace trestle
