// BoardSetup: makes the board of devices of a communicator (engine/work/device_board.h). In four steps between which
// the ranks exchange what they have: each brings its memory; each opens the memory of the others, in this process or in
// other ones; each makes its board; and where ranks are in several processes, a call over the board proves that what a
// device writes into memory of another process arrives there.
//
// Used by one thread of each rank. Slow, as device/device.h says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_names.h"
#include "base/result.h"
#include "engine/work/device_place.h"

namespace trestle {

// A rank of the communicator, as another one sees it.
struct BoardRank {
  int32_t process = 0;  // Whereabouts::process
  int device = -1;      // its number in this process; -1: not in this process
  std::string pci;      // address of its device; "": it has none
  // The devices of the two reach each other, or may be found to do so.
  bool is_reached = false;
};

class BoardSetup {
 public:
  // ranks: all of them. job: of the communicator, in hexadecimal. most_bytes: of a block. shares: processes may share a
  // device, whose kernels then take turns.
  BoardSetup(int device, int32_t rank, std::vector<BoardRank> ranks, std::string job, uint64_t most_bytes, bool shares)
      : device_(device),
        rank_(rank),
        ranks_(std::move(ranks)),
        job_(std::move(job)),
        most_bytes_(most_bytes),
        shares_(shares) {}

  BoardSetup(const BoardSetup&) = delete;
  BoardSetup& operator=(const BoardSetup&) = delete;
  ~BoardSetup();

  // Whether there may be a board: every rank is reached, and the kernels of a device are of one process. A kernel that
  // waits for one of another process on its own device may keep it from running.
  bool is_possible() const;
  // What the others need to open this rank's memory. nullopt: the device has none. The log says so.
  std::optional<std::string> bring();
  // Opens the memory of all ranks. brought: by rank, for none of them nullopt. has_path: by rank, whether a path to a
  // rank of another process was found. Blocks of a launch with which the kernels of all ranks of this device run at the
  // same time; 0: not even with one, or memory cannot be opened. The log says so. Error: a rank of this process has
  // gone; the driver's.
  Result<uint32_t> open(const std::vector<std::string>& brought, const std::vector<bool>& has_path,
                        const RankNames& names);
  // A rank has no blocks, so no rank makes the board.
  void give_up() { others_may_write_ = false; }
  // blocks: the fewest of all ranks, not 0. Error: the driver's.
  Status make(uint32_t blocks, DevicePlace& place);
  bool is_to_be_proved() const { return others() != 0; }
  // Runs a call on the board that was made. "": it has brought what all ranks sent; else why not.
  std::string prove(const DevicePlace& place, const RankNames& names);

 private:
  uint32_t others() const;
  Result<std::string> try_to_bring();
  Result<std::shared_ptr<BoardMemory>> find_here(int32_t rank) const;
  Result<std::shared_ptr<BoardMemory>> open_there(int32_t rank, const std::string& brought, bool has_path) const;
  Result<uint32_t> blocks_of_rank() const;
  Result<std::string> try_to_prove(DeviceBoard& board, const RankNames& names);

  const int device_;
  const int32_t rank_;
  const std::vector<BoardRank> ranks_;
  const std::string job_;
  const uint64_t most_bytes_;
  const bool shares_;
  std::shared_ptr<BoardMemory> memory_;
  bool others_may_write_ = false;
  std::vector<std::shared_ptr<BoardMemory>> opened_;  // by rank, until the board is made
};

}  // namespace trestle
