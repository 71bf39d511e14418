#include "compress/exchange/rank_calls.h"

#include <string>

namespace trestle {
namespace {

// Everything but the deadline is set, so that no field has the value of an enclosing scope.
trestleCallConfig_t own_call_config(const char* algorithm) {
  trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
  config.algo = algorithm;
  config.sched = "auto";
  config.chunks = 0;
  config.deterministic = 0;
  return config;
}

// The calling thread's calls have the exchange's configuration while it lives.
class CallScope {
 public:
  explicit CallScope(const char* algorithm) {
    const trestleCallConfig_t config = own_call_config(algorithm);
    pushed_ = trestleCallConfigPush(&config);
  }
  ~CallScope() {
    if (pushed_ == trestleSuccess) (void)trestleCallConfigPop();
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  trestleResult_t pushed() const { return pushed_; }

 private:
  trestleResult_t pushed_;
};

}  // namespace

Result<RankCalls> RankCalls::make(trestleComm_t comm, std::function<void()> end_without_memory) {
  RankCalls calls(comm, std::move(end_without_memory));
  TRY(calls.checked(trestleCommCount(comm, &calls.ranks_)));
  TRY(calls.checked(trestleCommUserRank(comm, &calls.rank_)));
  const trestleResult_t made = trestleStreamCreate(&calls.stream_);
  if (made != trestleSuccess) calls.end_without_memory_();
  TRY(calls.checked(made));
  return calls;
}

RankCalls::~RankCalls() {
  if (stream_ != nullptr) (void)trestleStreamDestroy(stream_);
}

Status RankCalls::checked(trestleResult_t result) const {
  if (result == trestleSuccess) return {};
  std::string sentence = trestleGetLastError(comm_);
  if (sentence.empty()) sentence = "the communicator was aborted or destroyed";
  return Error{static_cast<Code>(result), std::move(sentence)};
}

template <class Call>
Status RankCalls::complete(const char* algorithm, Call&& call) const {
  const CallScope scope(algorithm);
  const trestleResult_t issued = scope.pushed() == trestleSuccess ? call() : scope.pushed();
  if (issued == trestleSystemError) end_without_memory_();  // it may be refused here alone
  TRY(checked(issued));
  const trestleResult_t ended = trestleStreamSynchronize(stream_);
  if (ended != trestleSuccess) end_without_memory_();  // the wait may have failed for want of memory, here alone
  return checked(ended);
}

Status RankCalls::agree(const char* function, const Facts& facts, const Status& own) const {
  return trestle::agree(function, facts, own, [this](const std::string& mine) -> Result<std::string> {
    std::string all(mine.size() * static_cast<size_t>(ranks_), '\0');
    TRY(all_gather(mine.data(), all.data(), mine.size(), trestleUint8));
    return all;
  });
}

Status RankCalls::all_gather(const void* own, void* all, size_t count, trestleDataType_t type) const {
  return complete("", [&] { return trestleAllGather(own, all, count, type, comm_, stream_); });
}

Status RankCalls::broadcast(void* data, size_t count, trestleDataType_t type, int root) const {
  return complete("", [&] { return trestleBroadcast(data, data, count, type, root, comm_, stream_); });
}

Status RankCalls::all_reduce(void* data, size_t count, trestleDataType_t type, trestleRedOp_t op,
                             const char* algorithm) const {
  return complete(algorithm, [&] { return trestleAllReduce(data, data, count, type, op, comm_, stream_); });
}

Status RankCalls::barrier() const {
  return complete("", [&] { return trestleBarrier(comm_, stream_); });
}

ExchangeMemory::~ExchangeMemory() {
  if (memory_ != nullptr) (void)trestleMemFree(memory_);
}

Status ExchangeMemory::reserve(size_t bytes) {
  if (bytes <= room_) return {};
  void* memory = nullptr;
  if (const trestleResult_t result = trestleMemAlloc(&memory, bytes); result != trestleSuccess)
    return Error{static_cast<Code>(result), trestleGetLastError(nullptr)};
  if (memory_ != nullptr) (void)trestleMemFree(memory_);
  memory_ = static_cast<std::byte*>(memory);
  room_ = bytes;
  return {};
}

}  // namespace trestle
