// The communicators that a scheduler of gradients uses: the job's own, or one for each link.
#pragma once

#include <trestle/trestle.h>

#include <string>
#include <vector>

namespace trestle::perf {

// Splits one communicator for each of the links, which it owns. Used by the thread of a rank.
class LinkComms {
 public:
  // Collective. rails: of each link, as TRESTLE_RAILS; empty: the job's communicator is the only link.
  LinkComms(trestleComm_t job, int rank, const std::vector<std::string>& rails);
  LinkComms(const LinkComms&) = delete;
  LinkComms& operator=(const LinkComms&) = delete;
  ~LinkComms();

  const std::vector<trestleComm_t>& all() const { return all_; }

 private:
  const trestleComm_t job_;
  std::vector<trestleComm_t> all_;
};

}  // namespace trestle::perf
