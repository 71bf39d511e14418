// A driver of CUDA that keeps everything in this process: device memory is host memory, streams do what was submitted
// when they are asked, kernels are the loops of the CPU. Only large blocks of device memory (kSharedFrom) can be opened
// in other processes. Tests load it in place of libcuda.so.1 (fake_driver.cpp is a shared library of its own) and steer
// it through this interface, which it hands out by fake_driver().
//
// It finds wrong use: calls without a context, frees of what is not there or of a word that a stream will write, packs
// that are not aligned, memory of another device without access to it, functions asked for with another signature. Any
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace trestle {

// Device memory of fewer bytes can be opened in its own process only, which CUDA does not allow.
inline constexpr size_t kSharedFrom = size_t{1} << 20;

// What exists at present.
struct FakeObjects {
  int contexts = 0;  // references to primary contexts
  int memory = 0;    // allocations of devices
  int pinned = 0;    // and registered
  int streams = 0;
  int events = 0;
  int modules = 0;
  int graphs = 0;
  int opened = 0;   // memory of other processes
  int handles = 0;  // of memory by descriptors
  int pushed = 0;   // contexts that calls have made current
  bool operator==(const FakeObjects&) const = default;
};

class FakeDriver {
 public:
  virtual ~FakeDriver() = default;
  // Everything as at the beginning: two devices, the newest version, nothing fails.
  virtual void reset() = 0;
  virtual void set_devices(int count) = 0;
  virtual void set_version(int version) = 0;
  virtual void hide(const std::string& function) = 0;  // cuGetProcAddress does not find it
  virtual void set_word_waits(bool supported) = 0;     // and writes
  virtual void set_word_writes(bool supported) = 0;
  virtual void set_peer_access(bool possible) = 0;
  virtual void set_nvlinks(bool join_devices) = 0;  // false from the beginning
  // The driver's copies, or kernels that copy, deliver other bytes from other devices.
  virtual void break_peer_access(bool copies, bool kernels) = 0;
  // Kernels that copy, and those of boards, leave other bytes in other devices' memory.
  virtual void break_peer_writes(bool broken) = 0;
  // Lines that kernels of boards write to other devices' memory do not arrive.
  virtual void lose_peer_writes(bool lost) = 0;
  // Devices see memory that was pinned later at another address than the host.
  virtual void move_registered(bool elsewhere) = 0;
  // Memory of devices is of a pool, to which peer access does not extend.
  virtual void allocate_from_pools(bool pools) = 0;
  // Whether devices map memory by descriptors. So it is at the beginning, unless the environment has
  // FAKE_DRIVER_WITHOUT_DESCRIPTORS.
  virtual void set_descriptors(bool supported) = 0;
  // The nth call from now on (0: the next one) answers `result`, and is not done. Asking for an error's text is no
  // call.
  virtual void fail(int nth, int result) = 0;
  // The nth allocation of memory of a device or of pinned memory from now on finds none. -1: each finds some.
  virtual void refuse_memory(int nth) = 0;
  // Whether that allocation has come.
  virtual bool has_refused_memory() const = 0;
  virtual int calls() const = 0;  // since reset()
  virtual FakeObjects objects() const = 0;
  virtual std::string misuse() const = 0;  // the first, or ""
  // Streams do nothing until they may again.
  virtual void hold_streams(bool held) = 0;
  // From now on a stream that is asked does a few things, and so do others: which ones, and how many, is random. 0: all
  // do all that they can, as at the beginning.
  virtual void shuffle_streams(uint64_t seed) = 0;
  // Streams do what they can, as if they had been asked.
  virtual void go_on() = 0;
  // From now on calls that may allocate, register or wait are wrong use.
  virtual void forbid_slow_calls(bool forbidden) = 0;
  // From now on such calls are wrong use while anything waits in a stream: a driver may let them wait for it.
  virtual void forbid_slow_calls_beside_work(bool forbidden) = 0;
  // Calls that have to do with memory or code wait until nothing waits in any stream, as a driver may let them.
  virtual void let_slow_calls_wait(bool wait) = 0;
  // While such a call waits, no other thread can submit anything, as if both needed one lock. And how many wait.
  virtual void let_slow_calls_hold_up_others(bool hold_up) = 0;
  virtual int slow_calls_waiting() const = 0;
  // The driver's copies from device to device take so many microseconds per MiB.
  virtual void slow_device_copies(int us_per_mib) = 0;
  // Kernels, copies, writes of words and the like, since reset(), and the most that waited in a stream.
  virtual int submitted() const = 0;
  virtual int loads() const = 0;  // of modules, since reset()
  virtual int most_waiting() const = 0;
  // A thread of the driver's own does what was submitted, until it may not or reset(). So it is from the start where
  // the environment has FAKE_DRIVER_RUNS_STREAMS.
  virtual void run_streams(bool runs) = 0;
  // The device that is current on the calling thread, as cudaSetDevice makes it; -1: none.
  virtual void set_current(int device) = 0;
  // All streams answer this from now on, and do nothing.
  virtual void break_device(int result) = 0;
  // A stream that is being captured, or of a context that is not a primary one; the caller passes on what it returns.
  virtual void* capturing_stream() = 0;
  virtual void* foreign_stream() = 0;
  virtual void capture(void* stream, bool captures) = 0;  // begins it, or ends it without a graph
  virtual void* managed_memory() = 0;
  virtual std::string launched() const = 0;  // the last kernel, as "reduce_float.sum_2"
};

}  // namespace trestle
