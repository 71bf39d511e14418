// RankAgreement: collective exchanges of a scheduler's ranks. They find out whether all ranks make the same call with
// the same tensors, and bring rank 0's plan to all.
//
// Used by the executor's thread, while nothing else is on the communicator. A rank that cannot go on takes part all the
// same, so that every rank's call ends with a sentence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/agree/agree.h"
#include "base/result.h"
#include "gradient/executor/core_calls.h"
#include "gradient/executor/links/link_access.h"
#include "gradient/executor/tensor_table.h"

namespace trestle {

// What must be the same on all ranks of a scheduler's call. said: of this call alone.
Facts facts_of(const GradientSettings& settings, const std::vector<TensorEntry>& tensors, Facts said = {});

class RankAgreement {
 public:
  // The communicator and the access to it must outlive it. Errors: the communicator's.
  static Result<RankAgreement> make(trestleComm_t comm, LinkAccess& access);
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // As trestle::agree.
  Status agree(const char* function, const Facts& facts, const Status& own) const;
  // Rank 0's bytes. Other ranks' are ignored.
  Result<std::vector<std::byte>> from_rank_0(std::vector<std::byte> bytes) const;
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
  Status broadcast(void* data, size_t bytes) const;

  trestleComm_t comm_;
  LinkAccess* access_;
  CoreStream stream_;
  int ranks_ = 1;
  int rank_ = 0;
};

}  // namespace trestle
