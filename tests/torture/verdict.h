// Whether the survivors of a fault say the truth: every one gets an error, it names the victim first, and all tell the
// same.
#pragma once

#include <string>
#include <vector>

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// How a sentence names the victim.
enum class Naming {
  kRight,     // the first rank of the sentence is the victim
  kNotFirst,  // it is there, behind another one
  kWrong,     // only others are
  kMissing    // nobody is
};
// `pid`: the victims' process, which a sentence that says one must say; 0: any.
Naming naming_of(const std::string& sentence, const std::vector<int>& victims, pid_t pid);

struct Verdict {
  std::string wrong;   // "" or what is
  int survivors = 0;   // threads of ranks
  int failures = 0;    // communicators that failed there
  int naming[4] = {};  // of those, by Naming
  int unfailed = 0;    // survivors without an error that must have one
  int codes = 0;       // failures with the wrong code
};
Verdict judge(const JobPlan& plan, const Board& board, pid_t victim);

}  // namespace torture
