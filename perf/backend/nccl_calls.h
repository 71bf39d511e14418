// Calls of one rank in a library with NCCL's interface. A collective that the library lacks is a group of sends and
// receives, as in nccl-tests. Threads: see calls.h.
#pragma once

#include "perf/backend/calls.h"
#include "perf/backend/nccl_library.h"

namespace trestle::perf {

class NcclCalls : public Calls {
 public:
  // nccl outlives this. stream: of CUDA; null: the legacy default stream.
  NcclCalls(const NcclLibrary& nccl, NcclComm comm, void* stream, int rank, int nranks)
      : nccl_(nccl), comm_(comm), stream_(stream), rank_(rank), nranks_(nranks) {}

  void all_reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) override;
  void all_gather(const void* send, void* recv, size_t count, trestleDataType_t type) override;
  void reduce_scatter(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) override;
  void broadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override;
  void reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op, int root) override;
  void gather(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override;
  void scatter(const void* send, void* recv, size_t count, trestleDataType_t type, int root) override;
  void all_to_all(const void* send, void* recv, size_t count, trestleDataType_t type) override;
  void all_to_all_v(const void* send, const size_t* sent, void* recv, const size_t* received,
                    trestleDataType_t type) override;
  void send(const void* buffer, size_t count, trestleDataType_t type, int peer) override;
  void recv(void* buffer, size_t count, trestleDataType_t type, int peer) override;
  void group_start() override;
  void group_end() override;

 private:
  void check(const char* call, int result) const;

  const NcclLibrary& nccl_;
  const NcclComm comm_;
  void* const stream_;
  const int rank_;
  const int nranks_;
};

// Ends the process with the library's sentence, unless `result` is success.
void check_nccl(const NcclLibrary& nccl, const char* call, int result, NcclComm comm);

}  // namespace trestle::perf
