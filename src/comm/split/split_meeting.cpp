#include "comm/split/split_meeting.h"

#include <algorithm>
#include <utility>

#include "base/descriptor_room.h"
#include "base/transport_kinds.h"
#include "comm/membership/descriptors.h"
#include "control_mesh/dissemination.h"
#include "transport/auth/handshake.h"

namespace trestle {

namespace {

// The ranks of the call's colour, in the order of (key, rank).
std::vector<int32_t> members_of(const SplitCall& call, const std::vector<SplitPart>& parts) {
  std::vector<int32_t> members;
  for (size_t r = 0; r < parts.size(); ++r) {
    if (parts[r].color == call.color && call.color != kNoColor) members.push_back(static_cast<int32_t>(r));
  }
  std::stable_sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
    return parts[static_cast<size_t>(a)].key < parts[static_cast<size_t>(b)].key;
  });
  return members;
}

// Two ranks of one process share memory, too.
bool share_sockets(const Membership& parent, const std::vector<int32_t>& members) {
  for (const int32_t a : members) {
    for (const int32_t b : members) {
      if (a != b && !facts_of(parent.routing().transport(a, b)).shares_memory) return false;
    }
  }
  return members.size() > 1;
}

}  // namespace

SplitMeeting::SplitMeeting(const Membership& parent, const SplitCall& call, const std::vector<SplitPart>& parts)
    : members(members_of(call, parts)) {
  const auto process_of = [&](int32_t rank) { return parts[static_cast<size_t>(rank)].process; };
  own_rank = static_cast<int32_t>(std::find(members.begin(), members.end(), parent.rank()) - members.begin());
  in_one_process =
      std::all_of(members.begin(), members.end(), [&](int32_t r) { return process_of(r) == process_of(members[0]); });
  on_one_host = !in_one_process && share_sockets(parent, members);
  kin.sockets = parent.kin().sockets;
  for (const int32_t r : members) kin.ranks.push_back(parent.kin().ranks[static_cast<size_t>(r)]);
  const std::string label = "split " + std::to_string(call.number) + " colour " + std::to_string(call.color);
  meeting.job = job_id(to_hex(parent.job()) + " " + label);
  meeting.secret = derive_secret(parent.secret(), label);
  config = bootstrap_config(call.settings.value().config, size(), own_rank, UniqueIdBytes{});
  config.rails = call.settings.value().control_rails;
}

SplitAddress SplitMeeting::open(const HostAddress& ip) {
  Status opened;
  // The first rank of a process opens what all of them need.
  const size_t of_rank = on_one_host ? kDescriptorsOfPart : descriptors_of_rank(size());
  if (!in_one_process || own_rank == 0)
    opened = make_descriptor_room("a part of " + std::to_string(size()) + " ranks",
                                  (in_one_process ? members.size() : 1) * of_rank);
  if (opened.ok()) opened = in_one_process ? open_handover() : on_one_host ? open_streams() : listen(ip);
  if (!opened.ok()) return {opened.error().code, "", opened.error().message};
  if (in_one_process) return {Code::kSuccess, "", ""};
  return {Code::kSuccess, on_one_host ? on_host.streams->address() : meeting_text(meeting.listeners), ""};
}

Status SplitMeeting::open_streams() {
  on_host.streams = TRY(HostStreams::open(kin, to_hex(meeting.job) + "/mesh", own_rank));
  return {};
}

Status SplitMeeting::open_handover() {
  if (own_rank != 0) return {};
  handover = std::make_unique<BootstrapHandover>(meeting.job, TRY(Bootstrap::join_in_process(config)));
  return {};
}

Status SplitMeeting::listen(const HostAddress& ip) {
  meeting.listeners = TRY(listen_for_neighbours(config, ip.address()));
  return {};
}

void SplitMeeting::set_addresses(const std::vector<std::string>& addresses) {
  on_host.addresses = addresses;
  for (const int32_t neighbour : mesh_neighbours(own_rank, size()))
    meeting.addresses.push_back(addresses[static_cast<size_t>(neighbour)]);
}

}  // namespace trestle
