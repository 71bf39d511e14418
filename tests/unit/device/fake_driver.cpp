// The fake driver's steering, and the one symbol that src/device looks up.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "unit/device/fake_state.h"

namespace trestle::fake {

// Neither this nor the steering is destroyed: the driver's thread may run until the program has ended.
State& state() {
  static State& the_state = *new State;
  return the_state;
}

std::vector<CUcontext>& current() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

bool has_descriptors() {
  return std::getenv("FAKE_DRIVER_WITHOUT_DESCRIPTORS") == nullptr;
}

CUstreamCaptureMode& capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void misused(const std::string& how) {
  if (state().misuse.empty()) state().misuse = how;
}

CUcontext context_of(int device) {
  static int contexts[16];
  return reinterpret_cast<CUcontext>(&contexts[device]);
}

namespace {

bool is_slow(const std::string& name) {
  static const auto& slow = *new std::set<std::string>{"cuMemAlloc",
                                                       "cuMemFree",
                                                       "cuMemHostAlloc",
                                                       "cuMemFreeHost",
                                                       "cuMemHostRegister",
                                                       "cuMemHostUnregister",
                                                       "cuMemCreate",
                                                       "cuMemRelease",
                                                       "cuMemAddressReserve",
                                                       "cuMemAddressFree",
                                                       "cuMemMap",
                                                       "cuMemUnmap",
                                                       "cuMemSetAccess",
                                                       "cuMemExportToShareableHandle",
                                                       "cuMemImportFromShareableHandle",
                                                       "cuIpcGetMemHandle",
                                                       "cuIpcOpenMemHandle",
                                                       "cuIpcCloseMemHandle",
                                                       "cuIpcGetEventHandle",
                                                       "cuIpcOpenEventHandle",
                                                       "cuCtxEnablePeerAccess",
                                                       "cuModuleLoadData",
                                                       "cuModuleUnload",
                                                       "cuModuleGetFunction",
                                                       "cuFuncLoad",
                                                       "cuStreamCreateWithPriority",
                                                       "cuStreamDestroy",
                                                       "cuStreamSynchronize",
                                                       "cuEventCreate",
                                                       "cuEventDestroy",
                                                       "cuLaunchHostFunc",
                                                       "cuDevicePrimaryCtxRetain",
                                                       "cuDevicePrimaryCtxRelease"};
  return slow.count(name) != 0;
}

bool allocates(const std::string& name) {
  return name == "cuMemAlloc" || name == "cuMemHostAlloc" || name == "cuMemCreate";
}

bool anything_waits() {
  return std::ranges::any_of(state().streams, [](const Stream* stream) { return !stream->actions.empty(); });
}

// Calls that end the captures of all threads, unless the calling thread's mode is relaxed.
bool ends_captures(const std::string& name) {
  static const auto& unsafe = *new std::set<std::string>{"cuMemAlloc",    "cuMemFree",    "cuMemHostAlloc",
                                                         "cuMemFreeHost", "cuEventQuery", "cuStreamQuery"};
  return capture_mode() != CU_STREAM_CAPTURE_MODE_RELAXED && unsafe.count(name) != 0 &&
         std::ranges::any_of(state().streams, [](const Stream* stream) { return stream->capturing; });
}

}  // namespace

namespace {

bool submits(const std::string& name) {
  static const auto& submissions =
      *new std::set<std::string>{"cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernel",       "cuLaunchHostFunc",
                                 "cuEventRecord", "cuStreamQuery",   "cuStreamWriteValue32", "cuStreamWaitValue32"};
  return submissions.count(name) != 0;
}

void wait_until(const std::function<bool()>& done, const char* name) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < give_up) {
    if (done()) return;
    std::this_thread::yield();
  }
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  misused(std::string(name) + " waits for work that does not end");
}

}  // namespace

void wait_as_drivers_may(const char* name) {
  State& s = state();
  if (s.slow_calls_hold_up && submits(name)) wait_until([&] { return s.slow_calls_waiting == 0; }, name);
  const auto begins_with = [name](const char* text) { return std::strncmp(name, text, std::strlen(text)) == 0; };
  const bool may_wait = begins_with("cuMem") || begins_with("cuModule") || begins_with("cuFunc") ||
                        begins_with("cuIpc") || begins_with("cuStream");
  if (!s.slow_calls_wait || !is_slow(name) || !may_wait) return;
  ++s.slow_calls_waiting;
  wait_until(
      [&] {
        const std::lock_guard<std::recursive_mutex> lock(s.mutex);
        return !anything_waits();
      },
      name);
  --s.slow_calls_waiting;
}

