// The C API: collectives, point to point, groups.
#include "api/collectives.h"

#include "api/background.h"
#include "api/blocks.h"
#include "api/call_config.h"
#include "api/cuda.h"
#include "api/redops.h"

using namespace trestle;

namespace trestle {

namespace {

// Sentences are made only where they are needed: every call comes through here.
Status check_numbers(const Communicator& communicator, const char* function, const Call& call) {
  const PrepareRequest& r = call.request;
  if (r.root < 0 || r.root >= communicator.ranks()) {
    return invalid_argument(std::string(function) + ": root " + std::to_string(r.root) + " is not in 0.." +
                            std::to_string(communicator.ranks() - 1));
  }
  const uint64_t element_of_all = size_of(r.type) * static_cast<uint64_t>(communicator.ranks());
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(r.count, element_of_all, &bytes) || bytes > kMostBytes) {
    return invalid_argument(std::string(function) + ": count " + std::to_string(r.count) + " of " + to_string(r.type) +
                            " overflows the size of a buffer");
  }
  return {};
}

// Whether the buffers lie as in an in-place call.
bool is_in_place(const Communicator& communicator, const Call& call) {
  const PrepareRequest& r = call.request;
  const auto* send = static_cast<const std::byte*>(call.send);
  const auto* recv = static_cast<const std::byte*>(call.recv);
  if (send == nullptr || recv == nullptr) return false;
  const InPlaceRule rule = in_place_rule(r.collective);
  if (rule == InPlaceRule::kSameBegin) return send == recv;
  if (has_root(r.collective) && communicator.rank() != r.root) return false;
  const bool send_inside = rule == InPlaceRule::kSentInReceived;
  const auto rank = static_cast<size_t>(communicator.rank());
  uint64_t elements = rank * r.count;  // before this rank's block
  if (r.blocks) elements = (send_inside ? r.blocks->received : r.blocks->sent).starts[rank];
  const uint64_t offset = elements * size_of(r.type);
  return send_inside ? send == recv + offset : recv == send + offset;
}

}  // namespace

Result<DataType> checked_type(const char* function, int type) {
  if (type >= 0 && type < trestleNumTypes) return static_cast<DataType>(type);
  return invalid_argument(std::string(function) + ": unknown type " + std::to_string(type));
}

Status check_call(const Communicator& communicator, const char* function, const Call& call) {
  return check_numbers(communicator, function, call);
}

namespace {

Status check_peer(const Communicator& communicator, const char* function, int peer) {
  if (peer >= 0 && peer < communicator.ranks()) return {};
  return invalid_argument(std::string(function) + ": peer " + std::to_string(peer) + " is not in 0.." +
                          std::to_string(communicator.ranks() - 1));
}

Status check_buffers(const char* function, const Call& call, const CallElements& extent) {
  const bool no_send = call.send == nullptr && extent.sent != 0;
  if (!no_send && (call.recv != nullptr || extent.received == 0)) return {};
  return invalid_argument(std::string(function) + (no_send ? ": the send" : ": the receive") + " buffer is NULL");
}

}  // namespace

Result<Call> checked_call(const Communicator& communicator, const char* function, const RawCall& raw) {
  Call call;
  call.send = raw.send;
  call.recv = raw.recv;
  call.sending = raw.sending;
  PrepareRequest& request = call.request;
  request.collective = raw.collective;
  request.peer = raw.peer;
  if (is_point_to_point(raw.collective)) TRY(check_peer(communicator, function, raw.peer));
  request.type = TRY(checked_type(function, raw.type));
  TRY(set_op(communicator, function, raw.op, request));
  request.root = raw.root;
  const bool uneven = has_uneven_blocks(raw.collective);
  request.count = uneven ? 0 : raw.count;
  TRY(check_call(communicator, function, call));
  if (uneven) TRY(read_blocks(communicator, function, raw, request));
  const CallElements extent = extent_of(communicator, call);
  TRY(check_buffers(function, call, extent));
  TRY(look_at_buffers(communicator, function, call, extent));
  request.in_place = is_in_place(communicator, call);
  TRY(check_overlap(function, call, extent));
  apply_call_config(call);
  return call;
}

