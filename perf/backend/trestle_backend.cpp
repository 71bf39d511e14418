#include "perf/backend/trestle_backend.h"

#include <thread>

#include "perf/driver/ending.h"
#include "perf/driver/pattern.h"

namespace trestle::perf {
namespace {

class TrestleCalls : public Calls {
 public:
  TrestleCalls(trestleComm_t comm, trestleStream_t stream) : comm_(comm), stream_(stream) {}

  void all_reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) override {
    require(trestleAllReduce(send, recv, count, type, op, comm_, stream_), comm_);
  }
  void all_gather(const void* send, void* recv, size_t count, trestleDataType_t type) override {
    require(trestleAllGather(send, recv, count, type, comm_, stream_), comm_);
  }
  void reduce_scatter(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) override {
    require(trestleReduceScatter(send, recv, count, type, op, comm_, stream_), comm_);
  }
  void broadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override {
    require(trestleBroadcast(send, recv, count, type, root, comm_, stream_), comm_);
  }
  void reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
              int root) override {
    require(trestleReduce(send, recv, count, type, op, root, comm_, stream_), comm_);
  }
  void gather(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override {
    require(trestleGather(send, recv, count, type, root, comm_, stream_), comm_);
  }
  void scatter(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override {
    require(trestleScatter(send, recv, count, type, root, comm_, stream_), comm_);
  }
  void all_to_all(const void* send, void* recv, size_t count, trestleDataType_t type) override {
    require(trestleAllToAll(send, recv, count, type, comm_, stream_), comm_);
  }
  void all_to_all_v(const void* send, const size_t* sent, void* recv, const size_t* received,
                    trestleDataType_t type) override {
    require(trestleAllToAllV(send, sent, nullptr, recv, received, nullptr, type, comm_, stream_), comm_);
  }
  void send(const void* buffer, size_t count, trestleDataType_t type, int peer) override {
    require(trestleSend(buffer, count, type, peer, comm_, stream_), comm_);
  }
  void recv(void* buffer, size_t count, trestleDataType_t type, int peer) override {
    require(trestleRecv(buffer, count, type, peer, comm_, stream_), comm_);
  }
  void group_start() override { require(trestleGroupStart(), comm_); }
  void group_end() override { require(trestleGroupEnd(), comm_); }

 private:
  const trestleComm_t comm_;
  const trestleStream_t stream_;
};

Source allocated_by_the_library(trestleComm_t comm) {
  return {[comm](size_t bytes) {
            void* memory = nullptr;
            require(trestleMemAlloc(&memory, bytes), comm);
            return static_cast<char*>(memory);
          },
          [comm](char* memory, size_t) { require(trestleMemFree(memory), comm); }};
}

}  // namespace

TrestleBackend::TrestleBackend(Ranks& ranks, const Options& options)
    : ranks_(ranks), options_(options), states_(ranks.states().size()) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RankState& rank = ranks.states()[i];
    states_[i].calls = std::make_unique<TrestleCalls>(rank.comm, rank.stream);
    if (rank.cuda_stream != nullptr) graphs_.add(rank.gpu, rank.cuda_stream);
    states_[i].access = rank.gpu != nullptr ? rank.gpu->make_access() : host_access();
  }
}

TrestleBackend::~TrestleBackend() {
  graphs_.drop();
  for (size_t i = 0; i < states_.size(); ++i) {
    const trestleComm_t comm = ranks_.states()[i].comm;
    if (states_[i].mul_sum != trestleSum) require(trestleRedOpDestroy(states_[i].mul_sum, comm), comm);
  }
}

// A launch is no call, so only its communicator knows of a failure.
void TrestleBackend::wait_for_launches() {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RankState& rank = ranks_.states()[i];
    while (!graphs_.is_done(i)) std::this_thread::yield();
    trestleResult_t failure = trestleSuccess;
    require(trestleCommGetAsyncError(rank.comm, &failure), rank.comm);
    require(failure, rank.comm);
  }
}

void TrestleBackend::group_start() {
  require(trestleGroupStart());
}

void TrestleBackend::group_end() {
  require(trestleGroupEnd(), ranks_.states().front().comm);
}

void TrestleBackend::use_mul_sum(trestleDataType_t type) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const RankState& rank = ranks_.states()[i];
    trestleRedOp_t& op = states_[i].mul_sum;
    if (op != trestleSum) require(trestleRedOpDestroy(op, rank.comm), rank.comm);
    uint64_t scalar = 0;
    fill_mul_sum_scalar(type, rank.rank, &scalar);
    require(trestleRedOpCreatePreMulSum(&op, &scalar, type, trestleScalarHostImmediate, rank.comm), rank.comm);
  }
}

Source TrestleBackend::source_for(const RankState& rank) {
  const trestleComm_t comm = rank.comm;
  if (rank.gpu != nullptr) return rank.gpu->memory();
  switch (static_cast<BufferKind>(options_.local_register)) {
    case BufferKind::kOrdinary:
      return ordinary_memory();
    case BufferKind::kAllocated:
      return allocated_by_the_library(comm);
    case BufferKind::kRegistered:
      break;
  }
  // The registration keeps a descriptor of its own.
  const Source shared = shared_memory([this, comm](char* memory, size_t bytes) {
    require(trestleCommRegister(comm, memory, bytes, &registrations_[memory]), comm);
  });
  return {shared.allocate, [this, shared, comm](char* memory, size_t bytes) {
            require(trestleCommDeregister(comm, registrations_[memory]), comm);
            registrations_.erase(memory);
            shared.free(memory, bytes);
          }};
}

void TrestleBackend::allocate(size_t bytes) {
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    state.buffers = make_rank_buffers(source_for(ranks_.states()[i]), bytes, options_.unalign, *state.access);
  }
}

}  // namespace trestle::perf
