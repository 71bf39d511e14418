// BoardSetup: makes the board of devices of a communicator (engine/work/device_board.h). In steps between which the
// ranks exchange what they have: each brings its memory; each opens the memory of the others, in this process or in
// other ones; each makes its board; and where ranks are in several processes, a call over the board proves that what a
// device writes into memory of another process arrives there. A failure on the way leaves the board out, on all
// ranks.
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
#include "base/unique_fd.h"
#include "comm/device/process_memory.h"
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
  // waits for one of another process on its own device may keep it from running. The log says why not.
  bool is_possible(const RankNames& names) const;
  // Whether ranks are in other processes.
  bool crosses_processes() const { return others() != 0; }
  // What the others need to open this rank's memory. nullopt: the device has none. The log says so. by: as for
  // BoardStore::lend().
  std::optional<std::string> bring(SharedBy by);
  // What is to be passed to ranks of other processes; -1: nothing.
  int descriptor() const { return descriptor_; }

  struct Opened {
    uint32_t blocks = 0;  // of a launch with which the kernels of all ranks of this device run at the same time
    std::string why_not;  // if there are none
  };
  // Opens the memory of all ranks, which have brought it. brought: by rank, what bring() gave. has_path: by rank,
  // whether a path to a rank of another process was found. passed: by rank, the descriptor that it has passed, if any.
  // Error: a rank of this process has gone; the driver's.
  Result<Opened> open(const std::vector<std::string>& brought, const std::vector<bool>& has_path,
                      const std::vector<UniqueFd>& passed, const RankNames& names);
  // A rank has no blocks, so no rank makes the board.
  void give_up() { others_may_write_ = false; }
  // blocks: the fewest of all ranks, not 0. Error: the driver's.
  Status make(uint32_t blocks, DevicePlace& place);
  // Runs a call on the board, which every rank has made. "": it has brought what all ranks sent; else why not, and then
  // nothing of this rank's runs any more.
  std::string prove(DevicePlace& place, const RankNames& names);
  // Ends a board that is not to be. If its kernel does not end, it stays to the end of the process.
  void drop(DevicePlace& place);

 private:
  uint32_t others() const;
  Result<std::string> try_to_bring(SharedBy by);
  Result<std::shared_ptr<BoardMemory>> find_here(int32_t rank) const;
  Result<std::shared_ptr<BoardMemory>> open_there(int32_t rank, const std::string& brought,
                                                  const UniqueFd& passed) const;
  Result<Opened> blocks_of_rank() const;
  Result<std::string> try_to_prove(DeviceBoard& board, const RankNames& names);

  const int device_;
  const int32_t rank_;
  const std::vector<BoardRank> ranks_;
  const std::string job_;
  const uint64_t most_bytes_;
  const bool shares_;
  std::shared_ptr<BoardMemory> memory_;
  int descriptor_ = -1;  // of memory_
  bool others_may_write_ = false;
  std::vector<std::shared_ptr<BoardMemory>> opened_;  // by rank, until the board is made
};

}  // namespace trestle
