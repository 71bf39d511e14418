#include "gradient/executor/marks/step_marks.h"

#include <bit>

namespace trestle {

StepMarks::StepMarks(uint32_t tensors)
    : count_(tensors),
      words_((size_t{tensors} + 63) / 64),
      bits_(new std::atomic<uint64_t>[2 * words_]),
      seen_(new uint64_t[2 * words_]()) {
  for (size_t i = 0; i < 2 * words_; ++i) bits_[i].store(0, std::memory_order_relaxed);
}

void StepMarks::begin(uint64_t step) {
  step_ = step;
  taken_ = next_word_ = 0;
}

std::optional<uint32_t> StepMarks::take() {
  if (count_ == 0) return std::nullopt;
  if (taken_ == count_) begin(step_ + 1);
  while (found_ == 0) {
    if (next_word_ == words_) {
      next_word_ = 0;
      return std::nullopt;
    }
    const size_t word = word_of(step_, next_word_++);
    const uint64_t now = bits_[word].load(std::memory_order_acquire);
    found_ = now ^ seen_[word];
    seen_[word] = now;
  }
  const auto bit = static_cast<uint32_t>(std::countr_zero(found_));
  found_ &= found_ - 1;
  ++taken_;
  return (next_word_ - 1) * 64 + bit;
}

}  // namespace trestle
