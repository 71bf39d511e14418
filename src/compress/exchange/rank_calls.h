// Collectives of the public header, each waited for. One thread at a time. The communicator must outlive it.
//
// They run on a stream of their own, so nothing waits for what the program has under way. Algorithms are chosen freely
// unless one is named. Scopes of the calling thread's trestleCallConfigPush do not apply, except their deadlines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "trestle/trestle.h"

namespace trestle {

class RankCalls {
 public:
  // Errors: the communicator's.
  static Result<RankCalls> make(trestleComm_t comm);
  RankCalls(RankCalls&& other) noexcept
      : comm_(other.comm_), stream_(std::exchange(other.stream_, nullptr)), ranks_(other.ranks_), rank_(other.rank_) {}
  RankCalls& operator=(RankCalls&&) = delete;
  ~RankCalls();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // count: elements of one rank; all has `ranks` times as many.
  Status all_gather(const void* own, void* all, size_t count, trestleDataType_t type) const;
  Status broadcast(void* data, size_t count, trestleDataType_t type, int root) const;
  // In place. algorithm: as TRESTLE_ALGO.
  Status all_reduce(void* data, size_t count, trestleDataType_t type, trestleRedOp_t op,
                    const char* algorithm = "") const;
  Status barrier() const;
  // A result of the public header. The sentence is the communicator's if it has failed, else the refused call's.
  Status checked(trestleResult_t result) const;

 private:
  explicit RankCalls(trestleComm_t comm) : comm_(comm) {}
  template <class Call>
  Status complete(const char* algorithm, Call&& call) const;

  trestleComm_t comm_;
  trestleStream_t stream_ = nullptr;
  int ranks_ = 1;
  int rank_ = 0;
};

// Memory of trestleMemAlloc, which ranks of the same host read where it lies. Grows; what it held is lost then.
class ExchangeMemory {
 public:
  ExchangeMemory() = default;
  ExchangeMemory(const ExchangeMemory&) = delete;
  ExchangeMemory& operator=(const ExchangeMemory&) = delete;
  ~ExchangeMemory();
  // Errors: trestleMemAlloc's.
  Status reserve(size_t words);
  uint32_t* words() const { return static_cast<uint32_t*>(memory_); }
  float* floats() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
  size_t room_ = 0;  // words
};

}  // namespace trestle
