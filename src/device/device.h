// Devices: what the library asks of GPUs. Everything of CUDA is behind this header; no other folder includes cuda.h.
//
// open_devices() loads the driver at run time, so a build with CUDA also runs where there is no GPU. The object that it
// returns makes Device objects. A Device holds its GPU's primary context, the one that the runtime API and every
// framework use; the library never makes another one. Any thread may call any function: each makes the context current
// for itself and leaves the thread as it was.
//
// Three classes of functions. Those marked "slow" may allocate, register, synchronise or take the driver's locks for
// long; they are for setup and never for the path of progress. They may wait for all work of the context, of any stream
// and of other users, and so may Devices::open() and the destructors: a thread that is in one of them while a gate
// (device/gate.h) is held waits until another thread opens it. So none of them may be called while a gate is held that
// only the caller, or a thread that waits for the caller, opens. Those marked "enqueues" return at once and their work
// happens later, in the order of the stream. The others ask the driver and return.
//
// Errors: kSystemError if there is no memory, else kUnhandledDeviceError. The sentence names the driver's function and
// its answer. A device that failed in a kernel answers every later call with that error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

// The driver's own handles (CUstream, CUevent, CUmodule, CUfunction, CUgraphExec), which are pointers.
struct StreamHandle;  // nullptr: the legacy default stream; see also per_thread_stream()
struct EventHandle;
struct ModuleHandle;
struct KernelHandle;
struct GraphHandle;  // CUgraphExec

// The handle that stands for the default stream of whichever thread uses it (cudaStreamPerThread).
inline StreamHandle* per_thread_stream() {
  return reinterpret_cast<StreamHandle*>(uintptr_t{2});
}

struct DeviceInfo {
  int index = 0;
  std::string name;
  std::string pci;  // "0000:3b:00.0"
  uint64_t bytes = 0;
  uint64_t memory_mbps = 0;    // what it reads or writes of its memory, 10^6 bit/s; 0: the driver does not tell
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
};

enum class PointerKind : uint8_t {
  kHost,        // the driver does not know it
  kPinnedHost,  // page-locked and mapped into the devices
  kDevice,
  kManaged,  // moves between host and device by itself
};

struct PointerInfo {
  PointerKind kind = PointerKind::kHost;
  int device = -1;            // of kDevice, and where kPinnedHost and kManaged memory was made
  std::byte* base = nullptr;  // of the allocation, for kDevice
  uint64_t bytes = 0;         // of the allocation
  // Devices that have peer access to that one can read it too. True for memory of the device as Device::allocate()
  // makes it, false for memory of pools or of virtual addresses. False for host memory, of which it is not known: the
  // code that locked it may have mapped it into one device only.
  bool open_to_devices = false;
};

// What a rank tells another process of the same host, so that it maps device memory: plain bytes.
struct MemoryTicket {
  std::array<std::byte, 64> handle{};
  uint64_t offset = 0;  // from the allocation's base
};
struct EventTicket {
  std::array<std::byte, 64> handle{};
};

// Memory of a device that other processes map by a descriptor, which is passed to them over a socket.
struct DescribedMemory {
  std::byte* memory = nullptr;
  UniqueFd descriptor;
};

inline constexpr uint64_t kDescribedBlockBytes = uint64_t{2} << 20;

struct LaunchShape {
  uint32_t blocks = 1;
  uint32_t row_blocks = 1;  // the grid's second dimension
  uint32_t threads = 1;     // of a block
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // ---- For callers of libraries that work on the calling thread's own device, such as NCCL. Between the two the
  // context is the thread's current one, which the runtime API follows. They nest; each thread leaves what it entered.
  virtual Status enter() = 0;
  virtual Status leave() = 0;

  // ---- Memory. All slow.
  virtual Result<std::byte*> allocate(uint64_t bytes) = 0;  // bytes > 0
  virtual Status free(std::byte* memory) = 0;
  // Host memory that is pinned and has the same address on host and device.
  virtual Result<std::byte*> allocate_pinned(uint64_t bytes) = 0;
  virtual Status free_pinned(std::byte* memory) = 0;
  // Pins ordinary host memory; it then has one address on host and device.
  virtual Status pin(std::byte* memory, uint64_t bytes) = 0;
  virtual Status unpin(std::byte* memory) = 0;

  // ---- Memory of others. All slow.
  // For a part of memory from allocate(). Memory of other allocators may refuse (kUnhandledDeviceError).
  virtual Result<MemoryTicket> share(const std::byte* memory) = 0;
  // Maps the whole allocation of another process; the result points to what was shared. Not for one's own process. The
  // same allocation may be opened several times.
  virtual Result<std::byte*> open(const MemoryTicket& ticket) = 0;
  virtual Status close(std::byte* opened) = 0;  // as open() returned it
  // Sharing and opening by descriptors. Such memory exists as long as any process has it mapped, so whoever reads it is
  // not harmed when its owner frees it or dies; CUDA leaves that open for tickets. False from maps_descriptors(): the
  // others return an error.
  virtual bool maps_descriptors() const = 0;
  // bytes: whole blocks of kDescribedBlockBytes. All devices of this process that reach this one may use it.
  virtual Result<DescribedMemory> allocate_described(uint64_t bytes) = 0;
  // descriptor: stays the caller's, and is not needed afterwards. bytes: at most as many as were allocated.
  virtual Result<std::byte*> map_described(int descriptor, uint64_t bytes) = 0;
  virtual Status unmap_described(std::byte* memory, uint64_t bytes) = 0;  // of either of the two
  // can_reach(): whether kernels and copies of this device can use the other one's memory. reach(): lets them.
  virtual Result<bool> can_reach(const Device& other) = 0;
  virtual Status reach(const Device& other) = 0;  // also if it reaches already
  // Whether NVLinks join it to the device at that PCI address. False for itself, and for one that this process does not
  // see.
  virtual Result<bool> joined_by_nvlink(const std::string& pci) = 0;

