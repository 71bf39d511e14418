// The C API: collectives, point to point, groups.
#include "api_handles.h"

using namespace trestle;

namespace trestle {

namespace {

// Largest number of bytes of a buffer: offsets stay far from overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

Status check_numbers(const Communicator& communicator, const std::string& in, const Call& call) {
  const PrepareRequest& r = call.request;
  const auto outside = [&](int32_t rank) { return rank < 0 || rank >= communicator.ranks(); };
  const std::string range = " is not in 0.." + std::to_string(communicator.ranks() - 1);
  if (outside(r.root)) return invalid_argument(in + "root " + std::to_string(r.root) + range);
  const uint64_t blocks = communicator.ranks();
  if (r.count > kMostBytes / size_of(r.type) / blocks) {
    return invalid_argument(in + "count " + std::to_string(r.count) + " of " + to_string(r.type) +
                            " overflows the size of a buffer");
  }
  return {};
}

bool reads_send(const Communicator& communicator, const Call& call) {
  if (call.request.collective == Collective::kSendRecv) return call.sending;
  return call.request.collective != Collective::kBroadcast || communicator.rank() == call.request.root;
}

bool writes_recv(const Communicator& communicator, const Call& call) {
  if (call.request.collective == Collective::kSendRecv) return !call.sending;
  return call.request.collective != Collective::kReduce || communicator.rank() == call.request.root;
}

// Where the send buffer of an operation in place lies.
bool is_in_place(const Communicator& communicator, const Call& call) {
  const PrepareRequest& r = call.request;
  const auto* send = static_cast<const std::byte*>(call.send);
  const auto* recv = static_cast<const std::byte*>(call.recv);
  if (send == nullptr || recv == nullptr) return false;
  const uint64_t block = r.count * size_of(r.type);
  switch (r.collective) {
    case Collective::kReduceScatter:
      return r.half ? send == recv : recv == send + communicator.rank() * block;
    case Collective::kAllGather:
      return r.half || send == recv + communicator.rank() * block;
    default:
      return send == recv;
  }
}

}  // namespace

Result<DataType> checked_type(const char* function, int type) {
  if (type >= 0 && type < trestleNumTypes) return static_cast<DataType>(type);
  return invalid_argument(std::string(function) + ": unknown type " + std::to_string(type));
}

Result<ReduceOp> checked_op(const char* function, int op) {
  if (op >= 0 && op < trestleNumOps) return static_cast<ReduceOp>(op);
  return invalid_argument(std::string(function) + ": unknown operator " + std::to_string(op));
}

Status check_call(const Communicator& communicator, const char* function, const Call& call) {
  const std::string in = std::string(function) + ": ";
  TRY(check_numbers(communicator, in, call));
  return {};
}

namespace {

Status check_peer(const Communicator& communicator, const char* function, int peer) {
  if (peer >= 0 && peer < communicator.ranks()) return {};
  return invalid_argument(std::string(function) + ": peer " + std::to_string(peer) + " is not in 0.." +
                          std::to_string(communicator.ranks() - 1));
}

Status check_buffers(const Communicator& communicator, const char* function, const Call& call) {
  if (call.request.collective == Collective::kBarrier || call.request.count == 0) return {};
  const std::string in = std::string(function) + ": ";
  if (call.send == nullptr && reads_send(communicator, call)) return invalid_argument(in + "the send buffer is NULL");
  if (call.recv == nullptr && writes_recv(communicator, call))
    return invalid_argument(in + "the receive buffer is NULL");
  return {};
}

}  // namespace

Result<std::shared_ptr<Stream>> stream_of(trestleStream_t stream, const std::shared_ptr<Communicator>& communicator) {
  if (stream == nullptr) return communicator->own_stream();
  Use use(stream);
  if (!use.alive()) return invalid_usage("the stream was destroyed");
  return use.object();
}

Status enqueue_call(const std::shared_ptr<Communicator>& communicator, const char* function, Call call,
                    trestleStream_t stream_handle) {
  TRY(check_call(*communicator, function, call));
  TRY(check_buffers(*communicator, function, call));
  const std::shared_ptr<Stream> stream = TRY(stream_of(stream_handle, communicator));
  TRY(communicator->check_open());
  if (call.request.count == 0 && call.request.collective != Collective::kBarrier)
    return {};  // nothing to do, on every rank
  call.request.in_place = is_in_place(*communicator, call);
  Group& group = Group::of_this_thread();
  if (!group.open()) return communicator->submit(call, stream);
  return group.add({communicator, call, false, stream, nullptr, nullptr});
}

namespace {

// The arguments as they came: numbers of enums are checked before they are narrowed.
struct RawCall {
  Call call;
  int type = 0;
  int op = 0;
};

trestleResult_t collective(trestleComm_t comm, const char* function, RawCall raw, trestleStream_t stream) {
  return guarded_in_group([&]() -> Status {
    if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
    Use use(comm);
    if (!use.alive()) return invalid_usage(std::string(function) + ": the communicator was destroyed");
    const bool message = raw.call.request.collective == Collective::kSendRecv;
    if (message) TRY(check_peer(*use.object(), function, raw.call.request.peer));
    raw.call.request.type = TRY(checked_type(function, raw.type));
    raw.call.request.op = TRY(checked_op(function, raw.op));
    return enqueue_call(use.object(), function, raw.call, stream);
  });
}

RawCall make_call(Collective collective, const void* send, void* recv, size_t count, trestleDataType_t type,
                  trestleRedOp_t op = trestleSum, int root = 0) {
  RawCall raw{{}, static_cast<int>(type), static_cast<int>(op)};
  raw.call.request.collective = collective;
  raw.call.request.count = count;
  raw.call.request.root = root;
  raw.call.send = send;
  raw.call.recv = recv;
  return raw;
}

trestleResult_t point_to_point(trestleComm_t comm, const char* function, RawCall raw, bool sending, int peer,
                               trestleStream_t stream) {
  raw.call.sending = sending;
  raw.call.request.peer = peer;
  return collective(comm, function, raw, stream);
}

}  // namespace

}  // namespace trestle

