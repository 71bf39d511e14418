// DeviceStream: a CUDA stream as the outer stream of a Trestle stream, by a gate and a mark (device/gate.h).
//
// Owned by that stream; threads as in engine/work/outer_stream.h. The CUDA stream is the caller's and outlives it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/mutex.h"
#include "comm/device/stream_links.h"
#include "engine/work/outer_stream.h"

namespace trestle {

class OpenedDevice;

class DeviceStream : public OuterStream {
 public:
  // Calls that hold the stream at the same time. A stream of a driver has room for about a thousand commands, and a
  // thread that submits one more waits in the driver, which may then let no other thread submit what the calls wait
  // for.
  static constexpr uint32_t kMostHeld = 200;

  // The device outlives it.
  static Result<std::unique_ptr<OuterStream>> create(OpenedDevice& device, StreamHandle* stream);
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() override;

  int device() const override;
  Result<Ticket> put(bool mark, bool gate) override;
  Status may_put() override { return check_usable(true); }
  Result<Ticket> put_kernel(const std::function<Status(const OuterPlace&)>& submit) override;
  bool has_kernels() const override { return has_words(); }
  bool has_words() const override;
  Result<std::shared_ptr<CaptureLane>> captured_lane() override;
  Result<std::unique_ptr<OuterStream>> capture(std::shared_ptr<CaptureLane> lane,
                                               std::shared_ptr<GraphCalls> calls) override;
  Status check() override;
  Result<bool> has_reached(uint32_t mark) override;
  void open(uint32_t gate) override { link_->gate->open(gate); }

 private:
  DeviceStream(OpenedDevice& device, StreamHandle* stream, std::unique_ptr<StreamLink> link);
  Status check_thread() const;
  Status check_usable(bool mark);
  void wait_for_room() const;

  OpenedDevice& device_;
  StreamHandle* const stream_;
  const uint64_t id_;
  const pid_t thread_;  // the only one that the stream is there for; 0: any
  std::unique_ptr<StreamLink> link_;
  Mutex lane_mutex_;
  uint64_t lane_id_ TRESTLE_GUARDED_BY(lane_mutex_) = 0;  // of the last capture
  std::weak_ptr<CaptureLane> lane_ TRESTLE_GUARDED_BY(lane_mutex_);
};

}  // namespace trestle
