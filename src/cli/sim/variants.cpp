#include "cli/sim/variants.h"

#include "sched/policy/policies.h"
#include "sched/policy/priority_rules.h"

namespace trestle {

std::vector<ScheduleVariant> schedule_variants() {
  std::vector<ScheduleVariant> variants;
  for (const Policy& policy : policies()) {
    const std::string name(policy.name);
    if (policy.plan != plan_themis) {
      variants.push_back({name, name, "scf", false});
      continue;
    }
    for (const NamedRule& rule : priority_rules()) {
      variants.push_back({name + "+" + std::string(rule.name), name, std::string(rule.name), true});
    }
  }
  return variants;
}

std::vector<ScheduleVariant> explained_variants() {
  std::vector<ScheduleVariant> variants = schedule_variants();
  for (const Policy& member : portfolio_members()) {
    const std::string name(member.name);
    variants.push_back({name, name, "scf", false});
  }
  return variants;
}

}  // namespace trestle
