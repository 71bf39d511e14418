#include "rendezvous/mesh_rails.h"

#include <algorithm>

#include "base/log.h"
#include "transport/rails/pairing.h"

namespace trestle {
std::unique_ptr<MeshRails> MeshRails::create(const Credentials& credentials, const HostRailsRequest& request) {
  auto rails = std::make_unique<MeshRails>();
  rails->credentials_ = credentials;
  const Status opened = rails->open(request);
  if (!opened.ok()) LOG(kInfo, kBootstrap, "control: no rails: %s", opened.error().message.c_str());
  return opened.ok() && rails->count() > 1 ? std::move(rails) : nullptr;
}

Status MeshRails::open(const HostRailsRequest& request) {
  const std::vector<LocalRail> chosen = TRY(host_rails(request));
  const auto reaches = [&](const LocalRail& rail) { return is_at(rail.address, request.met_at); };
  if (chosen.size() < 2 || std::none_of(chosen.begin(), chosen.end(), reaches)) return {};
  for (const LocalRail& local : chosen) {
    Listener listener = TRY(listen_at(local, request.ports));
    published_.push_back({listener.address, local.fabric, 0});
    rails_.push_back({local.interface, std::move(listener)});
  }
  address_ = TRY(publish(published_));
  return {};
}

std::vector<MeshRails::Way> MeshRails::ways_to(const std::string& address) const {
  const auto theirs = parse_published(address);
  if (!theirs.ok() || are_of_one_host(published_, theirs.value())) return {};
  const auto paired = pair_rails({"this rank", published_}, {"the other one", theirs.value()});
  std::vector<Way> ways;
  if (!paired.ok() || paired.value().pairs.size() < 2) return ways;
  for (const RailPair& pair : paired.value().pairs) ways.push_back({pair.mine, theirs.value()[pair.theirs].address});
  return ways;
}

bool MeshRails::set_peers(const std::vector<std::string>& addresses) {
  ways_.clear();
  for (const std::string& address : addresses) ways_.push_back(address.empty() ? std::vector<Way>() : ways_to(address));
  return std::any_of(ways_.begin(), ways_.end(), [](const std::vector<Way>& ways) { return !ways.empty(); });
}

std::vector<size_t> MeshRails::rails_to(int32_t rank) const {
  std::vector<size_t> rails;
  for (const Way& way : ways_[static_cast<size_t>(rank)]) rails.push_back(way.rail);
  return rails;
}

Result<UniqueFd> MeshRails::dial(int32_t rank, size_t rail) {
  for (const Way& way : ways_[static_cast<size_t>(rank)]) {
    if (way.rail != rail) continue;
    UniqueFd socket = TRY(start_connect(way.to, {rails_[rail].listener.address, rails_[rail].name}));
    (void)set_tcp_options(socket.get(), {});  // the handshake is small messages as well
    return socket;
  }
  return Error{Code::kInternalError, "a rail that does not lead to rank " + std::to_string(rank)};
}

void MeshRails::adopt(int fd, size_t rail) {
  (void)set_tcp_options(fd, {});
  (void)bind_to_interface(fd, rails_[rail].name);
}

std::string MeshRails::rail_of(int fd) const {
  const std::string here = format_host(local_address(fd));
  for (const OwnRail& rail : rails_) {
    if (is_at(rail.listener.address, here)) return rail.name;
  }
  return here;
}

}  // namespace trestle
