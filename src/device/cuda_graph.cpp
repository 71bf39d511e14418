// Graphs, and what the library adds to those of its callers.
#include "device/cuda_device.h"

namespace trestle {

Result<CudaDevice::Capture> CudaDevice::capture_of(StreamHandle* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Capture capture{};
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  TRY(DRIVER_CALL(cuStreamGetCaptureInfo, raw(stream), &status, &capture.id, &capture.graph, &nodes, &edges, &count));
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) return capture;
  return Error{Code::kInvalidUsage, "the CUDA stream is not being captured any more: its capture has failed"};
}

Result<uint64_t> CudaDevice::capture_id(StreamHandle* captured) {
  return TRY(capture_of(captured)).id;
}

Status CudaDevice::call_when_graph_ends(StreamHandle* captured, void (*function)(void*), void* argument) {
  CUuserObject object = nullptr;
  const Status made =
      DRIVER_CALL(cuUserObjectCreate, &object, argument, function, 1u, unsigned{CU_USER_OBJECT_NO_DESTRUCTOR_SYNC});
  if (!made.ok()) {
    function(argument);
    return made;
  }
  const auto keep = [&]() -> Status {
    const Capture capture = TRY(capture_of(captured));
    return DRIVER_CALL(cuGraphRetainUserObject, capture.graph, object, 1u, unsigned{CU_GRAPH_USER_OBJECT_MOVE});
  };
  const Status kept = keep();
  // The last reference: the driver calls the function.
  if (!kept.ok()) [[maybe_unused]]
    const Status released = DRIVER_CALL(cuUserObjectRelease, object, 1u);
  return kept;
}

Status CudaDevice::begin_capture(StreamHandle* stream) {
  return DRIVER_CALL(cuStreamBeginCapture, raw(stream), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

// What was instantiated needs the graph no more.
Result<GraphHandle*> CudaDevice::end_capture(StreamHandle* stream) {
  CUgraph graph = nullptr;
  TRY(DRIVER_CALL(cuStreamEndCapture, raw(stream), &graph));
  CUgraphExec made = nullptr;
  const Status instantiated = DRIVER_CALL(cuGraphInstantiateWithFlags, &made, graph, 0ull);
  const Status destroyed = DRIVER_CALL(cuGraphDestroy, graph);
  TRY(instantiated);
  if (destroyed.ok()) return reinterpret_cast<GraphHandle*>(made);
  TRY(DRIVER_CALL(cuGraphExecDestroy, made));
  return destroyed.error();
}

Status CudaDevice::launch(GraphHandle* graph, StreamHandle* stream) {
  return DRIVER_CALL(cuGraphLaunch, raw(graph), raw(stream));
}

Status CudaDevice::destroy_graph(GraphHandle* graph) {
  return DRIVER_CALL(cuGraphExecDestroy, raw(graph));
}

}  // namespace trestle
