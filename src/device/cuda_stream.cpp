// Streams, events, and the work that is submitted to them.
#include <cstring>

#include "device/cuda_device.h"

namespace trestle {

Result<StreamHandle*> CudaDevice::make_stream(bool urgent) {
  int least = 0;
  int greatest = 0;
  TRY(DRIVER_CALL(cuCtxGetStreamPriorityRange, &least, &greatest));
  CUstream stream = nullptr;
  TRY(DRIVER_CALL(cuStreamCreateWithPriority, &stream, static_cast<unsigned>(CU_STREAM_NON_BLOCKING),
                  urgent ? greatest : least));
  return reinterpret_cast<StreamHandle*>(stream);
}

Status CudaDevice::destroy_stream(StreamHandle* stream) {
  return DRIVER_CALL(cuStreamDestroy, raw(stream));
}

Status CudaDevice::check_stream(StreamHandle* stream) {
  CUcontext context = nullptr;
  TRY(DRIVER_CALL(cuStreamGetCtx, raw(stream), &context));
  if (context == context_) return {};
  return Error{Code::kInvalidArgument, "the stream does not belong to the primary context of device " +
                                           std::to_string(info_.index) + " (" + info_.name + ")"};
}

Result<bool> CudaDevice::is_capturing(StreamHandle* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  TRY(DRIVER_CALL(cuStreamIsCapturing, raw(stream), &status));
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Result<bool> CudaDevice::is_idle(StreamHandle* stream) {
  return ask("cuStreamQuery", driver_.cuStreamQuery, raw(stream));
}

Status CudaDevice::synchronize(StreamHandle* stream) {
  return DRIVER_CALL(cuStreamSynchronize, raw(stream));
}

Result<EventHandle*> CudaDevice::make_event(bool timed, bool shared) {
  unsigned flags = CU_EVENT_DEFAULT;
  // Only events without times may be shared.
  if (!timed || shared) flags |= CU_EVENT_DISABLE_TIMING;
  if (shared) flags |= CU_EVENT_INTERPROCESS;
  CUevent event = nullptr;
  TRY(DRIVER_CALL(cuEventCreate, &event, flags));
  return reinterpret_cast<EventHandle*>(event);
}

Status CudaDevice::destroy_event(EventHandle* event) {
  return DRIVER_CALL(cuEventDestroy, raw(event));
}

Status CudaDevice::record(EventHandle* event, StreamHandle* stream) {
  return DRIVER_CALL(cuEventRecord, raw(event), raw(stream));
}

Status CudaDevice::wait_for_event(StreamHandle* stream, EventHandle* event) {
  return DRIVER_CALL(cuStreamWaitEvent, raw(stream), raw(event), static_cast<unsigned>(CU_EVENT_WAIT_DEFAULT));
}

Result<bool> CudaDevice::is_done(EventHandle* event) {
  return ask("cuEventQuery", driver_.cuEventQuery, raw(event));
}

Result<float> CudaDevice::elapsed_ms(EventHandle* first, EventHandle* second) {
  float elapsed = 0;
  TRY(DRIVER_CALL(cuEventElapsedTime, &elapsed, raw(first), raw(second)));
  return elapsed;
}

Result<EventTicket> CudaDevice::share_event(EventHandle* event) {
  static_assert(sizeof(CUipcEventHandle) == sizeof(EventTicket::handle));
  CUipcEventHandle handle{};
  TRY(DRIVER_CALL(cuIpcGetEventHandle, &handle, raw(event)));
  EventTicket ticket;
  std::memcpy(ticket.handle.data(), &handle, sizeof handle);
  return ticket;
}

Result<EventHandle*> CudaDevice::open_event(const EventTicket& ticket) {
  CUipcEventHandle handle;
  std::memcpy(&handle, ticket.handle.data(), sizeof handle);
  CUevent event = nullptr;
  TRY(DRIVER_CALL(cuIpcOpenEventHandle, &event, handle));
  return reinterpret_cast<EventHandle*>(event);
}

Status CudaDevice::wait_for_word(StreamHandle* stream, const uint32_t* word, uint32_t value) {
  return DRIVER_CALL(cuStreamWaitValue32, raw(stream), raw(word), value,
                     static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ));
}

Status CudaDevice::write_word(StreamHandle* stream, uint32_t* word, uint32_t value) {
  return DRIVER_CALL(cuStreamWriteValue32, raw(stream), raw(word), value,
                     static_cast<unsigned>(CU_STREAM_WRITE_VALUE_DEFAULT));
}

Status CudaDevice::call_host(StreamHandle* stream, void (*function)(void*), void* argument) {
  return DRIVER_CALL(cuLaunchHostFunc, raw(stream), function, argument);
}

Status CudaDevice::copy(std::byte* dst, const std::byte* src, uint64_t bytes, StreamHandle* stream) {
  return DRIVER_CALL(cuMemcpyAsync, raw(dst), raw(src), bytes, raw(stream));
}

Status CudaDevice::fill(std::byte* dst, std::byte value, uint64_t bytes, StreamHandle* stream) {
  return DRIVER_CALL(cuMemsetD8Async, raw(dst), static_cast<unsigned char>(value), bytes, raw(stream));
}

Status CudaDevice::launch(KernelHandle* kernel, LaunchShape shape, std::span<void* const> arguments,
                          StreamHandle* stream) {
  return DRIVER_CALL(cuLaunchKernel, reinterpret_cast<CUfunction>(kernel), shape.blocks, shape.row_blocks, 1u,
                     shape.threads, 1u, 1u, 0u, raw(stream), const_cast<void**>(arguments.data()),
                     static_cast<void**>(nullptr));
}

Result<ModuleHandle*> CudaDevice::load(const std::byte* image) {
  CUmodule code = nullptr;
  TRY(DRIVER_CALL(cuModuleLoadData, &code, static_cast<const void*>(image)));
  return reinterpret_cast<ModuleHandle*>(code);
}

Status CudaDevice::unload(ModuleHandle* code) {
  return DRIVER_CALL(cuModuleUnload, reinterpret_cast<CUmodule>(code));
}

Result<KernelHandle*> CudaDevice::find_kernel(ModuleHandle* code, const char* name) {
  CUfunction kernel = nullptr;
  const CUresult found = call(driver_.cuModuleGetFunction, &kernel, reinterpret_cast<CUmodule>(code), name);
  if (found == CUDA_ERROR_NOT_FOUND) return Error{Code::kInternalError, std::string("there is no kernel ") + name};
  TRY(driver_.check(found, "cuModuleGetFunction"));
  // The driver loads functions at their first launch, which may wait for all work of the device. Here nobody waits.
  TRY(DRIVER_CALL(cuFuncLoad, kernel));
  return reinterpret_cast<KernelHandle*>(kernel);
}

Result<uint32_t> CudaDevice::resident_blocks(KernelHandle* kernel, uint32_t threads) {
  int per_multiprocessor = 0;
  TRY(DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_multiprocessor,
                  reinterpret_cast<CUfunction>(kernel), static_cast<int>(threads), size_t{0}));
  return static_cast<uint32_t>(per_multiprocessor) * static_cast<uint32_t>(info_.multiprocessors);
}

}  // namespace trestle
