#include "sched/policy/order_rules.h"

#include <algorithm>

#include "sched/policy/priority_rules.h"

namespace trestle {
namespace {

constexpr OrderRule kOrderRules[] = {
    {"last phase behind all", last_phase_behind_all},   {"larger side last", larger_side_last},
    {"most phases left first", most_phases_left_first}, {"feed others first", feed_others_first},
    {"smallest chunk first", smallest_chunk_first},     {"first in first out", first_in_first_out},
};

uint64_t larger_side(const SimulatedPhase& phase) {
  return std::max(phase.size_before, phase.size_after);
}

}  // namespace

std::span<const OrderRule> order_rules() {
  return kOrderRules;
}

PriorityKey larger_side_last(const SimulatedPhase& phase, const SimulatedPhase*) {
  return {larger_side(phase), 0};
}

PriorityKey last_phase_behind_all(const SimulatedPhase& phase, const SimulatedPhase* next) {
  return {next == nullptr ? uint64_t{1} : uint64_t{0}, larger_side(phase)};
}

PriorityKey most_phases_left_first(const SimulatedPhase& phase, const SimulatedPhase*) {
  return {uint64_t{255} - phase.after, larger_side(phase)};
}

PriorityKey feed_others_first(const SimulatedPhase& phase, const SimulatedPhase* next) {
  static constexpr uint64_t kZero = uint64_t{1} << 63;  // larger than any time
  return {kZero + phase.link_ticks - (next == nullptr ? 0 : next->link_ticks), 0};
}

}  // namespace trestle
