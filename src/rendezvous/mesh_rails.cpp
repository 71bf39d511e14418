#include "rendezvous/mesh_rails.h"

#include <algorithm>

#include "transport/rails/pairing.h"

namespace trestle {

// The other rank knows only the meeting_text() of these listeners. This rank reads that text, too, so that both pair
// the same rails.
std::vector<RailWay> rail_ways(const std::vector<RailListener>& listeners, const std::string& text) {
  const auto own = parse_meeting_text(meeting_text(listeners));
  const auto other = parse_meeting_text(text);
  if (!own.ok() || !other.ok() || own.value().rails.size() < 2 || other.value().rails.size() < 2) return {};
  const std::vector<PublishedRail>& mine = own.value().rails;
  const std::vector<PublishedRail>& theirs = other.value().rails;
  const auto paired = pair_rails({"this rank", mine}, {"the other one", theirs});
  std::vector<RailWay> ways;
  if (are_of_one_host(mine, theirs) || !paired.ok() || paired.value().pairs.size() < 2) return ways;
  for (const RailPair& pair : paired.value().pairs) {
    const auto here = std::ranges::find(listeners, mine[pair.mine].address,
                                        [](const RailListener& one) { return one.listener.address; });
    ways.push_back({static_cast<size_t>(here - listeners.begin()), theirs[pair.theirs].address});
  }
  return ways;
}

MeshRails::MeshRails(const Credentials& credentials, std::vector<RailListener> listeners,
                     const std::map<int32_t, std::string>& texts)
    : credentials_(credentials) {
  for (const auto& [rank, text] : texts) {
    std::vector<RailWay> ways = rail_ways(listeners, text);
    if (!ways.empty()) ways_.emplace(rank, std::move(ways));
    auto told = parse_meeting_text(text);
    if (told.ok()) places_.emplace(rank, std::move(told).value().addresses);
  }
  rails_ = std::move(listeners);
}

std::vector<std::string> MeshRails::places(int32_t rank) const {
  std::vector<std::string> places;
  const auto found = places_.find(rank);
  if (found == places_.end()) return places;
  for (const SocketAddress& one : found->second) places.push_back(format_address(one));
  return places;
}

Result<UniqueFd> MeshRails::dial_place(int32_t rank, size_t place) {
  return start_connect(places_.at(rank)[place]);
}

std::string MeshRails::name(size_t rail) const {
  const RailListener& at = rails_[rail];
  return at.interface.empty() ? format_host(at.listener.address) : at.interface;
}

std::vector<size_t> MeshRails::rails_to(int32_t rank) const {
  std::vector<size_t> rails;
  const auto found = ways_.find(rank);
  if (found == ways_.end()) return rails;
  for (const RailWay& way : found->second) rails.push_back(way.listener);
  return rails;
}

Result<UniqueFd> MeshRails::dial(int32_t rank, size_t rail) {
  const auto found = ways_.find(rank);
  for (const RailWay& way : found == ways_.end() ? std::vector<RailWay>() : found->second) {
    if (way.listener != rail) continue;
    UniqueFd socket = TRY(start_connect(way.to, {rails_[rail].listener.address, rails_[rail].interface}));
    (void)set_tcp_options(socket.get(), {});  // the handshake is small messages as well
    return socket;
  }
  return Error{Code::kInternalError, "a rail that does not lead to rank " + std::to_string(rank)};
}

void MeshRails::adopt(int fd, size_t rail) {
  (void)set_tcp_options(fd, {});
  (void)bind_to_interface(fd, rails_[rail].interface);
}

std::string MeshRails::rail_of(int fd) const {
  const HostAddress here = local_address(fd);
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    if (here == rails_[rail].listener.address) return name(rail);
  }
  return here.text();
}

}  // namespace trestle
