// JobOutputs: where everything goes that ranks and the launcher write.
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

// What a rank writes into, and what of it arrives here.
struct RankOutput {
  std::array<UniqueFd, 2> for_rank;  // standard output and error; the rank's alone once it runs
  std::vector<RankStream> streams;   // none where the rank writes into its files itself
};

class JobOutputs {
 public:
  // Errors: the folder or its files cannot be written.
  static Result<JobOutputs> open(const RunOptions& options);
  Result<RankOutput> take_rank(int rank);  // once per rank

  void say(const std::string& sentence);  // "trestle: " in front, on standard error
  void add_to(std::vector<pollfd>& fds) const;
  bool write_some();  // whether anything was taken
  // Drops what nobody has read, and says so where standard error is read.
  void give_up();
  bool pending() const;
  // A sentence about the first place that could not be written, "" while there is none.
  std::string failure() const;

 private:
  using Files = std::array<UniqueFd, 2>;  // of a rank: standard output and error
  JobOutputs() = default;
  Status open_files(const RunOptions& options);
  Outlet& add_outlet(Outlet outlet);

  bool prefixed_ = true;
  std::vector<Files> files_;  // by rank, none where the ranks' lines come out of this process
  std::vector<std::unique_ptr<Outlet>> outlets_;
  std::array<Outlet*, 2> standard_{};  // output and error of this process, perhaps the same
};

}  // namespace trestle
