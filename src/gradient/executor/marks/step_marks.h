// StepMarks: the gradients that the program's threads have marked and the executor has not taken yet.
//
// Any thread puts a mark, without a lock or a system call. It is one atomic operation, so no unfinished mark hides
// others. One thread, the executor's, takes the marks: those of a step in any order, and all of them before any of the
// next step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace trestle {

class StepMarks {
 public:
  explicit StepMarks(uint32_t tensors);

  // Once for each tensor and step. A tensor's mark of the step before must have been taken, and the step before that
  // must have ended. So at most two steps' marks are here.
  void put(uint64_t step, uint32_t tensor) {
    bits_[word_of(step, tensor / 64)].fetch_xor(uint64_t{1} << tensor % 64, std::memory_order_release);
  }

  // Between steps, when all marks are taken: the next marks are those of that step.
  void begin(uint64_t step);
  // The next mark of the step that the scan finds. Nothing: the scan has reached the end, and the next call begins a
  // new one. A scan finds every mark whose put() happened before the scan began. A later mark may need a new scan.
  std::optional<uint32_t> take();

 private:
  size_t word_of(uint64_t step, uint32_t word) const { return step % 2 * words_ + word; }

  const uint32_t count_;
  const size_t words_;  // of a step
  // Of even and of odd steps, by tensor: a bit that each mark flips. So the executor only reads it.
  const std::unique_ptr<std::atomic<uint64_t>[]> bits_;
  // The executor's.
  alignas(64) const std::unique_ptr<uint64_t[]> seen_;  // bits_ as the scan saw them last
  uint64_t step_ = 1;
  uint32_t taken_ = 0;      // marks of that step
  uint32_t next_word_ = 0;  // of the scan
  uint64_t found_ = 0;      // marks in the word before next_word_ that are not taken yet
};

}  // namespace trestle
