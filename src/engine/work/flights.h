// Flights: the works of a DeviceQueue that were submitted to its lanes and have not ended, and their order.
//
// Lanes work beside each other. Where a work touches memory that an earlier one in another lane writes, or writes what
// that one reads, its lane waits for the other one (Footprint). So all works have the effect that they would have one
// after the other, although they may end in another order.
//
// Owned by a DeviceQueue, one thread at a time; allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "engine/work/device_lane.h"
#include "engine/work/footprint.h"

namespace trestle {

class Flights {
 public:
  explicit Flights(DeviceLanes& lanes) : lanes_(lanes) {}

  static constexpr uint32_t kMost = 128;
  bool is_empty() const { return count_ == 0; }
  bool has_room() const { return count_ < kMost; }

  // A work begins. The other functions of this section are about the one that began last.
  void begin(Work& work);
  // Once, before anything of it goes into the lane. Error: the driver's.
  Status enter(LaneUse use);
  // What it has submitted to the lane is done when the lane has reached the ticket. The last call per lane counts.
  void submitted(LaneUse use, uint32_t ticket);
  void submitted_all();

  // Ends what the lanes have done, as of their last look(). A work that submitted nothing ends when all before it have
  // ended. True if any ended.
  bool end_done();
  bool could_end_any() const;
  // Ends all: those that are not done fail with this error, unless they have one of their own.
  void end_all(const Error& error);

 private:
  struct Flight {
    Work* work = nullptr;  // nullptr: it has ended
    Footprint footprint;
    std::array<uint32_t, kLaneUses> tickets{};
    uint32_t lanes = 0;  // those that something was submitted to: a mask
    bool submitted_all = false;
  };

  Flight& at(uint32_t i) { return flights_[(first_ + i) % kMost]; }
  const Flight& at(uint32_t i) const { return flights_[(first_ + i) % kMost]; }
  Flight& newest() { return at(count_ - 1); }
  bool has_passed(const Flight& flight, LaneUse use) const;
  bool is_done(const Flight& flight, bool is_first) const;
  void note_times(Flight& flight) const;
  static void end(Flight& flight);

  DeviceLanes& lanes_;
  std::array<Flight, kMost> flights_;  // a ring
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace trestle
