// A model to train in tests: tensors with memory, whose gradients depend on rank and step, and the sums to expect. One
// per rank.
#pragma once

#include <gtest/gtest.h>
#include <trestle/gradient.h>
#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/ranks.h"

namespace gradients {

struct Tensor {
  size_t count = 0;
  trestleDataType_t type = trestleFloat32;
  size_t bytes() const;
};

// Where the gradients lie.
enum class Memory : uint8_t {
  kTogether,  // one behind the other, as registered
  kApart,     // with gaps, so that they must be copied
  kMoving,    // registered without memory; each step says where
};

enum class Numbers : uint8_t {
  kRounding,  // sums round, so that the order of the additions shows
  kWhole,     // small whole numbers: sums are exact
};

class Model {
 public:
  Model(std::vector<Tensor> tensors, Memory memory, int rank, Numbers numbers = Numbers::kRounding);

  // Registers all tensors; with a parameter for each if `parameters`.
  void register_in(trestleGrad_t grad, bool parameters = false);
  // Writes this rank's gradients of a step.
  void fill(uint64_t step);
  // Makes all gradients ready in an order that the seed shuffles.
  void make_ready(trestleGrad_t grad, uint64_t seed);
  // A whole step, until its sums are there.
  void step(trestleGrad_t grad, uint64_t number, uint64_t seed);
  // What trestleGradReady is given for a tensor.
  void* given(size_t tensor);

  int tensors() const { return static_cast<int>(tensors_.size()); }
  const Tensor& tensor(size_t i) const { return tensors_[i]; }
  std::byte* gradient(size_t i);
  std::byte* parameter(size_t i) { return parameters_[i].data(); }

  // The sums of the step's gradients over all ranks, by a collective of the program's own over the buffers that the
  // groups fuse: plain all-reduces, or all-reduces in halves. Collective; the scheduler must be synchronized.
  std::vector<std::vector<std::byte>> sums(trestleComm_t comm, uint64_t step,
                                           const std::vector<std::pair<size_t, size_t>>& groups, bool halves,
                                           trestleRedOp_t op = trestleSum);
  // Sums of whole numbers for the steps first .. last, without any collective; zeros if there are none.
  std::vector<std::vector<std::byte>> whole_sums(int ranks, uint64_t first, uint64_t last) const;
  // Compares the gradients in memory; says what differs. exact: bit by bit, else within 1e-6 of the largest summand.
  std::string compare(const std::vector<std::vector<std::byte>>& expected, bool exact);
  // Compares the parameters in memory, bit by bit.
  std::string compare_parameters(const std::vector<std::vector<std::byte>>& expected);

 private:
  double number(int rank, size_t tensor, uint64_t step, size_t i) const;
  std::vector<std::byte> values(size_t tensor, uint64_t step) const;
  const std::vector<Tensor> tensors_;
  const Memory memory_;
  const int rank_;
  const Numbers numbers_;
  std::vector<size_t> offsets_;
  std::vector<std::byte> block_;
  std::vector<std::vector<std::byte>> moving_;
  std::vector<std::vector<std::byte>> parameters_;
};

trestleGrad_t make(const std::vector<trestleComm_t>& comms,
                   const trestleGradConfig_t& config = TRESTLE_GRAD_CONFIG_INITIALIZER);
trestleGrad_t make(trestleComm_t comm, trestleGradUpdate_t update = nullptr);
trestleGradStats_t stats_of(trestleGrad_t grad);
// Times for tensors of any sizes, so that all policies can plan: a millisecond of compute for each, and costs that make
// groups of some tensors best.
void set_times(trestleGrad_t grad, int tensors);
std::string plan_json(trestleGrad_t grad);
// "groups" or "gather_groups" of a plan's JSON.
std::vector<std::pair<size_t, size_t>> groups_of(const std::string& json, const std::string& member);

}  // namespace gradients