CUresult enter(const char* name, bool needs_context) {
  State& s = state();
  ++s.calls;
  if (s.slow_is_wrong && is_slow(name)) misused(std::string(name) + ", which is slow");
  if (s.slow_beside_work_is_wrong && is_slow(name) && anything_waits())
    misused(std::string(name) + " beside work, for which it may wait");
  if (ends_captures(name)) misused(std::string(name) + ", which ends the capture of a stream");
  if (needs_context && current().empty()) misused(std::string(name) + " without a context");
  if (s.fail_in >= 0 && s.fail_in-- == 0) return s.fail_with;
  if (allocates(name) && s.refuse_in >= 0 && s.refuse_in-- == 0) {
    s.refused = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

namespace {

bool do_first_of(Stream& stream) {
  if (stream.actions.empty() || !stream.actions.front()()) return false;
  stream.actions.pop_front();
  return true;
}

// Some actions, of whichever streams.
void advance_at_random(State& s) {
  const std::vector<Stream*> streams(s.streams.begin(), s.streams.end());
  for (size_t tries = s.random() % (4 * streams.size() + 1); tries > 0; --tries)
    do_first_of(*streams[s.random() % streams.size()]);
}

void advance_all(State& s) {
  for (bool any = true; any;) {
    any = false;
    for (Stream* const stream : s.streams) {
      while (do_first_of(*stream)) any = true;
    }
  }
}

}  // namespace

void advance() {
  State& s = state();
  if (s.held || s.broken != CUDA_SUCCESS) return;
  s.shuffled ? advance_at_random(s) : advance_all(s);
  std::erase_if(s.streams, [](Stream* stream) {
    const bool ended = stream->destroyed && stream->actions.empty();
    if (ended) delete stream;
    return ended;
  });
}

namespace {

// Streams may be run by another thread meanwhile.
template <class Change>
void change(Change&& change) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  change(state());
}

class Steering : public FakeDriver {
 public:
  void reset() override {
    run_streams(false);
    State& s = state();
    s.devices = 2;
    s.version = CUDA_VERSION;
    s.hidden.clear();
    s.word_waits = true;
    s.word_writes = true;
    s.peer_access = true;
    s.nvlinks = false;
    s.peer_copies_broken = s.peer_kernels_broken = s.peer_writes_broken = false;
    s.peer_writes_lost = s.registered_elsewhere = false;
    s.pools = false;
    s.descriptors = has_descriptors();
    s.shuffled = false;
    s.fail_in = -1;
    s.refuse_in = -1;
    s.refused = false;
    s.calls = 0;
    s.slow_is_wrong = false;
    s.slow_beside_work_is_wrong = false;
    s.slow_calls_wait = s.slow_calls_hold_up = false;
    s.device_copy_us = 0;
    s.submitted = 0;
    s.loads = 0;
    s.most_waiting = 0;
    s.held = false;
    s.broken = CUDA_SUCCESS;
    s.misuse.clear();
    s.launched.clear();
    s.peers.clear();
    current().clear();
    forget_leaks();
    s.objects = {};
  }
  void set_devices(int count) override {
    change([&](State& s) { s.devices = count; });
  }
  void set_version(int version) override {
    change([&](State& s) { s.version = version; });
  }
  void hide(const std::string& function) override {
    change([&](State& s) { s.hidden.insert(function); });
  }
  void set_word_waits(bool supported) override {
    change([&](State& s) { s.word_waits = s.word_writes = supported; });
  }
  void set_word_writes(bool supported) override {
    change([&](State& s) { s.word_writes = supported; });
  }
  void set_peer_access(bool possible) override {
    change([&](State& s) { s.peer_access = possible; });
  }
  void set_descriptors(bool supported) override {
    change([&](State& s) { s.descriptors = supported; });
  }
  void set_nvlinks(bool join_devices) override {
    change([&](State& s) { s.nvlinks = join_devices; });
  }
  void break_peer_access(bool copies, bool kernels) override {
    change([&](State& s) {
      s.peer_copies_broken = copies;
      s.peer_kernels_broken = kernels;
    });
  }
  void break_peer_writes(bool broken) override {
    change([&](State& s) { s.peer_writes_broken = broken; });
  }
  void lose_peer_writes(bool lost) override {
    change([&](State& s) { s.peer_writes_lost = lost; });
  }
  void move_registered(bool elsewhere) override {
    change([&](State& s) { s.registered_elsewhere = elsewhere; });
  }
  void allocate_from_pools(bool pools) override {
    change([&](State& s) { s.pools = pools; });
  }
  void fail(int nth, int result) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    state().fail_in = nth;
    state().fail_with = static_cast<CUresult>(result);
  }
  void refuse_memory(int nth) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    state().refuse_in = nth;
    state().refused = false;
  }
  bool has_refused_memory() const override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    return state().refused;
  }
  int calls() const override { return state().calls; }
  FakeObjects objects() const override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    FakeObjects objects = state().objects;
    objects.pushed = static_cast<int>(current().size());
    return objects;
  }
  std::string misuse() const override { return state().misuse; }
  void go_on() override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    advance();
  }
  void forbid_slow_calls(bool forbidden) override {
    change([&](State& s) { s.slow_is_wrong = forbidden; });
  }
  void forbid_slow_calls_beside_work(bool forbidden) override {
    change([&](State& s) { s.slow_beside_work_is_wrong = forbidden; });
  }
  int submitted() const override { return state().submitted; }
  int loads() const override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    return state().loads;
  }
  int most_waiting() const override { return state().most_waiting; }
  void hold_streams(bool held) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    state().held = held;
  }
  void let_slow_calls_wait(bool wait) override { state().slow_calls_wait = wait; }
  void let_slow_calls_hold_up_others(bool hold_up) override { state().slow_calls_hold_up = hold_up; }
  int slow_calls_waiting() const override { return state().slow_calls_waiting; }
  void slow_device_copies(int us_per_mib) override {
    change([&](State& s) { s.device_copy_us = us_per_mib; });
  }
  void shuffle_streams(uint64_t seed) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    state().shuffled = seed != 0;
    state().random.seed(seed);
  }
  void run_streams(bool runs) override {
    if (runner_.joinable()) {
      stop_ = true;
      runner_.join();
    }
    stop_ = false;
    if (runs) runner_ = std::thread([this] { run(); });
  }
  void set_current(int device) override {
    current().clear();
    if (device >= 0) current().push_back(context_of(device));
  }
  void break_device(int result) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    state().broken = static_cast<CUresult>(result);
  }
  void* capturing_stream() override {
    state().capturing.capturing = true;
    state().capturing.context = context_of(0);
    return &state().capturing;
  }
  void* foreign_stream() override {
    state().foreign.context = context_of(15);
    return &state().foreign;
  }
  void capture(void* stream, bool captures) override {
    const std::lock_guard<std::recursive_mutex> lock(state().mutex);
    auto* const captured = static_cast<Stream*>(stream);
    captured->capturing = captures;
    captured->graph.reset(captures ? new Graph : nullptr);
  }
  void* managed_memory() override {
    static int memory;
    state().blocks[reinterpret_cast<uintptr_t>(&memory)] = {sizeof memory, 1, CU_MEMORYTYPE_DEVICE, true, true, false};
    return &memory;
  }
  std::string launched() const override { return state().launched; }

 private:
  void run() {
    while (!stop_) {
      {
        const std::lock_guard<std::recursive_mutex> lock(state().mutex);
        advance();
      }
      std::this_thread::yield();
    }
  }

  std::thread runner_;
  std::atomic<bool> stop_ = false;

  // What tests left, because they made a call fail that frees it.
  static void forget_leaks() {
    State& s = state();
    for (Stream* const stream : s.streams) {
      stream->actions.clear();
      if (!stream->legacy) delete stream;
    }
    s.streams.clear();
    for (auto* const graph : s.graphs) delete graph;
    s.graphs.clear();
    s.user_objects.clear();
    s.writes.clear();
    for (Event* const event : s.events) delete event;
    s.events.clear();
    for (const auto& [address, block] : s.blocks) {
      void* const memory = reinterpret_cast<void*>(address);
      if (block.fd >= 0 || block.opened || block.described) {
        unmap(memory, block.bytes, block.fd);
      } else if (!block.registered) {
        std::free(memory);
      }
    }
    s.blocks.clear();
    s.reserved.clear();
    forget_handles();
  }
};

