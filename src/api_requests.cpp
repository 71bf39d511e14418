// The C API: the separated all-reduce and its requests.
#include "api_handles.h"

using namespace trestle;

namespace {

using State = SeparatedAllReduce::State;

Result<std::shared_ptr<SeparatedAllReduce>> make_request(trestleComm_t comm, const char* function, const void* send,
                                                         void* recv, size_t count, trestleDataType_t type,
                                                         trestleRedOp_t op, trestleStream_t stream) {
  if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
  Use use(comm);
  if (!use.alive()) return invalid_usage(std::string(function) + ": the communicator was destroyed");
  auto request = std::make_shared<SeparatedAllReduce>();
  request->communicator = use.object();
  request->stream = TRY(stream_of(stream, use.object()));
  Call& start = request->start;
  start.request.collective = Collective::kReduceScatter;
  start.request.half = true;
  start.request.count = count;
  start.request.type = TRY(checked_type(function, type));
  start.request.op = TRY(checked_op(function, op));
  start.send = send;
  start.recv = recv;
  TRY(check_call(*use.object(), function, start));
  if (count != 0 && (send == nullptr || recv == nullptr)) {
    return invalid_argument(std::string(function) + ": a buffer is NULL");
  }
  start.request.in_place = send == recv;
  request->finish = start;
  request->finish.request.collective = Collective::kAllGather;
  request->finish.request.op = ReduceOp::kSum;
  request->finish.request.in_place = true;
  request->finish.send = recv;
  return request;
}

// Submits a half and an event behind it.
Status run_half(SeparatedAllReduce& request, const Call& call, const std::shared_ptr<Stream>& stream) {
  if (call.request.count != 0) TRY(request.communicator->submit(call, stream));
  request.done = std::make_shared<Event>();
  stream->record(request.done);
  request.running = stream;
  return {};
}

Status start(SeparatedAllReduce& request) {
  std::lock_guard lock(request.mutex);
  if (request.state != State::kInactive) return invalid_usage("the request was started already and is not finished");
  TRY(run_half(request, request.start, request.stream));
  request.state = State::kStarted;
  return {};
}

template <class F>
trestleResult_t with_request(trestleRequest_t handle, const char* function, F&& body) {
  return guarded([&]() -> Status {
    if (handle == nullptr) return invalid_argument(std::string(function) + ": the request is NULL");
    Use use(handle);
    if (!use.alive()) return invalid_usage(std::string(function) + ": the request was freed");
    return body(*use.object());
  });
}

// The event of what was last started, and the stream that it is on.
std::pair<std::shared_ptr<Event>, std::shared_ptr<Stream>> last_started(SeparatedAllReduce& request) {
  std::lock_guard lock(request.mutex);
  return {request.done, request.running};
}

// After completion: a finished persistent request may start again.
Status settle(SeparatedAllReduce& request) {
  std::lock_guard lock(request.mutex);
  if (request.state == State::kFinishing && request.done && request.done->complete()) request.state = State::kInactive;
  if (auto failure = request.communicator->failure()) return *failure;
  return {};
}

}  // namespace

extern "C" {

trestleResult_t trestleAllReduceStart(const void* send, void* recv, size_t count, trestleDataType_t type,
                                      trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                      trestleRequest_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return invalid_argument("AllReduceStart: request is NULL");
    auto made = TRY(make_request(comm, "AllReduceStart", send, recv, count, type, op, stream));
    TRY(start(*made));
    *request = make_handle<trestleRequest>(std::move(made));
    return {};
  });
}

trestleResult_t trestleAllReduceInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                     trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                     trestleRequest_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return invalid_argument("AllReduceInit: request is NULL");
    auto made = TRY(make_request(comm, "AllReduceInit", send, recv, count, type, op, stream));
    made->persistent = true;
    if (count != 0) {
      TRY(made->communicator->prepare_call(made->start));
      TRY(made->communicator->prepare_call(made->finish));
    }
    *request = make_handle<trestleRequest>(std::move(made));
    return {};
  });
}

trestleResult_t trestleRequestStart(trestleRequest_t request) {
  return with_request(request, "RequestStart", [](SeparatedAllReduce& object) -> Status {
    if (!object.persistent) return invalid_usage("RequestStart: only a request of AllReduceInit can be started again");
    TRY(settle(object));
    return start(object);
  });
}

trestleResult_t trestleAllReduceFinish(trestleRequest_t request, trestleStream_t stream) {
  return with_request(request, "AllReduceFinish", [&](SeparatedAllReduce& object) -> Status {
    const std::shared_ptr<Stream> target =
        stream == nullptr ? object.stream : TRY(stream_of(stream, object.communicator));
    std::lock_guard lock(object.mutex);
    if (object.state != State::kStarted) return invalid_usage("AllReduceFinish: the request was not started");
    if (target != object.stream) target->wait_for(object.done);
    TRY(run_half(object, object.finish, target));
    object.state = State::kFinishing;
    return {};
  });
}

trestleResult_t trestleRequestTest(trestleRequest_t request, int* done) {
  return with_request(request, "RequestTest", [&](SeparatedAllReduce& object) -> Status {
    if (done == nullptr) return invalid_argument("RequestTest: done is NULL");
    const auto event = last_started(object).first;
    if (event && !event->complete()) Progress::process().poke();
    const bool complete = !event || event->complete();
    if (complete) TRY(settle(object));
    *done = complete ? 1 : 0;
    return {};
  });
}

trestleResult_t trestleRequestWait(trestleRequest_t request) {
  return with_request(request, "RequestWait", [](SeparatedAllReduce& object) -> Status {
    const auto started = last_started(object);
    if (started.first) TRY(drive_until([&] { return started.first->complete(); }, started.second));
    return settle(object);
  });
}

trestleResult_t trestleRequestFree(trestleRequest_t request) {
  const trestleResult_t result = with_request(request, "RequestFree", [](SeparatedAllReduce& object) -> Status {
    std::lock_guard lock(object.mutex);
    if (object.done && !object.done->complete()) return invalid_usage("RequestFree: the request is in flight");
    return {};
  });
  if (result == trestleSuccess && end_handle(request)) {
    request->object.reset();
    HandlePool<trestleRequest>::process().bury(request);
  }
  return result;
}

}  // extern "C"
