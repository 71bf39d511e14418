// The C API: gather, scatter and the v-variants.
#include "api/collectives.h"

using namespace trestle;

extern "C" {

trestleResult_t trestleGather(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                              trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "Gather", rooted_call(Collective::kGather, send, recv, count, type, root), stream);
}

trestleResult_t trestleScatter(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                               trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "Scatter", rooted_call(Collective::kScatter, send, recv, count, type, root), stream);
}

trestleResult_t trestleAllGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                  const size_t* displs, trestleDataType_t type, trestleComm_t comm,
                                  trestleStream_t stream) {
  return run_collective(comm, "AllGatherV", all_gather_v_call(send, sendcount, recv, recvcounts, displs, type), stream);
}

trestleResult_t trestleReduceScatterV(const void* send, void* recv, const size_t* recvcounts, trestleDataType_t type,
                                      trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "ReduceScatterV", reduce_scatter_v_call(send, recv, recvcounts, type, op), stream);
}

trestleResult_t trestleAllToAllV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                 const size_t* recvcounts, const size_t* rdispls, trestleDataType_t type,
                                 trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "AllToAllV",
                        all_to_all_v_call(send, sendcounts, sdispls, recv, recvcounts, rdispls, type), stream);
}

trestleResult_t trestleGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                               const size_t* displs, trestleDataType_t type, int root, trestleComm_t comm,
                               trestleStream_t stream) {
  return run_collective(comm, "GatherV", gather_v_call(send, sendcount, recv, recvcounts, displs, type, root), stream);
}

trestleResult_t trestleScatterV(const void* send, const size_t* sendcounts, const size_t* displs, void* recv,
                                size_t recvcount, trestleDataType_t type, int root, trestleComm_t comm,
                                trestleStream_t stream) {
  return run_collective(comm, "ScatterV", scatter_v_call(send, sendcounts, displs, recv, recvcount, type, root),
                        stream);
}

}  // extern "C"
