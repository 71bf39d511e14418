// DeviceBoard: small collectives of the ranks of a host on memory of devices, by one kernel per rank
// (kernels/cuda/board.h). Neither the host nor a queue of work stands between a call and its result.
//
// A call is launched in one of two ways. On the caller's stream, when it is made: the kernel takes its place among the
// caller's work, and nothing holds the stream. Or later, on the board's own stream, when its turn on its Trestle stream
// has come. Either way the calls of a rank are launched in the order of their numbers, which is the same on all ranks,
// and their kernels run one after the other: kernels that overtook each other would take each other's lines. A stream
// that differs from that of the call before waits for the end of that call.
//
// A kernel waits for those of the other ranks, as NCCL's do. While it waits it occupies a few multiprocessors. The
// board is small enough that the kernels of all ranks of a device run at the same time. Ranks of different processes
// have different devices, unless the user says otherwise (comm/setup/board_setup.h).
//
// Owned by the engine (DevicePlace). next_sequence() under the communicator's call order; is_next() and launch_on() by
// the thread whose call it is, before any later call is made; everything else under the progress lock. Nothing
// allocates but create().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/kernels.h"
#include "engine/work/board_memory.h"
#include "engine/work/driver_calls.h"
#include "engine/work/look_timer.h"
#include "engine/work/outer_stream.h"
#include "engine/work/polled.h"
#include "express/express.h"

namespace trestle {

struct DeviceBoardConfig {
  int32_t rank = 0;
  std::vector<std::shared_ptr<BoardMemory>> memory;  // of all ranks, for blocks of most_bytes
  uint64_t most_bytes = 0;
  uint32_t most_blocks = 1;  // of a launch, on all ranks alike
  // Keeps something to the end of the process, for kernels that a stream comes to later, or until it is let go.
  std::function<void(std::shared_ptr<const void>)> keep;
  std::function<void(const std::shared_ptr<const void>&)> let_go;
  uint64_t first_sequence = 1;  // for tests; the same on all ranks
  std::shared_ptr<DriverCalls> calls = std::make_shared<DriverCalls>();
};

class DeviceBoard : public Polled {
 public:
  // The device outlives it, and knows words in streams. Slow. Errors: the driver's; no descriptors are left.
  static Result<std::unique_ptr<DeviceBoard>> create(Device& device, std::shared_ptr<DeviceKernels> kernels,
                                                     DeviceBoardConfig config);
  DeviceBoard(const DeviceBoard&) = delete;
  DeviceBoard& operator=(const DeviceBoard&) = delete;
  ~DeviceBoard() override;

  // Whether a collective goes over the board. Depends only on its arguments, so all ranks agree.
  bool serves(Collective collective, uint64_t count_bytes, bool half) const;
  uint64_t next_sequence() { return next_sequence_++; }
  // Whether every earlier call was launched. Then it stays so until this call is.
  bool is_next(const ExpressCall& call) const { return launched_.load(std::memory_order_acquire) + 1 == call.sequence; }
  // Launches a call that is next on a stream of the caller's. Enqueues. An error fails the communicator: later calls
  // would never be launched.
  Status launch_on(const OuterPlace& place, ExpressCall& call);

  // Launches the call if that is still to be done and it is next, and looks whether it is complete. Errors: the
  // driver's.
  Result<bool> poll(ExpressCall& call);
  // The rank whose kernel has not begun; -1: none, or this call was not launched.
  int32_t awaited_rank(const ExpressCall& call) const;
  // The operation that the dissenter of a call runs.
  Express::Other run_by_dissenter(const ExpressCall& call) const;

  bool poll() override;
  int event_fd() const override { return timer_.fd(); }
  bool prepare_sleep() override;
  void finish_sleep() override { timer_.finish(); }
  // Kernels end soon and write no results, from now on. Calls no driver; any thread.
  void abort_kernels();
  // Lets every kernel go, and waits for one that runs. Kernels that a stream comes to later touch no buffer and send
  // nothing.
  bool close(int64_t give_up_ns) override;

 private:
  struct Kept;
  DeviceBoard(Device& device, std::shared_ptr<DeviceKernels> kernels, DeviceBoardConfig config);
  kernels::CudaBoardCall describe(const ExpressCall& call) const;
  void describe_sums(const ExpressCall& call, kernels::CudaBoardCall& work) const;
  void describe_copies(const ExpressCall& call, kernels::CudaBoardCall& work) const;
  Status launch(const OuterPlace& place, ExpressCall& call);
  bool has_ended(uint64_t sequence) const;
  // Whether it was done in time. Errors: the driver's.
  Result<bool> stop_later_kernels();
  void leave();
  bool is_broken();
  void find_dissenter(ExpressCall& call) const;
  Status ask_device();
  bool has_room() const;
  int32_t ranks() const { return static_cast<int32_t>(config_.memory.size()); }
  kernels::BoardControl& control() const { return config_.memory[static_cast<size_t>(config_.rank)]->control(); }

  Device& device_;
  std::shared_ptr<DeviceKernels> kernels_;
  DeviceBoardConfig config_;
  std::shared_ptr<const void> kept_;
  StreamHandle* stream_ = nullptr;
  StreamHandle* stop_stream_ = nullptr;  // where nothing else is in the way
  uint32_t streams_ = 0;                 // that were made
  LookTimer timer_;
  uint64_t next_sequence_ = 1;
  std::atomic<uint64_t> launched_{0};  // the last call that was
  // Of the call that was launched last. Used by the thread whose call is next.
  uint64_t last_place_ = 0;
  std::atomic<bool> only_own_stream_{true};  // no call was launched on a stream of the caller's
  uint32_t ended_seen_ = 0;
  uint32_t vain_looks_ = 0;
  bool waits_ = false;  // a call was not complete in this round
  uint64_t seen_ = 0;   // the last call that was launched and then polled
  bool closed_ = false;
  uint64_t ended_at_close_ = 0;  // the last call, if all kernels had ended then
};

}  // namespace trestle
