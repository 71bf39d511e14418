// The policies that the studies compare. A policy that leaves the rule of the links open appears once per rule. Pure,
// any thread.
#pragma once

#include <string>
#include <vector>

namespace trestle {

struct ScheduleVariant {
  std::string name;  // "themis+scf"
  std::string policy;
  std::string intra;
  bool open = false;  // the policy leaves the rule open
};

// One per policy, for policy themis one per rule. The baseline comes first.
std::vector<ScheduleVariant> schedule_variants();
// schedule_variants() and the other members of auto's portfolio.
std::vector<ScheduleVariant> explained_variants();

}  // namespace trestle