// Names that stand for another signature from a version on. NVIDIA's driver hands it out to whoever asks for that
// version; this one has only the older signature, and says so.
const std::map<std::string, int>& newer_signatures() {
  static const std::map<std::string, int> since = {{"cuStreamGetCtx", 12050}};
  return since;
}

CUresult get_proc_address(const char* symbol, void** function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult* found) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const std::string name = symbol;
  const Entry* entry = entry_of_setup(name);
  if (entry == nullptr) entry = entry_of_streams(name);
  if (entry == nullptr) entry = entry_of_graphs(name);
  if (entry == nullptr) entry = entry_of_described(name);
  *function = nullptr;
  *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (entry == nullptr || state().hidden.count(name) != 0) return CUDA_SUCCESS;
  *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  const auto newer = newer_signatures().find(name);
  const bool is_newer = newer != newer_signatures().end() && version >= newer->second;
  if (version < entry->since || is_newer) {
    misused(name + " is asked for with version " + std::to_string(version) + ", which has another signature");
    return CUDA_SUCCESS;
  }
  *function = entry->function;
  *found = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace trestle::fake

extern "C" {

[[gnu::visibility("default")]] trestle::FakeDriver* fake_driver() {
  static trestle::FakeDriver* const steering = new trestle::fake::Steering;
  return steering;
}

// For programs that know nothing of a fake driver.
[[gnu::constructor]] static void run_streams_if_asked() {
  if (std::getenv("FAKE_DRIVER_RUNS_STREAMS") != nullptr) fake_driver()->run_streams(true);
}

[[gnu::visibility("default")]] CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                            cuuint64_t flags, CUdriverProcAddressQueryResult* found) {
  return trestle::fake::get_proc_address(symbol, function, version, flags, found);
}
}
