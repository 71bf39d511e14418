// DelayedMemory: the sums of gradients that travel later than their step, and the account of which steps' gradients
// each sum has.
//
// Used by the executor's thread only. The program's memory has another gradient in every step. So the library has two
// sums of its own, for two sets (delayed_machine.h): one whose messages are under way, and one that fills. Sets with
// even numbers use one sum, sets with odd numbers the other. Steps count from 1, as those of StepBoard.
//
// The account checks that each step's gradient of a tensor is in exactly one result, or pending in one of the two sums.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "gradient/executor/core_calls.h"
#include "gradient/executor/tensor_table.h"
#include "gradient/workload.h"

namespace trestle {

class DelayedMemory {
 public:
  // A part of a bucket: elements of one type that lie together, in the same place in both sums.
  struct Run {
    DataType type = DataType::kFloat32;
    uint64_t offset = 0;  // bytes
    uint64_t count = 0;   // elements, at least 1
  };
  struct Batches {
    uint32_t count = 0;
    uint64_t oldest = 0;  // step
    uint64_t newest = 0;
  };

  // The tensors must live longer. Errors: those of trestleMemAlloc.
  static Result<std::unique_ptr<DelayedMemory>> make(trestleComm_t comm, const std::vector<TensorEntry>& tensors,
                                                     const std::vector<TensorGroup>& buckets);

  // Part `part` of a bucket that is cut into `parts` equal ones: one run for each type in it.
  std::vector<Run> runs(uint32_t bucket, uint32_t part, uint32_t parts) const;
  std::byte* at(const Run& run, uint64_t set) { return sums_[set % 2] + run.offset; }

  // Adds the tensor's gradient of a step. Sums are made in the tensor's type.
  void add(uint32_t tensor, uint64_t set, const std::byte* gradient, uint64_t step);
  const std::byte* sum(uint32_t tensor, uint64_t set) const { return sums_[set % 2] + places_[tensor]; }
  // Adds a run of the set's sum to the same run of the next set's.
  void merge(const Run& run, uint64_t set);
  // Does the same in the accounts of all tensors.
  void merge_accounts(uint64_t set);
  const Batches& batches(uint32_t tensor, uint64_t set) const { return accounts_[tensor].of[set % 2]; }
  // Notes that the tensor's sum of the set is given as a result of so many batches. After that the set's memory may
  // fill again. Error (kInternalError): a gradient is lost or counted twice.
  Result<Batches> take(uint32_t tensor, uint64_t set, uint32_t batches);
  // Batches that no result has, of the tensor that has the most of them.
  uint32_t pending() const;

 private:
  struct Account {
    std::array<Batches, 2> of;
    uint64_t added = 0;
    uint64_t given = 0;
  };
  explicit DelayedMemory(const std::vector<TensorEntry>& tensors) : tensors_(tensors) {}
  void lay_out(const std::vector<TensorGroup>& buckets);

  const std::vector<TensorEntry>& tensors_;
  std::vector<std::vector<Run>> buckets_;  // the runs of each whole bucket
  std::vector<uint64_t> places_;           // by tensor: bytes from the beginning of a sum
  uint64_t bytes_ = 0;
  CoreMemory memory_;
  std::array<std::byte*, 2> sums_{};
  std::vector<Account> accounts_;
};

}  // namespace trestle