extern "C" {

trestleResult_t trestleAllReduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                                 trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "AllReduce", make_call(Collective::kAllReduce, send, recv, count, type, op), stream);
}

trestleResult_t trestleReduceScatter(const void* send, void* recv, size_t recvcount, trestleDataType_t type,
                                     trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "ReduceScatter", make_call(Collective::kReduceScatter, send, recv, recvcount, type, op),
                    stream);
}

trestleResult_t trestleAllGather(const void* send, void* recv, size_t sendcount, trestleDataType_t type,
                                 trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "AllGather", make_call(Collective::kAllGather, send, recv, sendcount, type), stream);
}

trestleResult_t trestleBroadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                 trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "Broadcast", make_call(Collective::kBroadcast, send, recv, count, type, trestleSum, root),
                    stream);
}

trestleResult_t trestleReduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                              int root, trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "Reduce", make_call(Collective::kReduce, send, recv, count, type, op, root), stream);
}

trestleResult_t trestleAllToAll(const void* send, void* recv, size_t count, trestleDataType_t type, trestleComm_t comm,
                                trestleStream_t stream) {
  return collective(comm, "AllToAll", make_call(Collective::kAllToAll, send, recv, count, type), stream);
}

trestleResult_t trestleSend(const void* send, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                            trestleStream_t stream) {
  return point_to_point(comm, "Send", make_call(Collective::kSendRecv, send, nullptr, count, type), true, peer, stream);
}

trestleResult_t trestleRecv(void* recv, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                            trestleStream_t stream) {
  return point_to_point(comm, "Recv", make_call(Collective::kSendRecv, nullptr, recv, count, type), false, peer,
                        stream);
}

trestleResult_t trestleBarrier(trestleComm_t comm, trestleStream_t stream) {
  return collective(comm, "Barrier", make_call(Collective::kBarrier, nullptr, nullptr, 0, trestleInt8), stream);
}

trestleResult_t trestleGroupStart(void) {
  Group::of_this_thread().start();
  return trestleSuccess;
}

trestleResult_t trestleGroupEnd(void) {
  return guarded([] { return Group::of_this_thread().end(); });
}

}  // extern "C"
