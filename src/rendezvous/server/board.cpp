#include "rendezvous/server/board.h"

#include <algorithm>

#include "control_mesh/dissemination.h"

namespace trestle {

void RendezvousBoard::arrive(const JoinRequest& request, const std::string& from, bool holds) {
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
  if (request.nranks > kMostRanks)
    return fail({Code::kInvalidArgument, who + " says that there are " + std::to_string(request.nranks) +
                                             " ranks, more than " + std::to_string(kMostRanks)});
  if (request.nranks != nranks_)
    return fail({Code::kInvalidArgument, who + " says that there are " + std::to_string(request.nranks) + " ranks, " +
                                             first + " says " + std::to_string(nranks_)});
  if (request.rank < 0 || request.rank >= nranks_)
    return fail({Code::kInvalidArgument, who + " is out of range: there are " + std::to_string(nranks_) + " ranks"});
  if (has(request.rank)) return fail(twice(request, from, "", ""));
  arrived_[request.rank] = {request.address, from, request.name, request.lineage, request.network, request.only_here};
  if (holds) holder_ = std::min(request.rank, holder_.value_or(request.rank));
  check_reach(request.rank);
}

// An address of loopback means another host there, or nothing. So it is told to ranks of its own host only.
void RendezvousBoard::check_reach(int32_t rank) {
  const Arrival& arrival = arrived_.at(rank);
  if (arrival.network.empty()) return;
  if (!here_) here_ = rank;
  if (!elsewhere_ && arrival.network != arrived_.at(*here_).network) elsewhere_ = rank;
  if (!cut_off_ && !arrival.only_here.empty()) cut_off_ = rank;
  if (!cut_off_ || !elsewhere_) return;
  const Arrival& there = arrived_.at(*cut_off_);
  const int32_t other = there.network == arrived_.at(*here_).network ? *elsewhere_ : *here_;
  fail({Code::kInvalidUsage, name(*cut_off_) + " can be reached from its own host only, at " + there.address +
                                 ", and " + name(other) + " is on another one (" + there.only_here +
                                 "); TRESTLE_SOCKET_IFNAME names the interface over which other hosts reach it"});
}

bool are_kin(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  const auto descends = [](const std::vector<uint64_t>& child, const std::vector<uint64_t>& parent) {
    return !parent.empty() && std::ranges::find(child, parent.front()) != child.end();
  };
  return descends(a, b) || descends(b, a);
}

Error RendezvousBoard::twice(const JoinRequest& second, const std::string& from, const std::string& holder,
                             const std::string& advice) const {
  const auto found = arrived_.find(second.rank);
  const std::string first = found == arrived_.end() ? holder : found->second.name + ", from " + found->second.from;
  const int32_t ranks = nranks_ > 0 ? nranks_ : second.nranks;
  return {Code::kInvalidArgument, "two processes joined as rank " + std::to_string(second.rank) + " of " +
                                      std::to_string(ranks) + ": " + first + ", and " + second.name + ", from " + from +
                                      advice};
}

bool RendezvousBoard::has_another(const JoinRequest& request) const {
  const auto is_kin = [&](const auto& one) { return are_kin(one.second.lineage, request.lineage); };
  return has(request.rank) && std::ranges::none_of(arrived_, is_kin);
}

void RendezvousBoard::leave(int32_t rank, Error error) {
  if (!failure_) left_ = rank;
  fail(std::move(error));
}

void RendezvousBoard::leave(int32_t rank) {
  const std::string before =
      complete() ? " ended while the communicator was being made"
                 : " disconnected before all " + std::to_string(nranks_) + " ranks had come to the rendezvous";
  leave(rank, {Code::kRemoteError, name(rank) + before});
}

void RendezvousBoard::closes() {
  fail({Code::kRemoteError, "the process that holds the rendezvous ended before all ranks had come; missing: " +
                                (nranks_ == 0 ? "all ranks" : rank_list(missing()))});
}

std::string RendezvousBoard::name(int32_t rank) const {
  const auto found = arrived_.find(rank);
  return found == arrived_.end() || found->second.name.empty() ? "rank " + std::to_string(rank) : found->second.name;
}

void RendezvousBoard::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

std::vector<int32_t> RendezvousBoard::missing() const {
  std::vector<int32_t> ranks;
  for (int32_t r = 0; r < nranks_; ++r) {
    if (!arrived_.contains(r)) ranks.push_back(r);
  }
  return ranks;
}

std::string RendezvousBoard::progress() const {
  return std::to_string(arrived_.size()) + " of " + std::to_string(nranks_) +
         " ranks have come; missing: " + rank_list(missing());
}

void RendezvousBoard::time_over(const std::string& place, const std::string& refused) {
  const std::string who = nranks_ == 0 ? "no rank came to " : rank_list(missing()) + " did not come to ";
  const std::string came = std::to_string(arrived_.size()) + " of " + std::to_string(nranks_) + " did";
  fail({Code::kTimeout, who + place + " in time" + (nranks_ == 0 ? "" : ", " + came) + refused});
}

JoinAnswer RendezvousBoard::answer_for(int32_t rank) const {
  JoinAnswer answer;
  if (failure_) {
    answer.error = *failure_;
    return answer;
  }
  for (const int32_t neighbour : mesh_neighbours(rank, nranks_)) {
    const Arrival& arrival = arrived_.at(neighbour);
    answer.addresses.push_back(arrival.address);
    answer.names.push_back(arrival.name);
  }
  if (holder_) answer.holder = name(*holder_);
  return answer;
}

}  // namespace trestle
