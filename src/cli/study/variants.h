// The policies that are compared with each other, each with the rules of its links that it leaves open. Pure, any
// thread.
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

// One per policy, of policy themis one per rule; the baseline first.
std::vector<ScheduleVariant> schedule_variants();
// And what the portfolio of auto has besides them.
std::vector<ScheduleVariant> explained_variants();

}  // namespace trestle
