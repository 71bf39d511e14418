// What the fake driver knows, shared by its parts. Everything is guarded by one lock, which every entry point takes.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unit/device/fake_driver.h"

namespace trestle::fake {

// One thing that was submitted. True: it is done. False: it waits.
using Action = std::function<bool()>;

// What was captured, and what its end calls: that of the graph, and of what was made from it and runs.
struct Graph {
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  cuuint64_t id = 0;
  std::vector<std::function<Action()>> actions;
  std::vector<std::function<void()>> at_end;
};

struct Stream {
  std::deque<Action> actions;
  CUcontext context = nullptr;
  bool capturing = false;
  std::shared_ptr<Graph> graph = nullptr;  // that it is captured into
  bool legacy = false;
  bool destroyed = false;  // but what was submitted still happens
};

struct Event {
  uint64_t recorded = 0;
  uint64_t done = 0;
  bool timed = false;
  bool shared = false;
};

struct Module {
  std::string name;
};

struct Kernel {
  std::string image;
  std::string name;
};

struct Block {
  size_t bytes = 0;
  int device = 0;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  bool managed = false;
  bool registered = false;  // not allocated here
  bool of_pool = false;
  int fd = -1;             // other processes map the memory from it
  bool opened = false;     // memory of another process
  bool described = false;  // by a descriptor: only these may use it
  std::set<CUcontext> users = {};
};

// Memory of devices that other processes open (fake_shared_memory.cpp).
// nullptr: there is none.
void* map_new(size_t bytes, int& fd);
void* map_of(int process, int fd, size_t bytes);
void unmap(void* memory, size_t bytes, int fd);
// Of memory by descriptors, that were not released (fake_described.cpp).
void forget_handles();

// As the environment has it.
bool has_descriptors();

struct State {
  std::recursive_mutex mutex;
  int devices = 2;
  int version = CUDA_VERSION;
  std::set<std::string> hidden;
  bool word_waits = true;
  bool word_writes = true;
  bool peer_access = true;
  bool nvlinks = false;
  bool peer_copies_broken = false;
  bool peer_kernels_broken = false;
  bool peer_writes_broken = false;
  bool peer_writes_lost = false;
  bool registered_elsewhere = false;
  bool pools = false;
  bool descriptors = has_descriptors();
  int fail_in = -1;
  CUresult fail_with = CUDA_SUCCESS;
  int refuse_in = -1;
  bool refused = false;
  int calls = 0;
  bool slow_is_wrong = false;
  bool slow_beside_work_is_wrong = false;
  std::atomic<bool> slow_calls_wait{false};
  std::atomic<bool> slow_calls_hold_up{false};
  std::atomic<int> slow_calls_waiting{0};
  int device_copy_us = 0;  // of a MiB
  int submitted = 0;
  int loads = 0;
  int most_waiting = 0;
  bool held = false;
  bool shuffled = false;
  std::mt19937_64 random;
  CUresult broken = CUDA_SUCCESS;
  std::string misuse;
  std::string launched;
  FakeObjects objects;
  std::map<uintptr_t, Block> blocks;
  std::map<uintptr_t, size_t> reserved;  // addresses for blocks by descriptors
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::multiset<uintptr_t> writes;                             // of words that streams will write
  std::map<CUuserObject, std::function<void()>> user_objects;  // that no graph has yet
  std::set<std::shared_ptr<Graph>*> graphs;                    // behind the handles that were given out
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Kernel>> kernels;
  Stream capturing;
  Stream foreign;
  std::set<std::pair<CUcontext, CUcontext>> peers;
};

State& state();
// The contexts of the calling thread.
std::vector<CUcontext>& current();
// What the calling thread has said of captures, of any thread's.
CUstreamCaptureMode& capture_mode();
void misused(const std::string& how);
// Whether it is memory of another device than that of the context. Without access to it that is wrong use.
bool is_elsewhere(CUcontext context, const void* address);
bool is_of_device(const void* address);

// If slow calls wait: until all streams have done what was submitted to them. Takes the lock for moments only.
void wait_as_drivers_may(const char* name);
// Begins an entry point: counts the call, and says how it fails, if it is to.
CUresult enter(const char* name, bool needs_context);
// Does what can be done in all streams.
void advance();
CUcontext context_of(int device);
// Runs the function on the one thread that a driver may have for all functions of graphs and for their ends. `done` is
// set afterwards.
void call_back(std::function<void()> function, std::shared_ptr<std::atomic<bool>> done);
Stream& stream_of(CUstream handle);

// A function, and the version of CUDA that introduced its signature.
struct Entry {
  void* function = nullptr;
  int since = 0;
};
// Compiles only if the function has the signature of that version.
template <class Signature>
Entry make_entry(Signature function, int since) {
  return {reinterpret_cast<void*>(function), since};
}

// The entry point of this name, or nullptr (fake_entries.cpp, fake_streams.cpp).
const Entry* entry_of_setup(const std::string& name);
const Entry* entry_of_streams(const std::string& name);
const Entry* entry_of_graphs(const std::string& name);
const Entry* entry_of_described(const std::string& name);
// Runs a kernel on the CPU, for the device of the context (fake_kernels.cpp).
void run_kernel(CUcontext context, const Kernel& kernel, const void* parameters);
size_t parameter_bytes(const Kernel& kernel);
// Kernels of the board of devices, which wait for each other (fake_board.cpp).
bool is_of_board(const Kernel& kernel);
Action board_action(CUcontext context, const Kernel& kernel, const void* parameters, uint32_t blocks);

}  // namespace trestle::fake

// The beginning of every entry point, under the lock.
#define FAKE_ENTER(needs_context)                                  \
  wait_as_drivers_may(__func__);                                   \
  const std::lock_guard<std::recursive_mutex> lock(state().mutex); \
  if (const CUresult result = enter(__func__, needs_context); result != CUDA_SUCCESS) return result
