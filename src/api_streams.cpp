// The C API: streams and events on the host.
#include "api_handles.h"

using namespace trestle;

namespace trestle {

Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream) {
  Progress::process().wait(done, [&]() -> std::shared_ptr<Engine> { return stream ? stream->head_engine() : nullptr; });
  return {};
}

}  // namespace trestle

namespace {

template <class H, class F>
trestleResult_t with_handle(H* handle, const char* function, const char* what, F&& body) {
  return guarded([&]() -> Status {
    if (handle == nullptr) return invalid_argument(std::string(function) + ": the " + what + " is NULL");
    Use use(handle);
    if (!use.alive()) return invalid_usage(std::string(function) + ": the " + what + " was destroyed");
    return body(use.object());
  });
}

Status wait_idle(const std::shared_ptr<Stream>& stream) {
  TRY(drive_until([&] { return stream->idle(); }, stream));
  if (auto error = stream->take_error()) return *error;
  return {};
}

template <class H>
void bury(H* handle) {
  handle->object.reset();
  HandlePool<H>::process().bury(handle);
}

}  // namespace

extern "C" {

trestleResult_t trestleStreamCreate(trestleStream_t* stream) {
  return guarded([&]() -> Status {
    if (stream == nullptr) return invalid_argument("StreamCreate: stream is NULL");
    *stream = make_handle<trestleStream>(std::make_shared<Stream>());
    return {};
  });
}

trestleResult_t trestleStreamDestroy(trestleStream_t stream) {
  std::shared_ptr<Stream> kept;
  const trestleResult_t result = with_handle(stream, "StreamDestroy", "stream", [&](const auto& object) {
    kept = object;
    return wait_idle(object);
  });
  if (kept && end_handle(stream)) bury(stream);
  return result;
}

trestleResult_t trestleStreamSynchronize(trestleStream_t stream) {
  return with_handle(stream, "StreamSynchronize", "stream", [](const auto& object) { return wait_idle(object); });
}

trestleResult_t trestleStreamQuery(trestleStream_t stream) {
  bool idle = true;
  const trestleResult_t result = with_handle(stream, "StreamQuery", "stream", [&](const auto& object) -> Status {
    if (!object->idle()) Progress::process().poke();
    idle = object->idle();
    if (!idle) return {};
    if (auto error = object->take_error()) return *error;
    return {};
  });
  return result == trestleSuccess && !idle ? trestleInProgress : result;
}

trestleResult_t trestleStreamWaitEvent(trestleStream_t stream, trestleEvent_t event) {
  return with_handle(stream, "StreamWaitEvent", "stream", [&](const auto& object) -> Status {
    if (event == nullptr) return invalid_argument("StreamWaitEvent: the event is NULL");
    Use use(event);
    if (!use.alive()) return invalid_usage("StreamWaitEvent: the event was destroyed");
    object->wait_for(use.object());
    return {};
  });
}

trestleResult_t trestleEventCreate(trestleEvent_t* event) {
  return guarded([&]() -> Status {
    if (event == nullptr) return invalid_argument("EventCreate: event is NULL");
    *event = make_handle<trestleEvent>(std::make_shared<Event>());
    return {};
  });
}

trestleResult_t trestleEventDestroy(trestleEvent_t event) {
  const trestleResult_t result = with_handle(event, "EventDestroy", "event", [](const auto&) { return Status(); });
  if (result == trestleSuccess && end_handle(event)) bury(event);
  return result;
}

trestleResult_t trestleEventRecord(trestleEvent_t event, trestleStream_t stream) {
  return with_handle(stream, "EventRecord", "stream", [&](const auto& object) -> Status {
    if (event == nullptr) return invalid_argument("EventRecord: the event is NULL");
    Use use(event);
    if (!use.alive()) return invalid_usage("EventRecord: the event was destroyed");
    object->record(use.object());
    return {};
  });
}

trestleResult_t trestleEventSynchronize(trestleEvent_t event) {
  return with_handle(event, "EventSynchronize", "event", [](const auto& object) {
    return drive_until([&] { return object->complete(); }, object->stream());
  });
}

trestleResult_t trestleEventQuery(trestleEvent_t event) {
  bool complete = true;
  const trestleResult_t result = with_handle(event, "EventQuery", "event", [&](const auto& object) -> Status {
    if (!object->complete()) Progress::process().poke();
    complete = object->complete();
    return {};
  });
  return result == trestleSuccess && !complete ? trestleInProgress : result;
}

}  // extern "C"
