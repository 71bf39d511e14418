#include "rendezvous/pmi/launcher_place.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "rendezvous/meeting.h"
#include "rendezvous/pmi/pmi_client.h"
#include "rendezvous/pmi/pmix_client.h"
#include "transport/auth/crypto.h"

namespace trestle {
namespace {

std::string to_text(const UniqueIdBytes& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Result<UniqueId> from_text(const std::string& text) {
  UniqueIdBytes bytes{};
  bool good = text.size() == 2 * bytes.size();
  for (size_t i = 0; good && i < bytes.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    bytes[i] = static_cast<std::byte>(good ? high * 16 + low : 0);
  }
  Result<UniqueId> id = good ? decode(bytes) : Error{Code::kRemoteError, "it is not an address"};
  if (id.ok()) return id;
  return Error{Code::kRemoteError,
               "the launcher returned something other than the address that its rank 0 stored there (" +
                   id.error().message + "): do all processes use the same version of Trestle?"};
}

// The first address's port is free now, and counts for all. The server starts later, and takes one of the next ports if
// another program was faster.
Result<std::string> new_place(const BootstrapConfig& config) {
  std::string left_out;
  const std::vector<Listener> probes = TRY(listen_on_each_rail(config, left_out));
  UniqueId id;
  random_bytes(id.job);
  random_bytes(id.secret);
  for (const Listener& probe : probes) {
    id.addresses.push_back(probe.address);
    id.addresses.back().set_port(probes.front().address.port());
  }
  if (std::ranges::all_of(id.addresses, &SocketAddress::is_loopback)) id.network = own_network();
  if (!left_out.empty()) LOG(kInfo, kBootstrap, "no meeting place: %s", left_out.c_str());
  return to_text(TRY(encode(id)));
}

Result<UniqueId> exchange(const BootstrapConfig& config, const WaitLimit& limit) {
  const LauncherSpace& space = config.launcher.space;
  const std::string mine = space.rank == 0 ? TRY(new_place(config)) : std::string();
  const bool pmi = space.kind == LauncherSpace::Kind::kPmi;
  const std::string text = pmi ? TRY(exchange_over_pmi(space, mine, limit)) : TRY(exchange_over_pmix(mine, limit));
  const UniqueId id = TRY(from_text(text));
  LOG(kInfo, kBootstrap, "the launcher's processes meet at %s, exchanged over %s", addresses_text(id).c_str(),
      pmi ? "PMI" : "PMIx");
  TRY(check_reach(id, "the launcher's processes meet at an address"));
  return id;
}

struct Once {
  Mutex mutex;
  std::optional<Result<UniqueId>> place TRESTLE_GUARDED_BY(mutex);
};

// A forked child inherits this from its parent.
constinit PerProcess<Once> exchanged;

}  // namespace

Result<UniqueId> launcher_place(const BootstrapConfig& config, const WaitLimit& limit) {
  if (exchanged.inherited() != nullptr && exchanged.current() == nullptr)
    return Error{
        Code::kInvalidUsage,
        "this process was forked by one that has made the exchange, and the launcher knows only that one: give the "
        "communicators of a forked child a unique id (trestleGetUniqueId), or set MASTER_ADDR and MASTER_PORT"};
  Once& once = exchanged.get();
  while (!once.mutex.try_lock()) TRY(pause_before(5'000'000, limit));  // another thread does the exchange
  const bool first = !once.place;
  if (first) once.place = exchange(config, limit);
  Result<UniqueId> place = *once.place;
  once.mutex.unlock();
  if (first || place.ok()) return place;
  return Error{Code::kInvalidUsage,
               "the exchange with the launcher has failed before and cannot be repeated: " + place.error().message};
}

}  // namespace trestle
