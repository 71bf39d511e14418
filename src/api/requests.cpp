// The C API: the separated all-reduce and its requests.
#include "api/background.h"
#include "api/blocks.h"
#include "api/call_config.h"
#include "api/calls.h"
#include "api/collectives.h"
#include "api/cuda.h"
#include "api/redops.h"
#include "api/streams.h"

using namespace trestle;

namespace {

using State = Request::State;

Result<std::shared_ptr<Request>> make_request(trestleComm_t comm, const char* function, const void* send, void* recv,
                                              size_t count, trestleDataType_t type, trestleRedOp_t op,
                                              trestleStream_t stream) {
  if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
  Use use(comm);
  TRY(check_ready(use, function));
  auto request = std::make_shared<Request>();
  request->communicator = use.object();
  request->stream = TRY(stream_of(function, stream, use.object()));
  Call& start = request->start;
  start.request.collective = Collective::kReduceScatter;
  start.request.half = true;
  start.request.count = count;
  start.request.type = TRY(checked_type(function, type));
  TRY(set_op(*use.object(), function, op, start.request));
  start.send = send;
  start.recv = recv;
  TRY(check_call(*use.object(), function, start));
  if (count != 0 && (send == nullptr || recv == nullptr)) {
    return invalid_argument(std::string(function) + ": a buffer is NULL");
  }
  TRY(request->communicator->check_open());
  start.request.in_place = send == recv;
  const CallElements extent = extent_of(*use.object(), start);
  TRY(look_at_buffers(*use.object(), function, start, extent));
  TRY(check_overlap(function, start, extent));
  apply_call_config(start);
  request->finish = start;
  request->finish.request.collective = Collective::kAllGather;
  request->finish.request.op = ReduceOp::kSum;
  request->finish.request.custom.reset();
  request->finish.request.in_place = true;
  request->finish.send = recv;
  return request;
}

Status in_a_group(const char* function) {
  return invalid_usage(std::string(function) +
                       ": a half of the request is in an open group and begins at its GroupEnd: end the group first");
}

// A half was put on `stream`: adds a record behind it.
void record_half(Request& request, const std::shared_ptr<Stream>& stream, State state) TRESTLE_REQUIRES(request.mutex) {
  request.done = stream->record();
  request.running = stream;
  request.state = state;
}

// Submits a half, or leaves it to the open group. `state` becomes the request's state when the half was submitted.
Status run_half(const std::shared_ptr<Request>& request, const Call& call, const std::shared_ptr<Stream>& stream,
                State state) TRESTLE_REQUIRES(request->mutex) {
  // The start, which it must wait for, is on another stream.
  const bool elsewhere = request->done && stream != request->running;
  const std::shared_ptr<Recording> after = elsewhere ? request->done : nullptr;
  const bool empty = is_empty(call);
  TRY(request->communicator->check_open());
  if (TRY(stream->captured_lane()) != nullptr) {
    return invalid_usage(
        "the CUDA stream is being captured into a graph, and requests cannot be captured: call the collective itself");
  }
  Group& group = Group::of_this_thread();
  if (!group.open()) {
    if (after) stream->wait_for(after);
    if (empty) request->communicator->calls().skip(call, *stream);
    if (!empty) TRY(request->communicator->submit(call, stream));
    record_half(*request, stream, state);
    return {};
  }
  const State before = std::exchange(request->state, State::kGrouped);
  const auto settled = [=](bool enqueued) {
    const MutexLock lock(request->mutex);
    request->state = before;
    if (enqueued) record_half(*request, stream, state);
  };
  const Status status = group.add({request->communicator, call, empty, stream, after, settled});
  if (!status.ok()) request->state = before;
  return status;
}

Status start(const std::shared_ptr<Request>& request, const char* function) {
  const MutexLock lock(request->mutex);
  if (request->state == State::kGrouped) return in_a_group(function);
  if (request->state != State::kInactive) return invalid_usage("the request was started already and is not finished");
  return run_half(request, request->start, request->stream, State::kStarted);
}

template <class F>
Status with_object(trestleRequest_t handle, const char* function, F&& body) {
  if (handle == nullptr) return invalid_argument(std::string(function) + ": the request is NULL");
  Use use(handle);
  if (!use.alive()) return dead_handle(use, function, "request", "freed");
  return body(use.object());
}

template <class F>
trestleResult_t with_request(trestleRequest_t handle, const char* function, F&& body) {
  return guarded([&] { return with_object(handle, function, body); });
}

// For calls that an open group collects.
template <class F>
trestleResult_t half_of_request(trestleRequest_t handle, const char* function, F&& body) {
  return guarded_in_group([&] { return with_object(handle, function, body); },
                          [handle] {
                            Use use(handle);
                            if (use.alive()) use.object()->communicator->engine().fail_without_memory();
                          });
}

// The record behind what was started last, and its stream.
using Started = std::pair<std::shared_ptr<Recording>, std::shared_ptr<Stream>>;
Result<Started> last_started(Request& request, const char* function) {
  const MutexLock lock(request.mutex);
  if (request.state == State::kGrouped) return in_a_group(function).error();
  return Started{request.done, request.running};
}

// To be called after completion: a finished persistent request may start again.
Status settle(Request& request) {
  const MutexLock lock(request.mutex);
  const State last = request.whole ? State::kStarted : State::kFinishing;
  if (request.state == last && request.done && request.done->complete()) request.state = State::kInactive;
  if (auto failure = request.communicator->failure()) return *failure;
  return {};
}

}  // namespace

