// AR-Topk (FLEX, arXiv 2312.02493, section 3): all workers send the same elements, those of one worker's top k, so an
// all-reduce adds them. What is not sent stays as a residual and is added to the next gradient (error feedback). Here is
// whose top k is sent. Pure, any thread.
//
// This follows the paper. The authors' code differs: its residual is uninitialised at the beginning, its VAR ranks a
// smoothed norm of the uncompressed gradients, and its k is max(1, floor(c n)). The mean over workers is theirs; line
// 17 of the paper's algorithm leaves the division out.
#pragma once

#include <cstdint>
#include <span>

namespace trestle {

// The root of step `step`, which counts from 1, under STAR: the workers in turn. workers: at least 1.
uint32_t star_root(uint64_t step, uint32_t workers);

// The root under VAR: the worker whose top k has the largest norm; ties go to the lower rank, and a NaN is the largest.
// norms: |top k|^2 of each worker, at least one.
uint32_t var_root(std::span<const double> norms);

}  // namespace trestle
