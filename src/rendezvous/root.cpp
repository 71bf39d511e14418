// Finds the root of a rendezvous, and starts it in rank 0's process.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "rendezvous/meeting.h"
#include "rendezvous/pmi/launcher_place.h"
#include "rendezvous/pmi/pmix_client.h"
#include "rendezvous/root_lookup.h"
#include "rendezvous/serve_root.h"
#include "rendezvous/server/server.h"

namespace trestle {
namespace {

// MASTER_PORT may belong to the launcher itself (torchrun's store listens there). Rank 0 takes the first free one of
// these ports; the other ranks try all.
constexpr uint16_t kMasterPorts = 8;
constexpr uint16_t kDefaultMasterPort = 29500;  // torchrun's

std::vector<std::byte> job_secret(const std::string& text) {
  if (text.empty()) return {};
  return derive_secret(std::as_bytes(std::span(text)), "communicator");
}

// Of the job that this process belongs to; "": nothing says so.
std::string job_name(const BootstrapConfig& config) {
  return config.job.empty() ? config.launcher.job : config.job;
}

bool names_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const Result<HostAddress> address = parse_host(host);
  return address.ok() && address.value().address().is_loopback();
}

std::string place_of_id(const std::string& addresses) {
  return "the rendezvous of the unique id at " + addresses;
}

Result<Root> root_of_id(const BootstrapConfig& config) {
  const UniqueId id = TRY(decode(config.id));
  TRY(check_reach(id, "the unique id was made"));
  Root root;
  root.name = addresses_text(id);
  root.candidates = nearest_first(id.addresses);
  root.job = id.job;
  root.secret.assign(id.secret.begin(), id.secret.end());
  root.own_port = true;
  root.is_local = std::ranges::all_of(id.addresses, &SocketAddress::is_loopback);
  root.place = place_of_id(root.name);
  return root;
}

struct NamedPlace {
  HostPort at;
  std::string variable;  // the variable that names the place, for error messages
  std::string port_variable;
  uint16_t ports = 1;
  std::string job;                // distinguishes this place from another job's at the same address
  std::vector<std::byte> secret;  // the secret that came with the place; empty: TRESTLE_SECRET's, or none
  Addresses own_addresses = {};   // chosen on rank 0's host, which listens only there; empty: `at` is to be resolved
};

// The place that the launcher's processes exchange.
Result<NamedPlace> place_of_launcher(const BootstrapConfig& config, const WaitLimit& limit) {
  const int64_t number = config.launcher.space.rank;
  if (config.rank == 0 && number != 0)
    return Error{Code::kInvalidUsage,
                 "rank 0 of a communicator without a unique id must be the process that the launcher counts as 0, and "
                 "this one is " +
                     std::to_string(number) +
                     ": use the launcher's ranks (trestleLauncherInfo), or set MASTER_ADDR and MASTER_PORT, the same "
                     "on all ranks"};
  const UniqueId id = TRY(launcher_place(config, limit));
  const SocketAddress& at = id.addresses.front();
  NamedPlace place{{HostAddress(at).text(), at.port()},
                   "the launcher's exchange",
                   "TRESTLE_PORT_RANGE",
                   kMasterPorts,
                   to_hex(id.job),
                   {},
                   id.addresses};
  // Rank 0 alone looks for a free port, and in its own range, which may be another one.
  const PortRange& range = config.port_range;
  if (config.rank == 0 && range.low <= at.port() && at.port() <= range.high)
    place.ports = static_cast<uint16_t>(std::min<int>(kMasterPorts, range.high - at.port() + 1));
  place.secret.assign(id.secret.begin(), id.secret.end());
  return place;
}

Error no_place(const BootstrapConfig& config, const Status& pmix) {
  const std::string& source = config.launcher.source;
  const std::string cause = source.empty() ? "this process was started alone (no launcher's variables are set)"
                                           : "the variables of " + source + " do not name the host of rank 0" +
                                                 (pmix.ok() ? std::string() : ", and " + pmix.error().message);
  return {Code::kInvalidUsage,
          "the " + std::to_string(config.nranks) + " ranks of this communicator have no meeting point: it has no " +
              "unique id, and " + cause +
              "; start the ranks with trestle run, torchrun, mpirun or srun, or set on all of them MASTER_ADDR and "
              "MASTER_PORT, TRESTLE_COMM_ID=host:port or TRESTLE_STORE=file:PATH (docs/launching.md)"};
}

Result<NamedPlace> named_place(const BootstrapConfig& config, const WaitLimit& limit) {
  TRY(check_place(config));
  const Launcher& launcher = config.launcher;
  if (!config.communicator_id.empty()) {
    const HostPort at = parse_host_port(config.communicator_id).value();
    return NamedPlace{at, "TRESTLE_COMM_ID", "TRESTLE_COMM_ID", 1, job_name(config), {}};
  }
  const bool named = !launcher.master_address.empty() && !launcher.address_concluded;
  const bool over_pmix = launcher.space.kind == LauncherSpace::Kind::kPmix;
  const Status pmix = !named && over_pmix ? pmix_probe() : Status();
  if (!named && launcher.space.kind != LauncherSpace::Kind::kNone && pmix.ok()) return place_of_launcher(config, limit);
  if (launcher.master_address.empty()) return no_place(config, pmix);
  if (!pmix.ok())
    LOG(kInfo, kBootstrap, "the ranks meet at %s and not through the launcher: %s", launcher.master_address.c_str(),
        pmix.error().message.c_str());
  const uint16_t port = launcher.master_port.value_or(kDefaultMasterPort);
  return NamedPlace{{launcher.master_address, port}, "MASTER_ADDR", "MASTER_PORT", kMasterPorts, job_name(config), {}};
}

// Completes the id with the listeners' addresses. left_out: what speaks against the other interfaces.
Result<UniqueId> serve_id(std::vector<Listener> listeners, UniqueId id, const std::string& left_out,
                          const BootstrapConfig& config, int64_t timeout_ns) {
  for (const Listener& listener : listeners) id.addresses.push_back(listener.address);
  if (std::ranges::all_of(id.addresses, &SocketAddress::is_loopback)) id.network = own_network();
  RendezvousOptions server;
  server.credentials = {{id.secret.begin(), id.secret.end()}, id.job, 0};
  server.place = place_of_id(addresses_text(id));
  if (!left_out.empty()) server.place += " (of the host's other interfaces, " + left_out + ")";
  constexpr int64_t kDay = 86400 * kSecond;
  server.deadline_ns = monotonic_clock().now_ns() + (timeout_ns > 0 ? timeout_ns : kDay);
  server.handshake_timeout_ns = config.handshake_timeout_ns;
  TRY(start_rendezvous(std::move(listeners), server));
  return id;
}

}  // namespace

