#include "rendezvous/mesh_rails.h"

#include <algorithm>

#include "base/log.h"
#include "transport/rails/choice.h"
#include "transport/rails/pairing.h"

namespace trestle {
namespace {

bool is_at(const SocketAddress& address, const std::string& ip) {
  return format_host(address) == ip;
}

std::string interface_at(const std::vector<HostInterface>& interfaces, const std::string& ip) {
  for (const HostInterface& one : interfaces) {
    const auto here = [&ip](const InterfaceAddress& at) { return is_at(at.address, ip); };
    if (!one.loopback && std::any_of(one.addresses.begin(), one.addresses.end(), here)) return one.name;
  }
  return "";
}

Result<std::vector<LocalRail>> choose(const MeshRails::Options& options) {
  const std::vector<HostInterface> interfaces = TRY(read_interfaces());
  const std::string met = interface_at(interfaces, options.met_at);
  if (met.empty()) return std::vector<LocalRail>{};
  RailRequest request;
  // Nobody says that a mesh needs the rails of one dimension rather than another one's.
  request.interfaces = TRY(interfaces_of_all_dimensions(options.rails));
  request.filter = options.interfaces;
  request.family = TRY(parse_family(options.family));
  const auto is_met = [&met](const NamedInterface& one) { return one.name == met; };
  if (!request.interfaces.empty() && std::none_of(request.interfaces.begin(), request.interfaces.end(), is_met))
    request.interfaces.insert(request.interfaces.begin(), {met, 0});
  RailChoice choice = TRY(choose_rails(interfaces, request));
  const auto reaches = [&](const LocalRail& rail) { return is_at(rail.address, options.met_at); };
  if (std::none_of(choice.rails.begin(), choice.rails.end(), reaches)) return std::vector<LocalRail>{};
  return std::move(choice.rails);
}

}  // namespace

std::unique_ptr<MeshRails> MeshRails::create(const Options& options) {
  auto rails = std::make_unique<MeshRails>();
  const Status opened = rails->open(options);
  if (!opened.ok()) LOG(kInfo, kBootstrap, "control: no rails: %s", opened.error().message.c_str());
  return opened.ok() && rails->count() > 1 ? std::move(rails) : nullptr;
}

Status MeshRails::open(const Options& options) {
  credentials_ = options.credentials;
  const std::vector<LocalRail> chosen = TRY(choose(options));
  if (chosen.size() < 2) return {};
  for (const LocalRail& local : chosen) {
    ListenOptions at;
    at.interface_filter = "=" + local.interface;
    at.filter_from = "a rail";
    at.family = local.address.family();
    at.port_low = options.ports.low;
    at.port_high = options.ports.high;
    Listener listener = TRY(listen_tcp(at));
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
