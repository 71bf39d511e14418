// Entry points of the fake driver: streams, events, words, copies, launches.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "unit/device/fake_state.h"

#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuStreamWaitValue32
#undef cuStreamWriteValue32

namespace trestle::fake {
namespace {

// Each device has default streams of its own: those of the context that is current.
using DefaultStreams = std::map<CUcontext, Stream>;

Stream& default_stream(DefaultStreams& streams) {
  CUcontext const context = current().empty() ? nullptr : current().back();
  Stream& stream = streams[context];
  stream.context = context;
  stream.legacy = true;
  state().streams.insert(&stream);
  return stream;
}

Stream& legacy_stream() {
  static auto* const streams = new DefaultStreams;
  return default_stream(*streams);
}

// Never freed: its thread may end before what it has submitted is done.
Stream& stream_of_this_thread() {
  thread_local auto* const streams = new DefaultStreams;
  return default_stream(*streams);
}

}  // namespace

Stream& stream_of(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return legacy_stream();
  if (handle == CU_STREAM_PER_THREAD) return stream_of_this_thread();
  auto* const stream = reinterpret_cast<Stream*>(handle);
  const bool is_live = state().streams.count(stream) != 0 && !stream->destroyed;
  if (!is_live && stream != &state().capturing && stream != &state().foreign) {
    misused("a stream is used that is not there");
    return legacy_stream();
  }
  return *stream;
}

namespace {

Event& event_of(CUevent handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  if (state().events.count(event) == 0) misused("an event is used that is not there");
  return *event;
}

// make: makes an action that has not begun. A graph makes one for each launch.
CUresult submit_made(CUstream handle, std::function<Action()> make) {
  if (state().broken != CUDA_SUCCESS) return state().broken;
  Stream& stream = stream_of(handle);
  if (stream.graph != nullptr) {
    stream.graph->actions.push_back(std::move(make));
    return CUDA_SUCCESS;
  }
  stream.actions.push_back(make());
  ++state().submitted;
  state().most_waiting = std::max(state().most_waiting, static_cast<int>(stream.actions.size()));
  return CUDA_SUCCESS;
}

CUresult submit(CUstream stream, Action action) {
  return submit_made(stream, [action = std::move(action)] { return action; });
}

CUresult submit_at_once(CUstream stream, std::function<void()> action) {
  return submit(stream, [action = std::move(action)] {
    action();
    return true;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER(true);
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  FAKE_ENTER(true);
  if (flags != CU_STREAM_NON_BLOCKING) misused("a stream that waits for the legacy one");
  auto* const made = new Stream{{}, current().back()};
  state().streams.insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  ++state().objects.streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream handle) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  Stream* const stream = &stream_of(handle);
  if (state().streams.count(stream) != 0 && !stream->legacy && !stream->destroyed) {
    stream->destroyed = true;
    --state().objects.streams;
  }
  return enter(__func__, true);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  FAKE_ENTER(false);
  *context = stream_of(stream).context;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_ENTER(true);
  *status = stream_of(stream).capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
// No call of its own: it fails only if the driver is gone.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode());
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream stream) {
  FAKE_ENTER(true);
  advance();
  if (state().broken != CUDA_SUCCESS) return state().broken;
  return stream_of(stream).actions.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
// A stream that nobody will ever let go on is an error here, not a hang.
CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER(true);
  const bool shuffled = std::exchange(state().shuffled, false);
  advance();
  state().shuffled = shuffled;
  if (state().broken != CUDA_SUCCESS) return state().broken;
  return stream_of(stream).actions.empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
  FAKE_ENTER(true);
  Event* const event = &event_of(handle);
  const uint64_t recorded = event->recorded;
  return submit(stream, [event, recorded] { return event->done >= recorded; });
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  FAKE_ENTER(true);
  if (!state().word_waits) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) misused("another comparison");
  // As a device sees memory of the host: the host reads and writes the word at the same time.
  const std::atomic_ref word(*reinterpret_cast<uint32_t*>(address));
  return submit(stream,
                [word, value] { return static_cast<int32_t>(word.load(std::memory_order_acquire) - value) >= 0; });
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  FAKE_ENTER(true);
  if (!state().word_writes) return CUDA_ERROR_NOT_SUPPORTED;
  if (state().broken == CUDA_SUCCESS) state().writes.insert(address);
  return submit_at_once(stream, [address, value] {
    std::atomic_ref(*reinterpret_cast<uint32_t*>(address)).store(value, std::memory_order_release);
    state().writes.erase(state().writes.find(address));
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  FAKE_ENTER(true);
  const bool timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  if (timed && shared) return CUDA_ERROR_INVALID_VALUE;
  auto* const made = new Event{0, 0, timed, shared};
  state().events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  ++state().objects.events;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent handle) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  advance();
  Event* const event = &event_of(handle);
  if (state().events.erase(event) != 0) {
    delete event;
    --state().objects.events;
  }
  return enter(__func__, true);
}
CUresult cuEventRecord(CUevent handle, CUstream stream) {
  FAKE_ENTER(true);
  Event* const event = &event_of(handle);
  const uint64_t number = ++event->recorded;
  return submit_at_once(stream, [event, number] { event->done = number; });
}
CUresult cuEventQuery(CUevent handle) {
  FAKE_ENTER(true);
  advance();
  if (state().broken != CUDA_SUCCESS) return state().broken;
  const Event& event = event_of(handle);
  return event.done == event.recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float* elapsed, CUevent first, CUevent second) {
  FAKE_ENTER(true);
  if (!event_of(first).timed || !event_of(second).timed) return CUDA_ERROR_INVALID_HANDLE;
  *elapsed = 1.5F;
  return CUDA_SUCCESS;
}
CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  FAKE_ENTER(true);
  if (!event_of(event).shared) return CUDA_ERROR_INVALID_HANDLE;
  std::memcpy(handle, &event, sizeof event);
  return CUDA_SUCCESS;
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  FAKE_ENTER(true);
  std::memcpy(event, &handle, sizeof *event);
  return CUDA_SUCCESS;
}

// An action that is done no earlier than so long after it could begin.
Action after(std::chrono::nanoseconds delay, std::function<void()> action) {
  using Clock = std::chrono::steady_clock;
  return [delay, action = std::move(action), due = std::make_shared<std::optional<Clock::time_point>>()] {
    if (!*due) *due = Clock::now() + delay;
    if (Clock::now() < **due) return false;
    action();
    return true;
  };
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  FAKE_ENTER(true);
  CUcontext const context = stream_of(stream).context;
  const bool within = is_of_device(reinterpret_cast<void*>(dst)) && is_of_device(reinterpret_cast<void*>(src));
  const auto delay =
      std::chrono::nanoseconds(within ? bytes * static_cast<uint64_t>(state().device_copy_us) / 1049 : 0);
  return submit(stream, after(delay, [=] {
                  auto* const to = reinterpret_cast<void*>(dst);
                  const auto* const from = reinterpret_cast<const void*>(src);
                  const bool crosses = is_elsewhere(context, from) || is_elsewhere(context, to);
                  if (crosses && state().peer_copies_broken) {
                    std::memset(to, 0x5a, bytes);
                  } else {
                    std::memmove(to, from, bytes);
                  }
                }));
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream) {
  FAKE_ENTER(true);
  return submit_at_once(stream, [=] { std::memset(reinterpret_cast<void*>(dst), value, bytes); });
}
// A host function runs on a thread of its own, those of graphs on one for all, and the stream waits for it.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  FAKE_ENTER(true);
  const bool of_graph = stream_of(stream).graph != nullptr;
  return submit_made(stream, [=]() -> Action {
    auto done = std::make_shared<std::atomic<bool>>(false);
    auto begun = std::make_shared<bool>(false);
    return [=] {
      if (!std::exchange(*begun, true)) {
        const auto run = [=] { function(argument); };
        if (of_graph) call_back(run, done);
        if (!of_graph) {
          std::thread([=] {
            run();
            done->store(true);
          }).detach();
        }
      }
      return done->load();
    };
  });
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned row_blocks, unsigned, unsigned threads, unsigned,
                        unsigned, unsigned, CUstream stream, void** parameters, void**) {
  FAKE_ENTER(true);
  if (blocks == 0 || row_blocks == 0 || threads == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto* const kernel = reinterpret_cast<const Kernel*>(function);
  const auto* const begin = static_cast<const char*>(parameters[0]);
  state().launched = kernel->image + "." + kernel->name;
  auto copied = std::make_shared<std::vector<char>>(begin, begin + parameter_bytes(*kernel));
  CUcontext const context = stream_of(stream).context;
  if (is_of_board(*kernel)) return submit(stream, board_action(context, *kernel, copied->data(), blocks));
  return submit_at_once(stream, [context, kernel, copied] { run_kernel(context, *kernel, copied->data()); });
}

}  // namespace

const Entry* entry_of_streams(const std::string& name) {
#define FAKE_ENTRY(function, version) \
  { #function, make_entry < PFN_##function##_v##version>(function, version) }
  static const std::map<std::string, Entry> entries = {
      FAKE_ENTRY(cuCtxGetStreamPriorityRange, 5050),
      FAKE_ENTRY(cuStreamCreateWithPriority, 5050),
      FAKE_ENTRY(cuStreamDestroy, 4000),
      FAKE_ENTRY(cuStreamGetCtx, 9020),
      FAKE_ENTRY(cuStreamIsCapturing, 10000),
      FAKE_ENTRY(cuThreadExchangeStreamCaptureMode, 10010),
      FAKE_ENTRY(cuStreamQuery, 2000),
      FAKE_ENTRY(cuStreamSynchronize, 2000),
      FAKE_ENTRY(cuStreamWaitEvent, 3020),
      FAKE_ENTRY(cuStreamWaitValue32, 11070),
      FAKE_ENTRY(cuStreamWriteValue32, 11070),
      FAKE_ENTRY(cuEventCreate, 2000),
      FAKE_ENTRY(cuEventDestroy, 4000),
      FAKE_ENTRY(cuEventRecord, 2000),
      FAKE_ENTRY(cuEventQuery, 2000),
      FAKE_ENTRY(cuEventElapsedTime, 2000),
      FAKE_ENTRY(cuIpcGetEventHandle, 4010),
      FAKE_ENTRY(cuIpcOpenEventHandle, 4010),
      FAKE_ENTRY(cuMemcpyAsync, 4000),
      FAKE_ENTRY(cuMemsetD8Async, 3020),
      FAKE_ENTRY(cuLaunchHostFunc, 10000),
      FAKE_ENTRY(cuLaunchKernel, 4000),
  };
#undef FAKE_ENTRY
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace trestle::fake
