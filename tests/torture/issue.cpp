// The only file with the argument lists of all collectives in the header.
#include "torture/execution.h"

namespace torture {
namespace {

using A = Arguments;

trestleResult_t even_once(const Call& c, const A& a) {
  switch (c.collective) {
    case trestleCollAllReduce:
      return trestleAllReduce(a.send, a.recv, c.count, c.type, a.op, a.comm, a.stream);
    case trestleCollReduceScatter:
      return trestleReduceScatter(a.send, a.recv, c.count, c.type, a.op, a.comm, a.stream);
    case trestleCollAllGather:
      return trestleAllGather(a.send, a.recv, c.count, c.type, a.comm, a.stream);
    case trestleCollBroadcast:
      return trestleBroadcast(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream);
    case trestleCollReduce:
      return trestleReduce(a.send, a.recv, c.count, c.type, a.op, c.root, a.comm, a.stream);
    case trestleCollAllToAll:
      return trestleAllToAll(a.send, a.recv, c.count, c.type, a.comm, a.stream);
    case trestleCollGather:
      return trestleGather(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream);
    case trestleCollScatter:
      return trestleScatter(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream);
    default:
      return trestleBarrier(a.comm, a.stream);
  }
}

trestleResult_t even_init(const Call& c, const A& a, trestleRequest_t* request) {
  switch (c.collective) {
    case trestleCollAllReduce:
      return trestleAllReduceInit(a.send, a.recv, c.count, c.type, a.op, a.comm, a.stream, request);
    case trestleCollReduceScatter:
      return trestleReduceScatterInit(a.send, a.recv, c.count, c.type, a.op, a.comm, a.stream, request);
    case trestleCollAllGather:
      return trestleAllGatherInit(a.send, a.recv, c.count, c.type, a.comm, a.stream, request);
    case trestleCollBroadcast:
      return trestleBroadcastInit(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream, request);
    case trestleCollReduce:
      return trestleReduceInit(a.send, a.recv, c.count, c.type, a.op, c.root, a.comm, a.stream, request);
    case trestleCollAllToAll:
      return trestleAllToAllInit(a.send, a.recv, c.count, c.type, a.comm, a.stream, request);
    case trestleCollGather:
      return trestleGatherInit(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream, request);
    case trestleCollScatter:
      return trestleScatterInit(a.send, a.recv, c.count, c.type, c.root, a.comm, a.stream, request);
    default:
      return trestleBarrierInit(a.comm, a.stream, request);
  }
}

trestleResult_t message(const Call& c, int rank, const A& a) {
  if (rank == c.root) {
    const trestleResult_t result = trestleSend(a.send, c.count, c.type, c.peer, a.comm, a.stream);
    if (result != trestleSuccess) return result;
  }
  if (rank != c.peer) return trestleSuccess;
  return trestleRecv(a.recv, c.count, c.type, c.root, a.comm, a.stream);
}

}  // namespace

trestleResult_t call_once(const Call& c, const Shape& s, int rank, const A& a) {
  if (c.collective == trestleCollSendRecv) return message(c, rank, a);
  if (!is_vector(c.collective)) return even_once(c, a);
  const size_t mine = c.collective == trestleCollAllToAllV ? 0 : c.counts[static_cast<size_t>(rank)];
  const size_t* const sd = s.sdispls_or_null();
  const size_t* const rd = s.rdispls_or_null();
  switch (c.collective) {
    case trestleCollAllGatherV:
      return trestleAllGatherV(a.send, mine, a.recv, s.recvcounts.data(), rd, c.type, a.comm, a.stream);
    case trestleCollReduceScatterV:
      return trestleReduceScatterV(a.send, a.recv, s.recvcounts.data(), c.type, a.op, a.comm, a.stream);
    case trestleCollGatherV:
      return trestleGatherV(a.send, mine, a.recv, s.recvcounts.data(), rd, c.type, c.root, a.comm, a.stream);
    case trestleCollScatterV:
      return trestleScatterV(a.send, s.sendcounts.data(), sd, a.recv, mine, c.type, c.root, a.comm, a.stream);
    default:
      return trestleAllToAllV(a.send, s.sendcounts.data(), sd, a.recv, s.recvcounts.data(), rd, c.type, a.comm,
                              a.stream);
  }
}

trestleResult_t call_init(const Call& c, const Shape& s, int rank, const A& a, trestleRequest_t* request) {
  if (!is_vector(c.collective)) return even_init(c, a, request);
  const size_t mine = c.collective == trestleCollAllToAllV ? 0 : c.counts[static_cast<size_t>(rank)];
  const size_t* const sd = s.sdispls_or_null();
  const size_t* const rd = s.rdispls_or_null();
  const size_t* const rc = s.recvcounts.data();
  switch (c.collective) {
    case trestleCollAllGatherV:
      return trestleAllGatherVInit(a.send, mine, a.recv, rc, rd, c.type, a.comm, a.stream, request);
    case trestleCollReduceScatterV:
      return trestleReduceScatterVInit(a.send, a.recv, rc, c.type, a.op, a.comm, a.stream, request);
    case trestleCollGatherV:
      return trestleGatherVInit(a.send, mine, a.recv, rc, rd, c.type, c.root, a.comm, a.stream, request);
    case trestleCollScatterV:
      return trestleScatterVInit(a.send, s.sendcounts.data(), sd, a.recv, mine, c.type, c.root, a.comm, a.stream,
                                 request);
    default:
      return trestleAllToAllVInit(a.send, s.sendcounts.data(), sd, a.recv, rc, rd, c.type, a.comm, a.stream, request);
  }
}

}  // namespace torture