  // ---- Streams
  // A stream that does not wait for the legacy default stream. `urgent`: of the highest priority. Slow.
  virtual Result<StreamHandle*> make_stream(bool urgent) = 0;
  // What was submitted still happens. Slow.
  virtual Status destroy_stream(StreamHandle* stream) = 0;
  // Refuses a stream of another device or of a context that is not the primary one (kInvalidArgument).
  virtual Status check_stream(StreamHandle* stream) = 0;
  virtual Result<bool> is_capturing(StreamHandle* stream) = 0;
  // Of a stream that is being captured: tells this capture from all others.
  virtual Result<uint64_t> capture_id(StreamHandle* captured) = 0;
  // Calls function(argument) once when the graph is gone that the stream is being captured into, with everything that
  // was made from it, and no launch of it runs any more: on a thread of the driver, which must not call the driver.
  // Also called after an error, at once.
  virtual Status call_when_graph_ends(StreamHandle* captured, void (*function)(void*), void* argument) = 0;
  virtual Result<bool> is_idle(StreamHandle* stream) = 0;
  virtual Status synchronize(StreamHandle* stream) = 0;  // slow

  // ---- Graphs, for measurements and tests: the library itself makes none. All slow, except launch(), which enqueues.
  // What is submitted to the stream from now on goes into a graph, and while that is so, a thread that makes calls
  // which may wait ends it with an error, unless it is the library's.
  virtual Status begin_capture(StreamHandle* stream) = 0;
  virtual Result<GraphHandle*> end_capture(StreamHandle* stream) = 0;
  virtual Status launch(GraphHandle* graph, StreamHandle* stream) = 0;
  virtual Status destroy_graph(GraphHandle* graph) = 0;  // launches that were enqueued still happen

  // ---- Events. `shared`: another process may open it. Making and destroying is slow.
  virtual Result<EventHandle*> make_event(bool timed, bool shared) = 0;
  virtual Status destroy_event(EventHandle* event) = 0;
  virtual Status record(EventHandle* event, StreamHandle* stream) = 0;            // enqueues
  virtual Status wait_for_event(StreamHandle* stream, EventHandle* event) = 0;    // enqueues
  virtual Result<bool> is_done(EventHandle* event) = 0;                           // true if never recorded
  virtual Result<float> elapsed_ms(EventHandle* first, EventHandle* second) = 0;  // of timed ones that are done
  virtual Result<EventTicket> share_event(EventHandle* event) = 0;                // slow
  virtual Result<EventHandle*> open_event(const EventTicket& ticket) = 0;         // slow

  // ---- Words in pinned memory or memory of the device, 4-byte aligned. Both enqueue.
  // False from supports_word_waits(): both return an error. (device/gate.h has the other way.)
  virtual bool supports_word_waits() const = 0;
  // The stream waits until int32(*word - value) >= 0.
  virtual Status wait_for_word(StreamHandle* stream, const uint32_t* word, uint32_t value) = 0;
  virtual Status write_word(StreamHandle* stream, uint32_t* word, uint32_t value) = 0;
  // The stream calls function(argument) on a thread of the driver. It must not call the driver. Enqueues.
  virtual Status call_host(StreamHandle* stream, void (*function)(void*), void* argument) = 0;

  // ---- Work. All enqueue.
  // Between any memory that the device reaches. Copies to or from memory that is neither pinned nor a device's may wait
  // for the stream: never on the path of progress.
  virtual Status copy(std::byte* dst, const std::byte* src, uint64_t bytes, StreamHandle* stream) = 0;
  virtual Status fill(std::byte* dst, std::byte value, uint64_t bytes, StreamHandle* stream) = 0;
  // arguments: the address of each of the kernel's parameters, which are read before this returns.
  virtual Status launch(KernelHandle* kernel, LaunchShape shape, std::span<void* const> arguments,
                        StreamHandle* stream) = 0;

  // ---- Code. All slow. Loading is eager for functions that are asked for.
  // image: a fatbin or cubin in memory, which must stay until unload().
  virtual Result<ModuleHandle*> load(const std::byte* image) = 0;
  virtual Status unload(ModuleHandle* code) = 0;
  virtual Result<KernelHandle*> find_kernel(ModuleHandle* code, const char* name) = 0;
  // Blocks of so many threads that run on the device at the same time.
  virtual Result<uint32_t> resident_blocks(KernelHandle* kernel, uint32_t threads) = 0;
};

class Devices {
 public:
  virtual ~Devices() = default;
  virtual int count() const = 0;
  // Retains the device's primary context. Slow. kInvalidArgument: there is no such device.
  virtual Result<std::unique_ptr<Device>> open(int index) = 0;
  // What an address is; takes any address.
  virtual Result<PointerInfo> look_at(const void* pointer) = 0;
  // The device that a stream belongs to. A default stream is that of the calling thread's current device. Slow.
  // kInvalidArgument: its context is not a primary one; kInvalidUsage: a default stream, and the thread has no current
  // device.
  virtual Result<int> device_of(StreamHandle* stream) = 0;
  virtual int driver_version() const = 0;  // 13000: CUDA 13.0
};

inline constexpr const char* kDriverLibrary = "libcuda.so.1";

// Loads the driver. kInvalidUsage, with a sentence that says why: this build has no CUDA, there is no driver, it is too
// old, or it finds no device. Slow. The driver is never unloaded. A Device must not outlive its Devices.
Result<std::unique_ptr<Devices>> open_devices(const char* driver_library = kDriverLibrary);

}  // namespace trestle
