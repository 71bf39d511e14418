// Entry points of the fake driver: graphs. A launch that is under way keeps its graph.
#include <condition_variable>

#include "unit/device/fake_state.h"

#undef cuStreamGetCaptureInfo
#undef cuStreamBeginCapture

namespace trestle::fake {

Graph::Graph() {
  static cuuint64_t made = 0;
  id = ++made;
  ++state().objects.graphs;
}

Graph::~Graph() {
  --state().objects.graphs;
  for (const auto& function : at_end) call_back(function, std::make_shared<std::atomic<bool>>());
}

namespace {

struct CallBack {
  std::function<void()> function;
  std::shared_ptr<std::atomic<bool>> done;
};

class CallBacks {
 public:
  void add(CallBack one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(one));
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    changed_.notify_one();
  }

 private:
  [[noreturn]] void run() {
    while (true) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      const CallBack next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      next.function();
      next.done->store(true);
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CallBack> waiting_;
  bool started_ = false;
};

}  // namespace

// Never ended: what it calls may come at any time.
void call_back(std::function<void()> function, std::shared_ptr<std::atomic<bool>> done) {
  static auto* const all = new CallBacks;
  all->add({std::move(function), std::move(done)});
}

namespace {

using SharedGraph = std::shared_ptr<Graph>;

template <class Handle>
Handle handle_of(SharedGraph graph) {
  return reinterpret_cast<Handle>(*state().graphs.insert(new SharedGraph(std::move(graph))).first);
}

template <class Handle>
void give_back(Handle handle) {
  auto* const graph = reinterpret_cast<SharedGraph*>(handle);
  if (state().graphs.erase(graph) == 0) return misused("a graph is destroyed that is not there");
  delete graph;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  FAKE_ENTER(true);
  Stream& captured = stream_of(stream);
  if (captured.capturing) return CUDA_ERROR_ILLEGAL_STATE;
  captured.capturing = true;
  captured.graph = std::make_shared<Graph>();
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FAKE_ENTER(true);
  Stream& captured = stream_of(stream);
  if (!captured.capturing) return CUDA_ERROR_ILLEGAL_STATE;
  captured.capturing = false;
  *graph = handle_of<CUgraph>(std::move(captured.graph));
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
  FAKE_ENTER(true);
  Stream& captured = stream_of(stream);
  *status = captured.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  *id = captured.graph == nullptr ? 1 : captured.graph->id;
  *graph = reinterpret_cast<CUgraph>(&captured.graph);
  return CUDA_SUCCESS;
}
CUresult cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned references, unsigned) {
  FAKE_ENTER(false);
  if (references != 1) misused("a user object with more than one reference");
  static uintptr_t next = 0;
  *object = reinterpret_cast<CUuserObject>(++next);
  state().user_objects[*object] = [=] { destroy(pointer); };
  return CUDA_SUCCESS;
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned) {
  FAKE_ENTER(false);
  state().user_objects.extract(object).mapped()();
  return CUDA_SUCCESS;
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned, unsigned flags) {
  FAKE_ENTER(false);
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) misused("a user object that the caller keeps");
  (*reinterpret_cast<SharedGraph*>(graph))->at_end.push_back(std::move(state().user_objects.extract(object).mapped()));
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  FAKE_ENTER(true);
  *made = handle_of<CUgraphExec>(*reinterpret_cast<SharedGraph*>(graph));
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  FAKE_ENTER(true);
  if (state().broken != CUDA_SUCCESS) return state().broken;
  const SharedGraph launched = *reinterpret_cast<SharedGraph*>(graph);
  auto& actions = stream_of(stream).actions;
  for (const auto& make : launched->actions) actions.push_back(make());
  actions.push_back([launched] { return true; });
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  FAKE_ENTER(true);
  give_back(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  FAKE_ENTER(true);
  give_back(graph);
  return CUDA_SUCCESS;
}

}  // namespace

const Entry* entry_of_graphs(const std::string& name) {
#define FAKE_ENTRY(function, version) \
  { #function, make_entry < PFN_##function##_v##version>(function, version) }
  static const std::map<std::string, Entry> entries = {
      FAKE_ENTRY(cuStreamBeginCapture, 10010),        FAKE_ENTRY(cuStreamEndCapture, 10000),
      FAKE_ENTRY(cuStreamGetCaptureInfo, 12030),      FAKE_ENTRY(cuUserObjectCreate, 11030),
      FAKE_ENTRY(cuUserObjectRelease, 11030),         FAKE_ENTRY(cuGraphRetainUserObject, 11030),
      FAKE_ENTRY(cuGraphInstantiateWithFlags, 11040), FAKE_ENTRY(cuGraphLaunch, 10000),
      FAKE_ENTRY(cuGraphExecDestroy, 10000),          FAKE_ENTRY(cuGraphDestroy, 10000),
  };
#undef FAKE_ENTRY
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace trestle::fake
