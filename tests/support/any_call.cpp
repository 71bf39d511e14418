#include "support/any_call.h"

trestleResult_t start(const AnyCall& c, trestleComm_t comm, trestleStream_t stream) {
  switch (c.collective) {
    case trestleCollAllReduce:
      return trestleAllReduce(c.send, c.recv, c.count, c.type, c.op, comm, stream);
    case trestleCollReduceScatter:
      return trestleReduceScatter(c.send, c.recv, c.count, c.type, c.op, comm, stream);
    case trestleCollAllGather:
      return trestleAllGather(c.send, c.recv, c.count, c.type, comm, stream);
    case trestleCollBroadcast:
      return trestleBroadcast(c.send, c.recv, c.count, c.type, c.root, comm, stream);
    case trestleCollReduce:
      return trestleReduce(c.send, c.recv, c.count, c.type, c.op, c.root, comm, stream);
    case trestleCollAllToAll:
      return trestleAllToAll(c.send, c.recv, c.count, c.type, comm, stream);
    case trestleCollGather:
      return trestleGather(c.send, c.recv, c.count, c.type, c.root, comm, stream);
    case trestleCollScatter:
      return trestleScatter(c.send, c.recv, c.count, c.type, c.root, comm, stream);
    case trestleCollAllGatherV:
      return trestleAllGatherV(c.send, c.count, c.recv, c.recvcounts, c.rdispls, c.type, comm, stream);
    case trestleCollReduceScatterV:
      return trestleReduceScatterV(c.send, c.recv, c.recvcounts, c.type, c.op, comm, stream);
    case trestleCollAllToAllV:
      return trestleAllToAllV(c.send, c.sendcounts, c.sdispls, c.recv, c.recvcounts, c.rdispls, c.type, comm, stream);
    case trestleCollGatherV:
      return trestleGatherV(c.send, c.count, c.recv, c.recvcounts, c.rdispls, c.type, c.root, comm, stream);
    case trestleCollScatterV:
      return trestleScatterV(c.send, c.sendcounts, c.sdispls, c.recv, c.count, c.type, c.root, comm, stream);
    default:
      return trestleBarrier(comm, stream);
  }
}

trestleResult_t init(const AnyCall& c, trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  switch (c.collective) {
    case trestleCollAllReduce:
      return trestleAllReduceInit(c.send, c.recv, c.count, c.type, c.op, comm, stream, request);
    case trestleCollReduceScatter:
      return trestleReduceScatterInit(c.send, c.recv, c.count, c.type, c.op, comm, stream, request);
    case trestleCollAllGather:
      return trestleAllGatherInit(c.send, c.recv, c.count, c.type, comm, stream, request);
    case trestleCollBroadcast:
      return trestleBroadcastInit(c.send, c.recv, c.count, c.type, c.root, comm, stream, request);
    case trestleCollReduce:
      return trestleReduceInit(c.send, c.recv, c.count, c.type, c.op, c.root, comm, stream, request);
    case trestleCollAllToAll:
      return trestleAllToAllInit(c.send, c.recv, c.count, c.type, comm, stream, request);
    case trestleCollGather:
      return trestleGatherInit(c.send, c.recv, c.count, c.type, c.root, comm, stream, request);
    case trestleCollScatter:
      return trestleScatterInit(c.send, c.recv, c.count, c.type, c.root, comm, stream, request);
    case trestleCollAllGatherV:
      return trestleAllGatherVInit(c.send, c.count, c.recv, c.recvcounts, c.rdispls, c.type, comm, stream, request);
    case trestleCollReduceScatterV:
      return trestleReduceScatterVInit(c.send, c.recv, c.recvcounts, c.type, c.op, comm, stream, request);
    case trestleCollAllToAllV:
      return trestleAllToAllVInit(c.send, c.sendcounts, c.sdispls, c.recv, c.recvcounts, c.rdispls, c.type, comm,
                                  stream, request);
    case trestleCollGatherV:
      return trestleGatherVInit(c.send, c.count, c.recv, c.recvcounts, c.rdispls, c.type, c.root, comm, stream,
                                request);
    case trestleCollScatterV:
      return trestleScatterVInit(c.send, c.sendcounts, c.sdispls, c.recv, c.count, c.type, c.root, comm, stream,
                                 request);
    default:
      return trestleBarrierInit(comm, stream, request);
  }
}
