// The C API: persistent requests of whole collectives. requests.cpp starts, tests and frees them.
#include "api/background.h"
#include "api/collectives.h"

using namespace trestle;

namespace {

// Checks one call, plans it and keeps the plans, to be run by RequestStart.
trestleResult_t init_request(trestleComm_t comm, const char* function, const RawCall& raw, trestleStream_t stream,
                             trestleRequest_t* request) {
  return guarded([&]() -> Status {
    const std::string in = std::string(function) + ": ";
    if (request == nullptr) return invalid_argument(in + "request is NULL");
    if (comm == nullptr) return invalid_argument(in + "comm is NULL");
    Use use(comm);
    TRY(check_ready(use, function));
    auto made = std::make_shared<Request>();
    made->communicator = use.object();
    made->start = TRY(checked_call(*use.object(), function, raw));
    made->stream = TRY(stream_of(function, stream, use.object()));
    made->persistent = true;
    made->whole = true;
    TRY(use.object()->check_open());
    if (!is_empty(made->start))
      made->held_start = TRY(made->communicator->calls().planner().hold(made->start, {made->stream}));
    *request = make_handle<trestleRequest>(std::move(made));
    return {};
  });
}

}  // namespace

extern "C" {

trestleResult_t trestleAllReduceInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                     trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                     trestleRequest_t* request) {
  return init_request(comm, "AllReduceInit", raw_call(Collective::kAllReduce, send, recv, count, type, op), stream,
                      request);
}

trestleResult_t trestleReduceScatterInit(const void* send, void* recv, size_t recvcount, trestleDataType_t type,
                                         trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                         trestleRequest_t* request) {
  return init_request(comm, "ReduceScatterInit", raw_call(Collective::kReduceScatter, send, recv, recvcount, type, op),
                      stream, request);
}

trestleResult_t trestleAllGatherInit(const void* send, void* recv, size_t sendcount, trestleDataType_t type,
                                     trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "AllGatherInit", raw_call(Collective::kAllGather, send, recv, sendcount, type), stream,
                      request);
}

trestleResult_t trestleBroadcastInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                     trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "BroadcastInit", rooted_call(Collective::kBroadcast, send, recv, count, type, root), stream,
                      request);
}

trestleResult_t trestleReduceInit(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                                  int root, trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "ReduceInit", raw_call(Collective::kReduce, send, recv, count, type, op, root), stream,
                      request);
}

trestleResult_t trestleAllToAllInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                    trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "AllToAllInit", raw_call(Collective::kAllToAll, send, recv, count, type), stream, request);
}

trestleResult_t trestleGatherInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                  trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "GatherInit", rooted_call(Collective::kGather, send, recv, count, type, root), stream,
                      request);
}

trestleResult_t trestleScatterInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                   trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "ScatterInit", rooted_call(Collective::kScatter, send, recv, count, type, root), stream,
                      request);
}

trestleResult_t trestleBarrierInit(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "BarrierInit", barrier_call(), stream, request);
}

trestleResult_t trestleAllGatherVInit(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                      const size_t* displs, trestleDataType_t type, trestleComm_t comm,
                                      trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "AllGatherVInit", all_gather_v_call(send, sendcount, recv, recvcounts, displs, type),
                      stream, request);
}

trestleResult_t trestleReduceScatterVInit(const void* send, void* recv, const size_t* recvcounts,
                                          trestleDataType_t type, trestleRedOp_t op, trestleComm_t comm,
                                          trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "ReduceScatterVInit", reduce_scatter_v_call(send, recv, recvcounts, type, op), stream,
                      request);
}

trestleResult_t trestleAllToAllVInit(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                     const size_t* recvcounts, const size_t* rdispls, trestleDataType_t type,
                                     trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "AllToAllVInit",
                      all_to_all_v_call(send, sendcounts, sdispls, recv, recvcounts, rdispls, type), stream, request);
}

trestleResult_t trestleGatherVInit(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                   const size_t* displs, trestleDataType_t type, int root, trestleComm_t comm,
                                   trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "GatherVInit", gather_v_call(send, sendcount, recv, recvcounts, displs, type, root), stream,
                      request);
}

trestleResult_t trestleScatterVInit(const void* send, const size_t* sendcounts, const size_t* displs, void* recv,
                                    size_t recvcount, trestleDataType_t type, int root, trestleComm_t comm,
                                    trestleStream_t stream, trestleRequest_t* request) {
  return init_request(comm, "ScatterVInit", scatter_v_call(send, sendcounts, displs, recv, recvcount, type, root),
                      stream, request);
}

}  // extern "C"
