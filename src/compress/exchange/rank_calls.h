// RankCalls: collectives of the public header. Each returns when it is complete. One thread at a time. The communicator
// must outlive the object.
//
// They run on a stream of their own, so they do not wait for the program's operations. Algorithms are chosen freely
// unless one is named. Scopes of the calling thread's trestleCallConfigPush do not apply, except their deadlines.
//
// Where there is no memory for a call, the communicator fails on all ranks: the others would wait for it in vain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/agree/agree.h"
#include "base/result.h"
#include "trestle/trestle.h"

namespace trestle {

class RankCalls {
 public:
  // end_without_memory: fails the communicator for want of memory; any thread. Errors: the communicator's.
  static Result<RankCalls> make(trestleComm_t comm, std::function<void()> end_without_memory);
  RankCalls(RankCalls&& other) noexcept
      : comm_(other.comm_),
        stream_(std::exchange(other.stream_, nullptr)),
        end_without_memory_(std::move(other.end_without_memory_)),
        ranks_(other.ranks_),
        rank_(other.rank_) {}
  RankCalls& operator=(RankCalls&&) = delete;
  ~RankCalls();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // As trestle::agree, on these ranks.
  Status agree(const char* function, const Facts& facts, const Status& own) const;
  // count: elements of one rank; all has `ranks` times as many.
  Status all_gather(const void* own, void* all, size_t count, trestleDataType_t type) const;
  Status broadcast(void* data, size_t count, trestleDataType_t type, int root) const;
  // In place. algorithm: as TRESTLE_ALGO.
  Status all_reduce(void* data, size_t count, trestleDataType_t type, trestleRedOp_t op,
                    const char* algorithm = "") const;
  Status barrier() const;
  void end_without_memory() const { end_without_memory_(); }
  // A result of the public header. The sentence is the communicator's if it has failed, else the refused call's.
  Status checked(trestleResult_t result) const;

 private:
  RankCalls(trestleComm_t comm, std::function<void()> end) : comm_(comm), end_without_memory_(std::move(end)) {}
  template <class Call>
  Status complete(const char* algorithm, Call&& call) const;

  trestleComm_t comm_;
  trestleStream_t stream_ = nullptr;
  std::function<void()> end_without_memory_;
  int ranks_ = 1;
  int rank_ = 0;
};

// Memory of trestleMemAlloc, which ranks of the same host read where it lies. When it grows, its content is lost.
class ExchangeMemory {
 public:
  ExchangeMemory() = default;
  ExchangeMemory(const ExchangeMemory&) = delete;
  ExchangeMemory& operator=(const ExchangeMemory&) = delete;
  ~ExchangeMemory();
  // Errors: trestleMemAlloc's.
  Status reserve(size_t bytes);
  std::byte* at(size_t byte = 0) const { return memory_ + byte; }  // byte 0 is aligned for every type

 private:
  std::byte* memory_ = nullptr;
  size_t room_ = 0;  // bytes
};

}  // namespace trestle
