// RendezvousBoard: the ranks that have come to a rendezvous, and the answer for each. A state machine without I/O or
// clock.
//
// Owned by a RendezvousServer, used on its thread only. After a failure, all ranks get the first failure as their
// answer, also those that come later.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "rendezvous/message.h"

namespace trestle {

// Whether these are one process, or one was forked by the other (process_lineage()).
bool are_kin(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b);

class RendezvousBoard {
 public:
  // Registers a rank. A bad request becomes the failure. `holds`: the rank belongs to the process that holds the
  // rendezvous.
  void arrive(const JoinRequest& request, const std::string& from, bool holds = false);
  // A rank that had arrived has left before all ranks arrived, or before it was connected with its neighbours.
  void leave(int32_t rank);
  void fail(Error error);
  // A rank that had arrived says why it leaves.
  void leave(int32_t rank, Error error);
  // Fails with the ranks that did not come, and the place. `refused`: a sentence about refused connections, or "".
  void time_over(const std::string& place, const std::string& refused);
  // The sentence for another process that comes as a rank that has arrived, or that `holder` is; and what to do.
  Error twice(const JoinRequest& second, const std::string& from, const std::string& holder,
              const std::string& advice) const;
  // The process that holds the rendezvous ends in order before all ranks have arrived.
  void closes();

  bool complete() const { return nranks_ > 0 && static_cast<int32_t>(arrived_.size()) == nranks_; }
  bool decided() const { return failure_.has_value() || complete(); }
  bool failed() const { return failure_.has_value(); }
  int32_t nranks() const { return nranks_; }  // 0 until the first rank comes
  int32_t arrived() const { return static_cast<int32_t>(arrived_.size()); }
  bool has(int32_t rank) const { return arrived_.contains(rank); }
  // Whether that rank has arrived, and no rank of it is of the process of the request or its kin. A process may be
  // another rank in another communicator of its job.
  bool has_another(const JoinRequest& request) const;
  // The rank that left, if that is the failure.
  std::optional<int32_t> left() const { return left_; }
  // "3 of 4 ranks have come; missing: rank 2"
  std::string progress() const;
  // Only when decided().
  JoinAnswer answer_for(int32_t rank) const;

 private:
  struct Arrival {
    std::string address;
    std::string from;
    std::string name;
    std::vector<uint64_t> lineage;
    std::string network;
    std::string only_here;
  };
  std::string name(int32_t rank) const;
  void check_reach(int32_t rank);
  std::vector<int32_t> missing() const;

  int32_t nranks_ = 0;
  int32_t first_rank_ = 0;
  uint32_t version_ = 0;
  std::map<int32_t, Arrival> arrived_;
  std::optional<int32_t> here_, elsewhere_;  // the first ranks of two hosts
  std::optional<int32_t> cut_off_;           // the first rank that other hosts cannot reach
  std::optional<int32_t> holder_;            // the lowest rank of the process that holds the rendezvous
  std::optional<int32_t> left_;
  std::optional<Error> failure_;
};

}  // namespace trestle
