// Collectives, messages, operators.
#include <initializer_list>

#include "bindings/nccl/answers.h"
#include "bindings/nccl/cuda_driver.h"
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

struct Wanted {
  const char* function;
  trestleCollective_t collective;
  size_t count;
  trestleDataType_t type;
  trestleComm_t comm;
  void* cuda_stream;
};

// Makes a call on the stream that stands for the caller's. Buffers of a communicator with a device are looked at by
// libtrestle.so.
template <class Make>
Result call(const Wanted& wanted, std::initializer_list<const void*> buffers, const Make& make) {
  IssuedCall issued = {wanted.collective, wanted.count, wanted.type, wanted.comm, {}};
  const Result found = find_stream(wanted.function, wanted.comm, wanted.cuda_stream, &issued.cuda);
  if (found != Result::kSuccess) return found;
  const bool has_device = issued.cuda.device != kNoDevice;
  if (!has_device && !on_host(wanted.function, buffers, wanted.count)) return Result::kInvalidArgument;
  return finish(issued, make(issued.cuda.stream));
}

}  // namespace

NCCL_API(Result, AllReduce,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleRedOp_t op,
          trestleComm_t comm, void* stream)) {
  return call({"AllReduce", trestleCollAllReduce, count, datatype, comm, stream}, {sendbuff, recvbuff},
              [&](trestleStream_t on) { return trestleAllReduce(sendbuff, recvbuff, count, datatype, op, comm, on); });
}

NCCL_API(Result, ReduceScatter,
         (const void* sendbuff, void* recvbuff, size_t recvcount, trestleDataType_t datatype, trestleRedOp_t op,
          trestleComm_t comm, void* stream)) {
  return call(
      {"ReduceScatter", trestleCollReduceScatter, recvcount, datatype, comm, stream}, {sendbuff, recvbuff},
      [&](trestleStream_t on) { return trestleReduceScatter(sendbuff, recvbuff, recvcount, datatype, op, comm, on); });
}

NCCL_API(Result, AllGather,
         (const void* sendbuff, void* recvbuff, size_t sendcount, trestleDataType_t datatype, trestleComm_t comm,
          void* stream)) {
  return call({"AllGather", trestleCollAllGather, sendcount, datatype, comm, stream}, {sendbuff, recvbuff},
              [&](trestleStream_t on) { return trestleAllGather(sendbuff, recvbuff, sendcount, datatype, comm, on); });
}

NCCL_API(Result, Broadcast,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  return call(
      {"Broadcast", trestleCollBroadcast, count, datatype, comm, stream}, {at_root(sendbuff, root, comm), recvbuff},
      [&](trestleStream_t on) { return trestleBroadcast(sendbuff, recvbuff, count, datatype, root, comm, on); });
}

// NCCL's older form of it, in place.
NCCL_API(Result, Bcast,
         (void* buff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm, void* stream)) {
  return call({"Bcast", trestleCollBroadcast, count, datatype, comm, stream}, {buff},
              [&](trestleStream_t on) { return trestleBroadcast(buff, buff, count, datatype, root, comm, on); });
}

NCCL_API(Result, Reduce,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleRedOp_t op, int root,
          trestleComm_t comm, void* stream)) {
  return call(
      {"Reduce", trestleCollReduce, count, datatype, comm, stream}, {sendbuff, at_root(recvbuff, root, comm)},
      [&](trestleStream_t on) { return trestleReduce(sendbuff, recvbuff, count, datatype, op, root, comm, on); });
}

NCCL_API(Result, AlltoAll,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, trestleComm_t comm,
          void* stream)) {
  return call({"AlltoAll", trestleCollAllToAll, count, datatype, comm, stream}, {sendbuff, recvbuff},
              [&](trestleStream_t on) { return trestleAllToAll(sendbuff, recvbuff, count, datatype, comm, on); });
}

NCCL_API(Result, Gather,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  return call({"Gather", trestleCollGather, count, datatype, comm, stream}, {sendbuff, at_root(recvbuff, root, comm)},
              [&](trestleStream_t on) { return trestleGather(sendbuff, recvbuff, count, datatype, root, comm, on); });
}

NCCL_API(Result, Scatter,
         (const void* sendbuff, void* recvbuff, size_t count, trestleDataType_t datatype, int root, trestleComm_t comm,
          void* stream)) {
  return call({"Scatter", trestleCollScatter, count, datatype, comm, stream}, {at_root(sendbuff, root, comm), recvbuff},
              [&](trestleStream_t on) { return trestleScatter(sendbuff, recvbuff, count, datatype, root, comm, on); });
}

NCCL_API(Result, Send,
         (const void* sendbuff, size_t count, trestleDataType_t datatype, int peer, trestleComm_t comm, void* stream)) {
  return call({"Send", trestleCollSendRecv, count, datatype, comm, stream}, {sendbuff},
              [&](trestleStream_t on) { return trestleSend(sendbuff, count, datatype, peer, comm, on); });
}

NCCL_API(Result, Recv,
         (void* recvbuff, size_t count, trestleDataType_t datatype, int peer, trestleComm_t comm, void* stream)) {
  return call({"Recv", trestleCollSendRecv, count, datatype, comm, stream}, {recvbuff},
              [&](trestleStream_t on) { return trestleRecv(recvbuff, count, datatype, peer, comm, on); });
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
