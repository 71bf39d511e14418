#include "engine/work/flights.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"

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

// Tickets of a lane ascend, so of all earlier works the last one counts.
Status Flights::enter(LaneUse use) {
  const auto lane = static_cast<size_t>(use);
  const Flight& mine = newest();
  std::array<const Flight*, kLaneUses> last{};
  for (uint32_t i = 0; i + 1 < count_; ++i) {
    const Flight& earlier = at(i);
    const uint32_t others = earlier.lanes & ~bit(lane);
    if (earlier.work == nullptr || others == 0 || !mine.footprint.conflicts_with(earlier.footprint)) continue;
    for (size_t other = 0; other < kLaneUses; ++other) {
      if ((others & bit(other)) != 0) last[other] = &earlier;
    }
  }
  for (size_t other = 0; other < kLaneUses; ++other) {
    if (last[other] != nullptr) TRY(lanes_[lane]->follow(*lanes_[other], last[other]->tickets[other]));
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

bool Flights::has_passed(const Flight& flight, LaneUse use) const {
  const auto lane = static_cast<size_t>(use);
  return (flight.lanes & bit(lane)) == 0 || lanes_[lane]->has_reached(flight.tickets[lane]);
}

bool Flights::is_done(const Flight& flight, bool is_first) const {
  if (flight.work == nullptr || !flight.submitted_all) return false;
  if (flight.lanes == 0) return is_first;
  return has_passed(flight, LaneUse::kOnDevice) && has_passed(flight, LaneUse::kToHost) &&
         has_passed(flight, LaneUse::kFromHost);
}

// Of a work that uses several lanes, the one that has ended first ended when this was seen first.
void Flights::note_times(Flight& flight) const {
  if (flight.work == nullptr || !flight.submitted_all) return;
  const auto note = [&](LaneUse use, int64_t& ended_ns) {
    const bool uses = (flight.lanes & bit(static_cast<size_t>(use))) != 0;
    if (uses && ended_ns == 0 && has_passed(flight, use)) ended_ns = monotonic_clock().now_ns();
  };
  note(LaneUse::kOnDevice, flight.work->ended.device_ns);
  note(LaneUse::kFromHost, flight.work->ended.host_ns);
}

void Flights::end(Flight& flight) {
  Work& work = *std::exchange(flight.work, nullptr);
  work.state = WorkState::kDone;
  if (work.touched != nullptr) *work.touched = true;
}

bool Flights::end_done() {
  bool ended = false;
  for (uint32_t i = 0; i < count_;) {
    note_times(at(i));
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
