// Collectives, messages, operators.
#include "bindings/nccl/answers.h"
#include "bindings/nccl/groups.h"
#include "bindings/nccl/host_memory.h"

namespace trestle::nccl {

namespace {

// A buffer that only the root uses: elsewhere it may be any pointer.
const void* at_root(const void* buffer, int root, trestleComm_t comm) {
  int rank = -1;
  if (comm == nullptr || trestleCommUserRank(comm, &rank) != trestleSuccess) return nullptr;
  return rank == root ? buffer : nullptr;
}

}  // namespace

NCCL_API(Result, AllReduce,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleRedOp_t op,
          trestleComm_t comm, void* stream)) {
  if (!on_host("AllReduce", {sendbuff, recvbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollAllReduce, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleAllReduce(sendbuff, recvbuff, count, datatype, op, comm, call.stream));
}

NCCL_API(Result, ReduceScatter,
         (const void* sendbuff, void* recvbuff, size_t recvcount, trestleDataType_t datatype, trestleRedOp_t op,
          trestleComm_t comm, void* stream)) {
  if (!on_host("ReduceScatter", {sendbuff, recvbuff}, recvcount)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollReduceScatter, recvcount, datatype, comm, stream_of(stream)};
  return finish(call, trestleReduceScatter(sendbuff, recvbuff, recvcount, datatype, op, comm, call.stream));
}

NCCL_API(Result, AllGather,
         (const void* sendbuff, void* recvbuff, size_t sendcount, trestleDataType_t datatype, trestleComm_t comm,
          void* stream)) {
  if (!on_host("AllGather", {sendbuff, recvbuff}, sendcount)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollAllGather, sendcount, datatype, comm, stream_of(stream)};
  return finish(call, trestleAllGather(sendbuff, recvbuff, sendcount, datatype, comm, call.stream));
}

NCCL_API(Result, Broadcast,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  if (!on_host("Broadcast", {at_root(sendbuff, root, comm), recvbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollBroadcast, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleBroadcast(sendbuff, recvbuff, count, datatype, root, comm, call.stream));
}

// NCCL's older form of it, in place.
NCCL_API(Result, Bcast,
         (void* buff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm, void* stream)) {
  if (!on_host("Bcast", {buff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollBroadcast, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleBroadcast(buff, buff, count, datatype, root, comm, call.stream));
}

NCCL_API(Result, Reduce,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleRedOp_t op, int root,
          trestleComm_t comm, void* stream)) {
  if (!on_host("Reduce", {sendbuff, at_root(recvbuff, root, comm)}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollReduce, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleReduce(sendbuff, recvbuff, count, datatype, op, root, comm, call.stream));
}

NCCL_API(Result, AlltoAll,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleComm_t comm,
          void* stream)) {
  if (!on_host("AlltoAll", {sendbuff, recvbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollAllToAll, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleAllToAll(sendbuff, recvbuff, count, datatype, comm, call.stream));
}

NCCL_API(Result, Gather,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  if (!on_host("Gather", {sendbuff, at_root(recvbuff, root, comm)}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollGather, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleGather(sendbuff, recvbuff, count, datatype, root, comm, call.stream));
}

NCCL_API(Result, Scatter,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  if (!on_host("Scatter", {at_root(sendbuff, root, comm), recvbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollScatter, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleScatter(sendbuff, recvbuff, count, datatype, root, comm, call.stream));
}

NCCL_API(Result, Send,
         (const void* sendbuff, size_t count, trestleDataType_t datatype, int peer, trestleComm_t comm, void* stream)) {
  if (!on_host("Send", {sendbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollSendRecv, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleSend(sendbuff, count, datatype, peer, comm, call.stream));
}

NCCL_API(Result, Recv,
         (void* recvbuff, size_t count, trestleDataType_t datatype, int peer, trestleComm_t comm, void* stream)) {
  if (!on_host("Recv", {recvbuff}, count)) return Result::kInvalidArgument;
  const IssuedCall call = {trestleCollSendRecv, count, datatype, comm, stream_of(stream)};
  return finish(call, trestleRecv(recvbuff, count, datatype, peer, comm, call.stream));
}

// ---- operators

NCCL_API(Result, RedOpCreatePreMulSum,
         (trestleRedOp_t * op, void* scalar, trestleDataType_t datatype, trestleScalarResidence_t residence,
          trestleComm_t comm)) {
  if (!on_host("RedOpCreatePreMulSum", {scalar}, 1)) return Result::kInvalidArgument;
  return answer(trestleRedOpCreatePreMulSum(op, scalar, datatype, residence, comm));
}

NCCL_API(Result, RedOpDestroy, (trestleRedOp_t op, trestleComm_t comm)) {
  return answer(trestleRedOpDestroy(op, comm));
}

}  // namespace trestle::nccl
