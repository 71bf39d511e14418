// The parts of check_plans, one file each. Only the checker's own files include this. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/checker.h"
#include "plan/plan.h"

namespace trestle::checking {

// For one rank: the step at the other end of each of its messages, by step and by source. Unused entries are 0.
struct Matches {
  std::vector<uint32_t> receiver;          // of a send
  std::vector<uint32_t> sender;            // of a recv
  std::vector<uint32_t> sender_of_source;  // of a reduce's peer source, by index into Plan::sources
};

// Each function expects that the ones before it have passed.
Status check_structure(const std::vector<Plan>& plans);                       // checker.cpp
Result<std::vector<Matches>> match_messages(const std::vector<Plan>& plans);  // checker_messages.cpp
Status check_order(const Plan& plan);                                         // checker_order.cpp
Status execute(const std::vector<Plan>& plans, const std::vector<Matches>& matches,
               SumOrder order);  // checker_execution.cpp

// "rank 2, step 5 (send to 3)"
std::string step_name(const Plan& plan, uint32_t step);
// "output block 3"
std::string block_name(Space space, uint32_t block);
Error fault(std::string sentence);

}  // namespace trestle::checking
