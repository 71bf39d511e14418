// The C API: streams and events on the host.
#include "api/streams.h"

#include <exception>

#include "api/errors.h"
#include "api/handles.h"
#include "api/user_code.h"
#include "base/log.h"
#include "base/scope_exit.h"

using namespace trestle;

namespace trestle {

Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream) {
  Progress::process().wait(done, [&]() -> std::shared_ptr<Engine> { return stream ? stream->head_engine() : nullptr; });
  return {};
}

void test(const Recording& recording) {
  const auto stream = recording.stream();
  Progress::process().poke(stream != nullptr ? stream->head_engine() : nullptr);
}

Status check_begun(const char* function, const char* what, size_t calls) {
  if (calls == 0) return {};
  return invalid_usage(std::string(function) + ": " + std::to_string(calls) + (calls == 1 ? " call" : " calls") +
                       " on this " + what +
                       " lie in a group that is open on this thread, and begin at its GroupEnd: end the group first "
                       "(GroupStart without GroupEnd?)");
}

}  // namespace trestle

namespace {

template <class H, class F>
trestleResult_t with_handle(H* handle, const char* function, const char* what, F&& body) {
  return guarded([&]() -> Status {
    if (handle == nullptr) return invalid_argument(std::string(function) + ": the " + what + " is NULL");
    Use use(handle);
    if (!use.alive()) return dead_handle(use, function, what);
    return body(use.object());
  });
}

Status wait_idle(const std::shared_ptr<Stream>& stream) {
  TRY(drive_until([&] { return stream->idle(); }, stream));
  if (auto failure = stream->tell_failure()) return *std::move(failure);
  return {};
}

Status wait_for(const Recording& recording, const std::shared_ptr<Stream>& stream) {
  TRY(drive_until([&] { return recording.complete(); }, stream));
  if (recording.failure()) return *recording.failure();
  return {};
}

// An event that was recorded in an open group, on a stream with calls in that group, does not include those calls yet.
Status check_recorded(const char* function, const Recording& recording) {
  const Group& group = Group::of_this_thread();
  const auto stream = recording.stream();
  if (stream == nullptr || !group.has_record(recording)) return {};
  return check_begun(function, "event's stream", group.calls_on(*stream));
}

// Waits for the work that is on the stream now. If several threads wait, each gets the failure, not only the first to
// ask.
Status synchronize(const std::shared_ptr<Stream>& stream) {
  if (stream->idle()) return wait_idle(stream);
  const auto until_idle = [&] { (void)drive_until([&] { return stream->idle(); }, stream); };
  ScopeExit no_record(until_idle);  // without memory for one: the caller may use the calls' buffers all the same
  const std::shared_ptr<Recording> recording = stream->record();
  no_record.release();
  Status status = wait_for(*recording, stream);
  if (!status.ok()) stream->tell_failure();
  return status;
}

void fail_for_notification(const std::weak_ptr<Engine>& user, const std::string& thrown) {
  const std::string sentence = "a function given to trestleEventNotify threw an exception (" + thrown + ")";
  LOG(kWarn, kColl, "%s", sentence.c_str());
  if (const auto engine = user.lock()) engine->fail_of_user({Code::kInvalidUsage, sentence});
}

// Runs on the helper thread. Inside it GetLastError returns the failure.
void call_notification(trestleNotifyFunction_t function, void* context, const Failure& failure,
                       const std::weak_ptr<Engine>& user) {
  const trestleResult_t result = failure ? report(*failure) : trestleSuccess;
  try {
    const InUserCode now(UserCode::kNotification);
    function(context, result);
  } catch (const std::exception& exception) {
    fail_for_notification(user, exception.what());
  } catch (...) {
    fail_for_notification(user, "not a std::exception");
  }
}

Status notify(const Event& event, trestleNotifyFunction_t function, void* context) {
  std::shared_ptr<Recording> recording = event.last();
  if (recording == nullptr) recording = std::make_shared<Stream>()->record();  // complete: nothing is before it
  TRY(check_recorded("EventNotify", *recording));
  return recording->notify([function, context](const Failure& failure, const std::weak_ptr<Engine>& user) {
    call_notification(function, context, failure, user);
  });
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
  const trestleResult_t result = with_handle(stream, "StreamDestroy", "stream", [&](const auto& object) -> Status {
    TRY(drive_until([&] { return object->idle(); }, object));
    kept = object;  // work on it uses it until here
    return wait_idle(object);
  });
  if (kept && end_handle(stream)) bury(stream);
  return result;
}

trestleResult_t trestleStreamSynchronize(trestleStream_t stream) {
  return with_handle(stream, "StreamSynchronize", "stream", [](const auto& object) -> Status {
    TRY(check_begun("StreamSynchronize", "stream", Group::of_this_thread().calls_on(*object)));
    return synchronize(object);
  });
}

trestleResult_t trestleStreamQuery(trestleStream_t stream) {
  bool idle = true;
  const trestleResult_t result = with_handle(stream, "StreamQuery", "stream", [&](const auto& object) -> Status {
    TRY(check_begun("StreamQuery", "stream", Group::of_this_thread().calls_on(*object)));
    if (!object->idle()) Progress::process().poke(object->head_engine());
    idle = object->idle();
    if (!idle) return {};
    if (auto failure = object->tell_failure()) return *std::move(failure);
    return {};
  });
  return result == trestleSuccess && !idle ? trestleInProgress : result;
}

trestleResult_t trestleStreamWaitEvent(trestleStream_t stream, trestleEvent_t event) {
  return with_handle(stream, "StreamWaitEvent", "stream", [&](const auto& object) -> Status {
    if (event == nullptr) return invalid_argument("StreamWaitEvent: the event is NULL");
    Use use(event);
    if (!use.alive()) return dead_handle(use, "StreamWaitEvent", "event");
    return object->wait_outer(use.object()->last());
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
    if (!use.alive()) return dead_handle(use, "EventRecord", "event");
    TRY(use.object()->record_outer(*object));
    Group& group = Group::of_this_thread();
    if (group.calls_on(*object) != 0) group.add_record(use.object()->last());
    return {};
  });
}

trestleResult_t trestleEventSynchronize(trestleEvent_t event) {
  return with_handle(event, "EventSynchronize", "event", [](const auto& object) -> Status {
    const auto recording = object->last();
    if (recording == nullptr) return {};
    TRY(check_recorded("EventSynchronize", *recording));
    return wait_for(*recording, recording->stream());
  });
}

trestleResult_t trestleEventQuery(trestleEvent_t event) {
  bool complete = true;
  const trestleResult_t result = with_handle(event, "EventQuery", "event", [&](const auto& object) -> Status {
    const auto recording = object->last();
    if (recording == nullptr) return {};
    TRY(check_recorded("EventQuery", *recording));
    if (!recording->complete()) test(*recording);
    complete = recording->complete();
    if (complete && recording->failure()) return *recording->failure();
    return {};
  });
  return result == trestleSuccess && !complete ? trestleInProgress : result;
}

trestleResult_t trestleEventNotify(trestleEvent_t event, trestleNotifyFunction_t function, void* context) {
  return with_handle(event, "EventNotify", "event", [&](const auto& object) -> Status {
    if (function == nullptr) return invalid_argument("EventNotify: the function is NULL");
    return notify(*object, function, context);
  });
}

}  // extern "C"
