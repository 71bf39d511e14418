// Checks the reports of a fault's survivors: every one gets an error that names the victim first, and all agree.
#pragma once

#include <string>
#include <vector>

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// How a sentence names the victim.
enum class Naming {
  kRight,     // the first rank in the sentence is the victim
  kNotFirst,  // the victim is named after another rank
  kWrong,     // only other ranks are named
  kMissing    // no rank is named
};
// pid: the victims' process, which must match if the sentence has a pid; 0: any.
Naming naming_of(const std::string& sentence, const std::vector<int>& victims, pid_t pid);

struct Verdict {
  std::string wrong;   // "" or the errors
  int survivors = 0;   // threads of ranks
  int failures = 0;    // their communicators that failed
  int naming[4] = {};  // of those failures, by Naming
  int unfailed = 0;    // survivors that should have an error and have none
  int codes = 0;       // failures with the wrong code
};
Verdict judge(const JobPlan& plan, const Board& board, pid_t victim);

}  // namespace torture
