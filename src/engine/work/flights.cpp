#include "engine/work/flights.h"

#include <utility>

#include "base/check.h"

namespace trestle {

namespace {

constexpr uint32_t bit(size_t lane) {
  return uint32_t{1} << lane;
}

}  // namespace

void Flights::begin(Work& work) {
  CHECK(has_room(), "too many works are under way on a device");
  ++count_;
  newest() = {};
  newest().work = &work;
  newest().footprint = Footprint(work);
}

Status Flights::enter(LaneUse use) {
  const auto lane = static_cast<size_t>(use);
  Flight& mine = newest();
  if ((mine.entered & bit(lane)) != 0) return {};
  mine.entered |= bit(lane);
  for (uint32_t i = 0; i + 1 < count_; ++i) {
    const Flight& earlier = at(i);
    const uint32_t others = earlier.lanes & ~bit(lane);
    if (earlier.work == nullptr || others == 0 || !mine.footprint.conflicts_with(earlier.footprint)) continue;
    for (size_t other = 0; other < kLaneUses; ++other) {
      if ((others & bit(other)) != 0) TRY(lanes_[lane]->follow(*lanes_[other], earlier.tickets[other]));
    }
  }
  return {};
}

void Flights::submitted(LaneUse use, uint32_t ticket) {
  newest().lanes |= bit(static_cast<size_t>(use));
  newest().tickets[static_cast<size_t>(use)] = ticket;
}

void Flights::submitted_all() {
  newest().submitted_all = true;
}

bool Flights::is_done(const Flight& flight, bool is_first) const {
  if (flight.work == nullptr || !flight.submitted_all) return false;
  if (flight.lanes == 0) return is_first;
  for (size_t lane = 0; lane < kLaneUses; ++lane) {
    if ((flight.lanes & bit(lane)) != 0 && !lanes_[lane]->has_reached(flight.tickets[lane])) return false;
  }
  return true;
}

void Flights::end(Flight& flight) {
  Work& work = *std::exchange(flight.work, nullptr);
  work.state = WorkState::kDone;
  if (work.touched != nullptr) *work.touched = true;
}

bool Flights::end_done() {
  bool ended = false;
  for (uint32_t i = 0; i < count_;) {
    if (is_done(at(i), i == 0)) {
      end(at(i));
      ended = true;
    }
    if (i == 0 && at(0).work == nullptr) {
      first_ = (first_ + 1) % kMost;
      --count_;
    } else {
      ++i;
    }
  }
  return ended;
}

bool Flights::could_end_any() const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (is_done(at(i), i == 0)) return true;
  }
  return false;
}

void Flights::end_all(const Error& error) {
  end_done();
  for (uint32_t i = 0; i < count_; ++i) {
    if (at(i).work == nullptr) continue;
    if (at(i).work->result.ok()) at(i).work->result = error;
    end(at(i));
  }
  count_ = 0;
}

}  // namespace trestle
