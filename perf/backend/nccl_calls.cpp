#include "perf/backend/nccl_calls.h"

#include "perf/driver/ending.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

constexpr int kTimeout = 8;  // ncclTimeout, since 2.30

template <class Byte>
Byte* block_at(Byte* buffer, int block, size_t count, trestleDataType_t type) {
  return buffer + static_cast<size_t>(block) * count * type_info(type).bytes;
}

}  // namespace

void check_nccl(const NcclLibrary& nccl, const char* call, int result, NcclComm comm) {
  if (result != 0) fail(result == kTimeout ? kExitTimeout : kExitLibrary, nccl.sentence(call, result, comm));
}

void NcclCalls::check(const char* call, int result) const {
  check_nccl(nccl_, call, result, comm_);
}

void NcclCalls::all_reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) {
  check("AllReduce", nccl_.AllReduce(send, recv, count, type, op, comm_, stream_));
}

void NcclCalls::all_gather(const void* send, void* recv, size_t count, trestleDataType_t type) {
  check("AllGather", nccl_.AllGather(send, recv, count, type, comm_, stream_));
}

void NcclCalls::reduce_scatter(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) {
  check("ReduceScatter", nccl_.ReduceScatter(send, recv, count, type, op, comm_, stream_));
}

void NcclCalls::broadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root) {
  check("Broadcast", nccl_.Broadcast(send, recv, count, type, root, comm_, stream_));
}

void NcclCalls::reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                       int root) {
  check("Reduce", nccl_.Reduce(send, recv, count, type, op, root, comm_, stream_));
}

void NcclCalls::gather(const void* buffer, void* result, size_t count, trestleDataType_t type, int root) {
  if (nccl_.Gather != nullptr) {
    return check("Gather", nccl_.Gather(buffer, result, count, type, root, comm_, stream_));
  }
  group_start();
  send(buffer, count, type, root);
  for (int peer = 0; rank_ == root && peer < nranks_; ++peer) {
    recv(block_at(static_cast<char*>(result), peer, count, type), count, type, peer);
  }
  group_end();
}

void NcclCalls::scatter(const void* buffer, void* result, size_t count, trestleDataType_t type, int root) {
  if (nccl_.Scatter != nullptr) {
    return check("Scatter", nccl_.Scatter(buffer, result, count, type, root, comm_, stream_));
  }
  group_start();
  for (int peer = 0; rank_ == root && peer < nranks_; ++peer) {
    send(block_at(static_cast<const char*>(buffer), peer, count, type), count, type, peer);
  }
  recv(result, count, type, root);
  group_end();
}

void NcclCalls::all_to_all(const void* buffer, void* result, size_t count, trestleDataType_t type) {
  if (nccl_.AlltoAll != nullptr) {
    return check("AlltoAll", nccl_.AlltoAll(buffer, result, count, type, comm_, stream_));
  }
  group_start();
  for (int peer = 0; peer < nranks_; ++peer) {
    send(block_at(static_cast<const char*>(buffer), peer, count, type), count, type, peer);
    recv(block_at(static_cast<char*>(result), peer, count, type), count, type, peer);
  }
  group_end();
}

void NcclCalls::all_to_all_v(const void* buffer, const size_t* sent, void* result, const size_t* received,
                             trestleDataType_t type) {
  const size_t bytes = type_info(type).bytes;
  const char* from = static_cast<const char*>(buffer);
  char* to = static_cast<char*>(result);
  group_start();
  for (int peer = 0; peer < nranks_; ++peer) {
    send(from, sent[peer], type, peer);
    recv(to, received[peer], type, peer);
    from += sent[peer] * bytes;
    to += received[peer] * bytes;
  }
  group_end();
}

void NcclCalls::send(const void* buffer, size_t count, trestleDataType_t type, int peer) {
  check("Send", nccl_.Send(buffer, count, type, peer, comm_, stream_));
}

void NcclCalls::recv(void* buffer, size_t count, trestleDataType_t type, int peer) {
  check("Recv", nccl_.Recv(buffer, count, type, peer, comm_, stream_));
}

void NcclCalls::group_start() {
  check("GroupStart", nccl_.GroupStart());
}

void NcclCalls::group_end() {
  check("GroupEnd", nccl_.GroupEnd());
}

}  // namespace trestle::perf
