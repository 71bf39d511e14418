#include "gradient/part_channel.h"

#include <algorithm>

namespace trestle {

PartChannel::PartChannel(const GradientWorkload& workload, MessageCost cost, uint64_t part_bytes,
                         double copy_per_byte_s)
    : workload_(&workload),
      cost_(cost),
      copy_per_byte_s_(copy_per_byte_s),
      copies_(std::make_shared<MessageCopies>(workload)),
      tensors_(workload.tensors.size()),
      released_(workload.tensors.size()) {
  double now = 0;
  for (size_t i = tensors_.size(); i-- > 0;) {
    Tensor& tensor = tensors_[i];
    tensor.ready_s = now += workload.tensors[i].backward_s;
    const uint64_t bytes = workload.tensors[i].bytes;
    tensor.parts = bytes / part_bytes + (bytes % part_bytes != 0 ? 1 : 0);
    parts_left_ += tensor.parts;
  }
}

void PartChannel::release() {
  while (released_ > 0 && tensors_[released_ - 1].ready_s <= now_s_)
    waiting_.push_back(static_cast<uint32_t>(--released_));
  const auto is_sent = [this](uint32_t i) { return tensors_[i].sent == tensors_[i].parts; };
  while (!waiting_.empty() && is_sent(waiting_.back())) waiting_.pop_back();
}

void PartChannel::wait() {
  release();
  while (waiting_.empty() && released_ > 0) {
    now_s_ = std::max(now_s_, tensors_[released_ - 1].ready_s);
    release();
  }
}

void PartChannel::wait_for(const PartRun& run) {
  now_s_ = std::max(now_s_, tensors_[run.first_tensor].ready_s);
  release();
}

PartRun PartChannel::next_run(uint64_t most) const {
  uint32_t at = waiting_.back();
  const Tensor& first = tensors_[at];
  PartRun run{at, first.sent, at, first.sent};
  uint64_t room = most;
  for (; at < tensors_.size(); ++at) {
    const Tensor& tensor = tensors_[at];
    if (tensor.parts == 0) continue;
    // A run has no holes: it goes on into a tensor of which nothing has been sent.
    if (at != run.first_tensor && tensor.sent > 0) break;
    const uint64_t taken = std::min(room, tensor.parts - tensor.sent);
    run.last_tensor = at;
    run.last_part = tensor.sent + taken - 1;
    room -= taken;
    if (room == 0) break;
  }
  return run;
}

uint64_t PartChannel::parts_of(const PartRun& run) const {
  if (run.first_tensor == run.last_tensor) return run.last_part - run.first_part + 1;
  uint64_t parts = tensors_[run.first_tensor].parts - run.first_part + run.last_part + 1;
  for (uint32_t i = run.first_tensor + 1; i < run.last_tensor; ++i) parts += tensors_[i].parts;
  return parts;
}

double PartChannel::bytes_of(const PartRun& run) const {
  double bytes = 0;
  for (uint32_t i = run.first_tensor; i <= run.last_tensor; ++i) {
    const uint64_t parts = tensors_[i].parts;
    if (parts == 0) continue;
    const uint64_t begin = i == run.first_tensor ? run.first_part : 0;
    const uint64_t end = i == run.last_tensor ? run.last_part + 1 : parts;
    bytes += static_cast<double>(workload_->tensors[i].bytes) / static_cast<double>(parts) *
             static_cast<double>(end - begin);
  }
  return bytes;
}

double PartChannel::copied_bytes(const PartRun& run) const {
  return bytes_of(run) * copies_->of(MessageKind::kAllReduce, {run.first_tensor, run.last_tensor}, false);
}

MessageTime PartChannel::send(const PartRun& run) {
  MessageTime message{MessageKind::kAllReduce, {run.first_tensor, run.last_tensor}, now_s_, 0};
  message.end_s = now_s_ += cost_.startup_s + cost_.per_byte_s * bytes_of(run) + copy_per_byte_s_ * copied_bytes(run);
  parts_left_ -= parts_of(run);
  for (uint32_t i = run.first_tensor; i <= run.last_tensor; ++i) {
    Tensor& tensor = tensors_[i];
    if (tensor.parts == 0) continue;
    tensor.sent = i == run.last_tensor ? run.last_part + 1 : tensor.parts;
    tensor.end_s = now_s_;
  }
  return message;
}

double PartChannel::forward_end_s() const {
  double now = tensors_.front().ready_s;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    now = std::max(now, tensors_[i].end_s) + workload_->tensors[i].forward_s;
  }
  return now;
}

double PartChannel::forward_end_alone_s() const {
  PartChannel rest = *this;
  while (!rest.all_sent()) {
    rest.wait();
    rest.send(rest.next_run(1));
  }
  return rest.forward_end_s();
}

}  // namespace trestle
