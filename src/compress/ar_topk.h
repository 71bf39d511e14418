// AR-Topk (FLEX, arXiv 2312.02493, section 3): all workers send the same elements, those of one worker's top k, so an
// all-reduce adds them. What is not sent stays as a residual and is added to the next gradient (error feedback).
//
// ArTopkWorker is one worker's state, for its own rank. ar_topk_step runs a step of all workers in one process: the
// reference that the executor is compared with. One thread at a time per worker.
//
// This follows the paper. The authors' code differs: its residual is uninitialised at the beginning, its VAR ranks a
// smoothed norm of the uncompressed gradients, and its k is max(1, floor(c n)). The mean over workers is theirs; line
// 17 of the paper's algorithm leaves the division out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/topk.h"

namespace trestle {

// Whose top k is sent.
enum class RootRule : uint8_t {
  kStar,  // the workers in turn. Only the root's top k is needed
  kVar,   // the worker whose top k has the largest norm; ties go to the lower rank, and a NaN is the largest
};

// The root of step `step`, which counts from 1, under STAR. workers: at least 1.
uint32_t star_root(uint64_t step, uint32_t workers);

// The root under VAR. norms: |top k|^2 of each worker, at least one.
uint32_t var_root(std::span<const double> norms);

// The error feedback of one worker. After take(), every element of the gradient of accumulate() is either in residual()
// or in what was taken, to the bit, and the other one has a zero. So nothing is lost and nothing is sent twice.
class ArTopkWorker {
 public:
  explicit ArTopkWorker(size_t elements) : residual_(elements, 0.0f) {}

  // Adds a gradient to the residual: the gradient of this step, G_r. Same length (CHECKed).
  std::span<const float> accumulate(std::span<const float> gradient);

  // Takes G_r at these indices, which become zero. indices: below the length and each once.
  std::vector<float> take(std::span<const uint32_t> indices);

  std::span<const float> residual() const { return residual_; }
  void restore(std::span<const float> residual);  // of a checkpoint, same length (CHECKed)

 private:
  std::vector<float> residual_;  // between accumulate() and take(): G_r
};

struct ArTopkStep {
  uint32_t root = 0;
  std::vector<uint32_t> indices;  // ascending
  std::vector<float> values;      // the mean over workers, added in the order of ranks
  std::vector<double> norms;      // |top k|^2 per worker; empty under STAR
  std::vector<double> gains;      // per worker |sent|^2 / |G_r|^2 (compress/topk.h)
  size_t nans = 0;                // in the root's G_r
  double mean_gain() const;
};

// One step of all workers. gradients: one per worker, of the workers' length (CHECKed). step counts from 1.
ArTopkStep ar_topk_step(std::span<ArTopkWorker> workers, std::span<const std::vector<float>> gradients, double ratio,
                        RootRule rule, uint64_t step);

}  // namespace trestle
