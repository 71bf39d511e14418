// The GPUs of this host as the perf binaries use them, over src/device: memory for buffers, copies, and streams for
// libraries that want CUDA's. A call that fails ends the process with the driver's sentence.
//
// A Gpu is used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "perf/driver/buffer.h"

namespace trestle::perf {

struct GpuInfo {
  int index = 0;
  std::string name;
  std::string pci;  // "0000:3b:00.0"
  size_t bytes = 0;
  int compute_capability = 0;  // 90: 9.0
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const GpuInfo& info() const = 0;
  // The results of these two must not outlive this.
  virtual Source memory() = 0;
  virtual std::unique_ptr<Access> make_access() = 0;
  // A CUstream, which is also the runtime's cudaStream_t.
  virtual void* make_stream() = 0;
  virtual void destroy_stream(void* stream) = 0;
  // Whether everything submitted is done. null: the legacy default stream.
  virtual bool is_idle(void* stream) = 0;
  // What is submitted to a stream between these two becomes a graph. Until it ends, no thread of the process may
  // allocate.
  virtual void begin_capture(void* stream) = 0;
  virtual void* end_capture(void* stream) = 0;
  virtual void launch(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) = 0;
  // Between enter() and leave(), this is the calling thread's device, also for the runtime API.
  virtual void enter() = 0;
  virtual void leave() = 0;
};

// While one exists, the GPU is this thread's device. null: nothing happens.
class OnGpu {
 public:
  explicit OnGpu(Gpu* gpu) : gpu_(gpu) {
    if (gpu_ != nullptr) gpu_->enter();
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    if (gpu_ != nullptr) gpu_->leave();
  }

 private:
  Gpu* const gpu_;
};

class Gpus {
 public:
  virtual ~Gpus() = default;
  virtual int count() const = 0;
  // index below count(). Must not outlive this.
  virtual std::unique_ptr<Gpu> open(int index) = 0;
};

struct FoundGpus {
  std::unique_ptr<Gpus> gpus;
  std::string problem;  // a sentence if there are none
};
// driver_library: in place of libcuda.so.1; "": that one.
FoundGpus find_gpus(const std::string& driver_library = "");

}  // namespace trestle::perf
