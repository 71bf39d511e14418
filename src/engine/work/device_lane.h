// DeviceLane: one stream of a DeviceQueue, what is under way in it, and how far it has come.
//
// Owned by a DeviceQueue. create() and the destructor are slow (device/device.h); everything else enqueues or asks. The
// driver makes a thread wait that submits more than a stream's queue holds, about a thousand commands. So a lane counts
// what is in its stream: has_room() must be true before a part is submitted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/device.h"
#include "device/gate.h"

namespace trestle {

// What goes where: each lane keeps another piece of hardware busy, so they work beside each other. GPUs have copy
// engines for both directions of PCIe.
enum class LaneUse : uint8_t {
  kOnDevice,  // reads and writes memory of devices only
  kToHost,    // writes host memory
  kFromHost,  // reads host memory
};
inline constexpr size_t kLaneUses = 3;

class DeviceLane {
 public:
  // The device must outlive the lane. word: as for a mark (device/gate.h).
  static Result<std::unique_ptr<DeviceLane>> create(Device& device, GateWay way, uint32_t* word);
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;
  ~DeviceLane();

  StreamHandle* stream() const { return stream_; }
  // No more is submitted while so many copies and launches are under way.
  static constexpr uint32_t kMostLaunches = 256;
  static constexpr uint32_t kMostParts = 128;
  bool has_room() const { return part_count_ < kMostParts && mark_->has_room() && launches_under_way_ < kMostLaunches; }
  bool is_busy() const { return part_count_ > 0; }
  // `launches` > 0 copies and launches were submitted. The result is the ticket that is reached when they are done.
  // for_others: other lanes will probably follow it.
  Result<uint32_t> end_part(uint32_t launches, bool for_others);
  // Lets what is submitted to this lane from now on wait until `other` has reached a ticket of its end_part(). It may
  // wait for a later ticket of `other` if this one was not made `for_others`.
  Status follow(DeviceLane& other, uint32_t ticket);

  // Asks how far the stream has come. Error: the device failed.
  Status look();
  bool has_reached(uint32_t ticket) const { return Mark::is_past(reached_, ticket); }  // as of the last look()
  // Gives back the room of what is done. True if there was any.
  bool end_parts();
  bool first_part_ended() const { return part_count_ > 0 && has_reached(parts_[first_part_].ticket); }
  // Whether anything is or may be under way. A device that is broken runs nothing.
  bool still_runs();

 private:
  // Launches that end when the stream reaches the ticket.
  struct Part {
    uint32_t ticket = 0;
    uint32_t launches = 0;
  };

  explicit DeviceLane(Device& device) : device_(device) {}

  Device& device_;
  StreamHandle* stream_ = nullptr;
  bool has_stream_ = false;
  std::unique_ptr<Mark> mark_;
  // Parts under way, in their order: a ring.
  std::array<Part, kMostParts> parts_;
  uint32_t first_part_ = 0;
  uint32_t part_count_ = 0;
  uint32_t launches_under_way_ = 0;
  uint32_t reached_ = 0;
};

using DeviceLanes = std::array<std::unique_ptr<DeviceLane>, kLaneUses>;

}  // namespace trestle
