// RawCall: the arguments of a collective, as they came over the C API. Value type. Used by src/api only.
#pragma once

#include "comm/calls/call.h"
#include "trestle/trestle.h"

namespace trestle {

// Largest number of bytes of a buffer: offsets stay far from overflow.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 62;

// Enum values are checked before they are narrowed. Arrays belong to the caller and are read before the call returns.
struct RawCall {
  Collective collective = Collective::kAllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  int type = 0;
  int op = trestleSum;
  int root = 0;
  int peer = -1;
  bool sending = false;
  // The arrays of v-variants, by rank.
  const size_t* sendcounts = nullptr;
  const size_t* sdispls = nullptr;
  const size_t* recvcounts = nullptr;
  const size_t* rdispls = nullptr;
};

// The call moves no data on any rank.
inline bool is_empty(const Call& call) {
  const Collective collective = call.request.collective;
  return call.request.count == 0 && moves_data(collective) && !has_pairwise_blocks(collective);
}

// ---- from the arguments of each function

inline RawCall raw_call(Collective collective, const void* send, void* recv, size_t count, trestleDataType_t type,
                        trestleRedOp_t op = trestleSum, int root = 0) {
  RawCall raw;
  raw.collective = collective;
  raw.send = send;
  raw.recv = recv;
  raw.count = count;
  raw.type = static_cast<int>(type);
  raw.op = static_cast<int>(op);
  raw.root = root;
  return raw;
}
inline RawCall rooted_call(Collective collective, const void* send, void* recv, size_t count, trestleDataType_t type,
                           int root) {
  return raw_call(collective, send, recv, count, type, trestleSum, root);
}
inline RawCall barrier_call() {
  return raw_call(Collective::kBarrier, nullptr, nullptr, 0, trestleInt8);
}
inline RawCall all_gather_v_call(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                 const size_t* displs, trestleDataType_t type) {
  RawCall raw = raw_call(Collective::kAllGatherV, send, recv, sendcount, type);
  raw.recvcounts = recvcounts;
  raw.rdispls = displs;
  return raw;
}
inline RawCall reduce_scatter_v_call(const void* send, void* recv, const size_t* recvcounts, trestleDataType_t type,
                                     trestleRedOp_t op) {
  RawCall raw = raw_call(Collective::kReduceScatterV, send, recv, 0, type, op);
  raw.recvcounts = recvcounts;
  return raw;
}
inline RawCall all_to_all_v_call(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                 const size_t* recvcounts, const size_t* rdispls, trestleDataType_t type) {
  RawCall raw = raw_call(Collective::kAllToAllV, send, recv, 0, type);
  raw.sendcounts = sendcounts;
  raw.sdispls = sdispls;
  raw.recvcounts = recvcounts;
  raw.rdispls = rdispls;
  return raw;
}
inline RawCall gather_v_call(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                             const size_t* displs, trestleDataType_t type, int root) {
  RawCall raw = rooted_call(Collective::kGatherV, send, recv, sendcount, type, root);
  raw.recvcounts = recvcounts;
  raw.rdispls = displs;
  return raw;
}
inline RawCall scatter_v_call(const void* send, const size_t* sendcounts, const size_t* displs, void* recv,
                              size_t recvcount, trestleDataType_t type, int root) {
  RawCall raw = rooted_call(Collective::kScatterV, send, recv, recvcount, type, root);
  raw.sendcounts = sendcounts;
  raw.sdispls = displs;
  return raw;
}

}  // namespace trestle
