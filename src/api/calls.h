// Turns the arguments of collectives, as they came over the C API, into a checked Call. Pure functions, except that
// they read the communicator; any thread. Used by src/api only.
#pragma once

#include "api/handles.h"

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

// Checks everything that can be wrong with the arguments; the error message begins with `function`. Also fills in what
// follows from the arguments (in place, blocks).
Result<Call> checked_call(const Communicator& communicator, const char* function, const RawCall& raw);
// Fills in the blocks and the count of a v-variant whose type and root are right.
Status read_blocks(const Communicator& communicator, const char* function, const RawCall& raw, PrepareRequest& request);

// How far a rank's buffers reach, in elements that it reads or writes.
CallElements extent_of(const Communicator& communicator, const Call& call);
// The send and the receive buffer must be the same memory, as the rules of in-place calls say, or must not overlap.
// `extent` is the call's.
Status check_overlap(const char* function, const Call& call, const CallElements& extent);

// Finds out whether this rank has data in the call, and with a device, where it lies. Refuses buffers that cannot be
// used. `extent` is the call's.
Status look_at_buffers(const Communicator& communicator, const char* function, Call& call, const CallElements& extent);
// With a device: refuses a scalar in memory of a device, because the host reads it.
Status check_scalar(const Communicator& communicator, const char* function, const void* scalar);
// Whether the communicator is alive and has a device. Only then may check_for_host() be called.
bool has_device(trestleComm_t comm);
// Refuses memory of a device, for buffers that the host itself reads and writes. name: such as "gradient". NULL passes.
Status check_for_host(const char* name, const void* memory);

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

// Enqueues the call, or adds it to the open group.
trestleResult_t run_collective(trestleComm_t comm, const char* function, const RawCall& raw, trestleStream_t stream);

}  // namespace trestle
