// The printer: a process that passes on what the ranks and the launcher write, in whole lines.
//
// Only the printer waits for those who read the output. The launcher can always handle signals and deadlines; and to
// give up on a reader it kills the printer. A rank whose lines are not taken is blocked by its full pipe.
#pragma once

#include <sys/types.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/run/processes.h"

namespace trestle {

struct Printer {
  pid_t pid = 0;
  // Sentences for standard error, printed behind all that the ranks have written before. At its end the printer prints
  // what the ranks have written by then, and exits: 0, or 1 if some of the output could not be written.
  UniqueFd sentences;
  // By rank: its standard output and error, which only the rank may hold once it runs. Files where no line is changed.
  std::vector<std::array<UniqueFd, 2>> ranks;
};

// Whom the log of a failed rank blames, by the library's sentence: the process's number, or -1 - the rank's number
// where the sentence has no process; 0: the line is no such sentence, or the rank blames itself.
int64_t blamed_in(std::string_view line);

// Whom the ranks blame for a failure. A program may go on after a failed communicator, so blame belongs only to what
// follows within kBlameNs. The printer hears it, the launcher asks. Times are monotonic.
class Blame {
 public:
  static constexpr int64_t kBlameNs = 10'000'000'000;
  Blame() = default;
  explicit Blame(std::span<Shared, 2> words) : whom_(&words[0]), heard_ns_(&words[1]) {}
  // `whom`: as of blamed_in(), not 0. The first blame of a failure counts.
  void hear(int64_t whom, int64_t now_ns) const;
  // Who is to blame if a rank has failed then; 0: nobody.
  int64_t of_failure(int64_t failed_ns) const;

 private:
  Shared* whom_ = nullptr;
  Shared* heard_ns_ = nullptr;
};

// prefixed: lines begin with "[3] ". folder: "", or where each rank has its files; error: they cannot be written.
// `written`: the bytes that the printer has written so far. `blame`: hears what blamed_in() says of the ranks' lines.
// `foreign`: a descriptor that the printer must not hold.
Result<Printer> start_printer(int ranks, bool prefixed, const std::string& folder, Shared& written, const Blame& blame,
                              const UniqueFd& foreign);

}  // namespace trestle
