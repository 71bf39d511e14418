// JobOutputs: the destinations of everything that ranks and the launcher write.
//
// Owned by the job, its only thread.
#pragma once

#include <poll.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/run/outlet.h"
#include "cli/run/rank_stream.h"
#include "cli/run/run_options.h"

namespace trestle {

// The descriptors that a rank writes to, and those of its streams that arrive here.
struct RankOutput {
  std::array<UniqueFd, 2> for_rank;  // standard output and error; only the rank holds them once it runs
  std::vector<RankStream> streams;   // none if the rank writes into its files directly
};

class JobOutputs {
 public:
  // Error: the folder or its files cannot be written.
  static Result<JobOutputs> open(const RunOptions& options);
  Result<RankOutput> take_rank(int rank);  // once per rank

  void say(const std::string& sentence);  // prints a sentence on standard error, with "trestle: " in front
  void add_to(std::vector<pollfd>& fds) const;
  bool write_some();  // true if anything was written
  // Drops what has not been read, and reports that if standard error is read.
  void give_up();
  bool pending() const;
  // A sentence about the first destination that could not be written; "" if there is none.
  std::string failure() const;

 private:
  using Files = std::array<UniqueFd, 2>;  // of one rank: standard output and error
  JobOutputs() = default;
  Status open_files(const RunOptions& options);
  Outlet& add_outlet(Outlet outlet);

  bool prefixed_ = true;
  std::vector<Files> files_;  // by rank; empty where this process writes the ranks' lines
  std::vector<std::unique_ptr<Outlet>> outlets_;
  std::array<Outlet*, 2> standard_{};  // output and error of this process, perhaps the same
};

}  // namespace trestle
