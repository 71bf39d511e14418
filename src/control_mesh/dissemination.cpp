#include "control_mesh/dissemination.h"

#include <algorithm>

#include "base/check.h"
#include "base/text/byte_text.h"

namespace trestle {

int dissemination_steps(int32_t ranks) {
  int steps = 0;
  while ((int64_t{1} << steps) < ranks) ++steps;
  return steps;
}

std::vector<int32_t> mesh_neighbours(int32_t rank, int32_t ranks) {
  std::vector<int32_t> neighbours;
  for (const int direction : {1, -1}) {
    for (int k = 0; k < dissemination_steps(ranks); ++k)
      neighbours.push_back(static_cast<int32_t>((int64_t{rank} + ranks + direction * (int64_t{1} << k)) % ranks));
  }
  return neighbours;
}

Dissemination::Dissemination(int32_t rank, int32_t ranks)
    : rank_(rank), ranks_(ranks), steps_(dissemination_steps(ranks)), arrived_(static_cast<size_t>(steps_)) {}

int32_t Dissemination::block_count(int step) const {
  const int32_t held = int32_t{1} << step;
  return std::min(held, ranks_ - held);
}

void Dissemination::start(std::string mine) {
  CHECK(!started_, "an all-gather of the control mesh was started twice with one number");
  started_ = true;
  held_.push_back(std::move(mine));
}

bool Dissemination::receive(int step, std::string payload) {
  if (step < 0 || step >= steps_ || step < step_ || arrived_[static_cast<size_t>(step)]) return false;
  arrived_[static_cast<size_t>(step)] = std::move(payload);
  return true;
}

std::vector<Dissemination::Message> Dissemination::advance(bool& sane) {
  std::vector<Message> messages;
  sane = true;
  while (started_ && step_ < steps_) {
    if (sent_ == step_) {
      ByteWriter out;
      for (int32_t i = 0; i < block_count(step_); ++i) out.text(held_[static_cast<size_t>(i)]);
      messages.push_back({sent_++, out.take()});
    }
    auto& payload = arrived_[static_cast<size_t>(step_)];
    if (!payload) break;
    if (!unpack(*payload)) {
      sane = false;
      break;
    }
    payload.reset();
    ++step_;
  }
  return messages;
}

bool Dissemination::unpack(const std::string& payload) {
  ByteReader in(payload);
  for (int32_t i = 0; i < block_count(step_); ++i) held_.emplace_back(in.text(kMaxBlobBytes));
  return in.at_end();
}

std::vector<std::string> Dissemination::take_blobs() {
  std::vector<std::string> blobs(held_.size());
  for (int32_t i = 0; i < ranks_; ++i)
    blobs[static_cast<size_t>((rank_ - i + ranks_) % ranks_)] = std::move(held_[static_cast<size_t>(i)]);
  return blobs;
}

}  // namespace trestle