extern "C" {

trestleResult_t trestleAllReduceStart(const void* send, void* recv, size_t count, trestleDataType_t type,
                                      trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                      trestleRequest_t* request) {
  return guarded_in_group(
      [&]() -> Status {
        if (request == nullptr) return invalid_argument("AllReduceStart: request is NULL");
        auto made = TRY(make_request(comm, "AllReduceStart", send, recv, count, type, op, stream));
        ReservedHandle<trestleRequest> handle;
        TRY(start(made, "AllReduceStart"));
        *request = handle.take(std::move(made));
        return {};
      },
      [comm] { fail_without_memory(comm); });
}

trestleResult_t trestleAllReduceStartInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                          trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                          trestleRequest_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return invalid_argument("AllReduceStartInit: request is NULL");
    auto made = TRY(make_request(comm, "AllReduceStartInit", send, recv, count, type, op, stream));
    made->persistent = true;
    if (count != 0) {
      CallPlanner& planner = made->communicator->calls().planner();
      made->held_start = TRY(planner.hold(made->start, {made->stream}));
      made->held_finish = TRY(planner.hold(made->finish, {made->stream}));
    }
    *request = make_handle<trestleRequest>(std::move(made));
    return {};
  });
}

trestleResult_t trestleRequestStart(trestleRequest_t request) {
  return half_of_request(request, "RequestStart", [](const auto& object) -> Status {
    if (!object->persistent) return invalid_usage("RequestStart: only a request of an Init call can be started again");
    TRY(settle(*object));
    return start(object, "RequestStart");
  });
}

trestleResult_t trestleAllReduceFinish(trestleRequest_t request, trestleStream_t stream) {
  return half_of_request(request, "AllReduceFinish", [&](const auto& object) -> Status {
    const std::shared_ptr<Stream> target =
        stream == nullptr ? object->stream : TRY(stream_of("AllReduceFinish", stream, object->communicator));
    const MutexLock lock(object->mutex);
    if (object->state == State::kGrouped) return in_a_group("AllReduceFinish");
    if (object->whole) {
      return invalid_usage("AllReduceFinish: this request is of a whole collective, which one RequestStart runs");
    }
    if (object->state != State::kStarted) return invalid_usage("AllReduceFinish: the request was not started");
    return run_half(object, object->finish, target, State::kFinishing);
  });
}

trestleResult_t trestleRequestTest(trestleRequest_t request, int* done) {
  return with_request(request, "RequestTest", [&](const auto& object) -> Status {
    if (done == nullptr) return invalid_argument("RequestTest: done is NULL");
    const auto recording = TRY(last_started(*object, "RequestTest")).first;
    if (recording && !recording->complete()) test(*recording);
    const bool complete = !recording || recording->complete();
    if (complete) TRY(settle(*object));
    *done = complete ? 1 : 0;
    return {};
  });
}

trestleResult_t trestleRequestWait(trestleRequest_t request) {
  return with_request(request, "RequestWait", [](const auto& object) -> Status {
    const auto started = TRY(last_started(*object, "RequestWait"));
    if (started.first) TRY(drive_until([&] { return started.first->complete(); }, started.second));
    return settle(*object);
  });
}

trestleResult_t trestleRequestFree(trestleRequest_t request) {
  const trestleResult_t result = with_request(request, "RequestFree", [](const auto& object) -> Status {
    const MutexLock lock(object->mutex);
    if (object->state == State::kGrouped) return in_a_group("RequestFree");
    if (object->done && !object->done->complete()) return invalid_usage("RequestFree: the request is in flight");
    return {};
  });
  if (result == trestleSuccess && end_handle(request)) {
    request->object.reset();
    HandlePool<trestleRequest>::process().bury(request);
  }
  return result;
}

}  // extern "C"
