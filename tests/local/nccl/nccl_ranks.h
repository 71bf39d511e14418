// Ranks that use NCCL's interface, in isolated processes (support/ranks.h).
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

namespace nccl_ranks {

using Body = std::function<void(int rank, ncclComm_t comm)>;

// Runs the body on every rank of a communicator, and destroys it. Ranks are processes, or threads of one process
// that made them with ncclCommInitAll.
void on_processes(int ranks, const Body& body);
void on_threads(int ranks, const Body& body);
// Processes without a communicator; `id` is the same one on all.
void with_id(int ranks, const std::function<void(int rank, ncclUniqueId id)>& body);

// Success, or an assertion failure with the code and the sentence.
testing::AssertionResult succeeded(ncclResult_t result, ncclComm_t comm = nullptr);
// Succeeds if the code is `expected`, and the sentence contains all `facts`.
testing::AssertionResult refused(ncclResult_t result, ncclResult_t expected, const std::vector<std::string>& facts,
                                 ncclComm_t comm = nullptr);

}  // namespace nccl_ranks