JobId job_at(uint16_t port, const std::string& job_name) {
  return job_id("port " + std::to_string(port) + " of " + job_name);
}

Status check_place(const BootstrapConfig& config) {
  if (!config.communicator_id.empty()) {
    const Result<HostPort> at = parse_host_port(config.communicator_id);
    if (!at.ok()) return Error{at.error().code, "TRESTLE_COMM_ID: " + at.error().message};
  } else if (!config.store.empty()) {
    TRY(store_path(config.store));
  } else if (!config.launcher.problem.empty()) {
    return Error{Code::kInvalidUsage, config.launcher.problem};
  }
  return {};
}

Result<Root> find_root(const BootstrapConfig& config, const WaitLimit& limit) {
  if (!is_zero(config.id)) return root_of_id(config);
  const NamedPlace place = TRY(named_place(config, limit));
  Root root;
  root.name = format_host_port(place.at);
  const bool one = place.variable == place.port_variable;
  root.place =
      "the rendezvous at " + root.name + " (" + place.variable + (one ? ")" : ", " + place.port_variable + ")");
  const AddressFamily family = TRY(parse_family(config.family));
  const Result<Addresses> resolved =
      place.own_addresses.empty() ? resolve_before(root.name, family, limit) : nearest_first(place.own_addresses);
  if (!resolved.ok()) return Error{resolved.error().code, place.variable + ": " + resolved.error().message};
  root.candidates = at_ports(resolved.value(), place.at.port, place.ports);
  if (config.rank != 0 && !parse_host(place.at.host).ok())
    root.lookup = std::make_shared<RootLookup>(place.at, family, place.ports);
  root.job = job_at(place.at.port, place.job);
  root.job_name = place.job;
  root.secret = config.secret.empty() ? place.secret : job_secret(config.secret);
  root.is_local = names_loopback(place.at.host);
  const bool loopback = !place.own_addresses.empty() || root.is_local;
  if (root.secret.empty() && !loopback && config.rank == 0)
    LOG(kWarn, kBootstrap,
        "the rendezvous at %s is open: there is no secret, so anybody who reaches the port can join; set "
        "TRESTLE_SECRET to the same value on all ranks",
        root.name.c_str());
  if (config.rank != 0) return root;
  TRY(serve_root(root, {resolved.value(), place.at.port, place.ports, loopback, place.port_variable}, config, limit));
  return root;
}

Result<UniqueIdBytes> make_unique_id(const BootstrapConfig& config, int64_t timeout_ns) {
  TRY(handshake_probe());
  std::string left_out;
  std::vector<Listener> listeners = TRY(listen_on_each_rail(config, left_out));
  UniqueId id;
  random_bytes(id.job);
  random_bytes(id.secret);
  return encode(TRY(serve_id(std::move(listeners), id, left_out, config, timeout_ns)));
}

}  // namespace trestle