Result<std::shared_ptr<Stream>> stream_of(const char* function, trestleStream_t stream,
                                          const std::shared_ptr<Communicator>& communicator) {
  if (stream == nullptr) return communicator->own_stream();
  Use use(stream);
  if (!use.alive()) return dead_handle(use, function, "stream");
  if (use.object()->has_outer()) TRY(check_device(function, *use.object(), *communicator));
  return use.object();
}

trestleResult_t run_collective(trestleComm_t comm, const char* function, const RawCall& raw, trestleStream_t handle) {
  return guarded_in_group(
      [&]() -> Status {
        if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
        Use use(comm);
        TRY(check_ready(use, function));
        const std::shared_ptr<Communicator>& communicator = use.object();
        const Call call = TRY(checked_call(*communicator, function, raw));
        // The communicator keeps its own stream, so that one is not copied.
        const std::shared_ptr<Stream> other =
            handle == nullptr ? nullptr : TRY(stream_of(function, handle, communicator));
        const std::shared_ptr<Stream>& stream = handle == nullptr ? communicator->own_stream() : other;
        TRY(communicator->check_open());
        const bool empty = is_empty(call);
        Group& group = Group::of_this_thread();
        if (group.open()) return group.add({communicator, call, empty, stream, nullptr, nullptr});
        if (!empty) return communicator->submit(call, stream);
        if (TRY(stream->captured_lane()) == nullptr) communicator->calls().skip(call, *stream);
        return {};
      },
      [comm] { fail_without_memory(comm); });
}

namespace {

trestleResult_t point_to_point(trestleComm_t comm, const char* function, RawCall raw, bool sending, int peer,
                               trestleStream_t stream) {
  raw.sending = sending;
  raw.peer = peer;
  return run_collective(comm, function, raw, stream);
}

}  // namespace

}  // namespace trestle

extern "C" {

trestleResult_t trestleAllReduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                                 trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "AllReduce", raw_call(Collective::kAllReduce, send, recv, count, type, op), stream);
}

trestleResult_t trestleReduceScatter(const void* send, void* recv, size_t recvcount, trestleDataType_t type,
                                     trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "ReduceScatter", raw_call(Collective::kReduceScatter, send, recv, recvcount, type, op),
                        stream);
}

trestleResult_t trestleAllGather(const void* send, void* recv, size_t sendcount, trestleDataType_t type,
                                 trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "AllGather", raw_call(Collective::kAllGather, send, recv, sendcount, type), stream);
}

trestleResult_t trestleBroadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                 trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "Broadcast", raw_call(Collective::kBroadcast, send, recv, count, type, trestleSum, root),
                        stream);
}

trestleResult_t trestleReduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                              int root, trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "Reduce", raw_call(Collective::kReduce, send, recv, count, type, op, root), stream);
}

trestleResult_t trestleAllToAll(const void* send, void* recv, size_t count, trestleDataType_t type, trestleComm_t comm,
                                trestleStream_t stream) {
  return run_collective(comm, "AllToAll", raw_call(Collective::kAllToAll, send, recv, count, type), stream);
}

trestleResult_t trestleSend(const void* send, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                            trestleStream_t stream) {
  return point_to_point(comm, "Send", raw_call(Collective::kSendRecv, send, nullptr, count, type), true, peer, stream);
}

trestleResult_t trestleRecv(void* recv, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                            trestleStream_t stream) {
  return point_to_point(comm, "Recv", raw_call(Collective::kSendRecv, nullptr, recv, count, type), false, peer, stream);
}

trestleResult_t trestleBarrier(trestleComm_t comm, trestleStream_t stream) {
  return run_collective(comm, "Barrier", barrier_call(), stream);
}

trestleResult_t trestleGroupStart(void) {
  return guarded([]() -> Status {
    Group::of_this_thread().start();
    return {};
  });
}

trestleResult_t trestleGroupEnd(void) {
  return guarded([] { return Group::of_this_thread().end(); });
}

}  // extern "C"
