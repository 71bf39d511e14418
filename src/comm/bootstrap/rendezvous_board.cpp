#include "comm/bootstrap/rendezvous_board.h"

#include "comm/bootstrap/dissemination.h"

namespace trestle {

void RendezvousBoard::arrive(const JoinRequest& request, const std::string& from) {
  const std::string who = "rank " + std::to_string(request.rank) + " (at " + from + ")";
  if (arrived_.empty() && nranks_ == 0) {
    nranks_ = request.nranks;
    version_ = request.version;
    first_rank_ = request.rank;
  }
  const std::string first = "rank " + std::to_string(first_rank_);
  if (request.version != version_)
    return fail({Code::kInvalidUsage, who + " has Trestle version code " + std::to_string(request.version) + ", " +
                                          first + " has " + std::to_string(version_) +
                                          "; all ranks need the same version"});
  if (request.nranks != nranks_)
    return fail({Code::kInvalidArgument, who + " says that there are " + std::to_string(request.nranks) + " ranks, " +
                                             first + " says " + std::to_string(nranks_)});
  if (request.rank < 0 || request.rank >= nranks_)
    return fail({Code::kInvalidArgument, who + " is out of range: there are " + std::to_string(nranks_) + " ranks"});
  const auto [seat, free] = arrived_.try_emplace(request.rank, Arrival{request.address, from});
  if (!free)
    return fail({Code::kInvalidArgument, "two processes joined as rank " + std::to_string(request.rank) + " of " +
                                             std::to_string(nranks_) + ": at " + seat->second.from + " and at " +
                                             from});
}

void RendezvousBoard::leave(int32_t rank) {
  fail({Code::kRemoteError, "rank " + std::to_string(rank) + " went away before all " + std::to_string(nranks_) +
                                " ranks had come to the rendezvous"});
}

void RendezvousBoard::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void RendezvousBoard::time_over(const std::string& refused) {
  std::vector<int32_t> missing;
  for (int32_t r = 0; r < nranks_; ++r) {
    if (!arrived_.contains(r)) missing.push_back(r);
  }
  fail({Code::kTimeout,
        rank_list(missing) + " of " + std::to_string(nranks_) + " did not come to the rendezvous in time" + refused});
}

JoinAnswer RendezvousBoard::answer_for(int32_t rank) const {
  JoinAnswer answer;
  if (failure_) {
    answer.error = *failure_;
    return answer;
  }
  for (int k = 0; k < dissemination_steps(nranks_); ++k)
    answer.addresses.push_back(
        arrived_.at(static_cast<int32_t>((int64_t{rank} + (int64_t{1} << k)) % nranks_)).address);
  return answer;
}

}  // namespace trestle
