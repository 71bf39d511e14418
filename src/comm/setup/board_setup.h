// BoardSetup: makes the board of devices of a communicator (engine/work/device_board.h), whose ranks are all in this
// process. In three steps between which the ranks exchange what they have: each brings its memory; each finds the
// memory of the others, which is in this process; each makes its board.
//
// Used by one thread of each rank. Slow, as device/device.h says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/work/device_place.h"
#include "memory/peer_paths.h"

namespace trestle {

class BoardSetup {
 public:
  // job: of the communicator, in hexadecimal. most_bytes: of a block.
  BoardSetup(int device, int32_t rank, int32_t ranks, std::string job, uint64_t most_bytes)
      : device_(device), rank_(rank), ranks_(ranks), job_(std::move(job)), most_bytes_(most_bytes) {}

  // Whether there can be a board: each rank of the communicator is in this process, and this device reads and writes
  // the memory of all of them. paths: to each rank.
  bool is_possible(const PeerPaths& paths) const;
  // False: the device has no memory. The log says so.
  bool bring();
  // For all ranks, once every rank has brought its memory. devices: by rank, the number of its device. Error: a rank
  // has gone; the driver's.
  Status make(const std::vector<int>& devices, DevicePlace& place);

 private:
  Status try_to_bring();

  const int device_;
  const int32_t rank_;
  const int32_t ranks_;
  const std::string job_;
  const uint64_t most_bytes_;
  std::shared_ptr<BoardMemory> memory_;
};

}  // namespace trestle
