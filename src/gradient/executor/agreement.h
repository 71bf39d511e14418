// RankAgreement: collective exchanges of a scheduler's ranks. They find out whether all ranks make the same call with
// the same tensors, and bring rank 0's plan to all.
//
// Used by the executor's thread, while nothing else is on the communicator. A rank that cannot go on takes part all the
// same, so that every rank's call ends with a sentence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "gradient/executor/core_calls.h"
#include "gradient/executor/links/link_access.h"
#include "gradient/executor/tensor_table.h"

namespace trestle {

class RankAgreement {
 public:
  // The communicator and the access to it must outlive it. Errors: the communicator's.
  static Result<RankAgreement> make(trestleComm_t comm, LinkAccess& access);
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Success if all ranks make the same call: `function` with the same text, settings and tensors. own: why this rank
  // cannot make the call, or success. If a rank cannot, all ranks get that rank's code. Other errors name the rank that
  // differs from rank 0.
  Status compare(const char* function, const std::string& text, const GradientSettings& settings,
                 const std::vector<TensorEntry>& tensors, const Status& own) const;
  // Whether all ranks could do `what`.
  Status all_could(const char* what, const Status& own) const;
  // Rank 0's bytes, checked with their checksum; or rank 0's error with its sentence. Other ranks' `mine` is ignored.
  Result<std::vector<std::byte>> from_rank_0(const Result<std::vector<std::byte>>& mine) const;
  // Means over the ranks.
  Result<std::vector<double>> means(std::vector<double> values) const;
  // Passes on how this rank's part of something ended that all ranks do now. After an error all communicators fail,
  // because the other ranks would wait for this one.
  Status part(Status own) const {
    if (!own.ok()) access_->fail(own.error());
    return own;
  }

 private:
  RankAgreement(trestleComm_t comm, LinkAccess& access) : comm_(comm), access_(&access) {}
  Status checked(trestleResult_t result) const { return part(core_status(result, comm_)); }
  // Waits for a call on the agreement's stream. When finished() returns, the call's memory is no longer in use.
  Status finished(trestleResult_t issued) const;
  // The words of all ranks, rank by rank. All ranks must give the same number of words.
  Result<std::vector<uint64_t>> gather(const std::vector<uint64_t>& words) const;
  Status broadcast(void* data, size_t bytes) const;
  Status difference(size_t most_tensors, const std::vector<TensorEntry>& tensors) const;

  trestleComm_t comm_;
  LinkAccess* access_;
  CoreStream stream_;
  int ranks_ = 1;
  int rank_ = 0;
};

}  // namespace trestle
