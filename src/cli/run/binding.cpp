#include "cli/run/binding.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace trestle {
namespace {

// Holds the name of an abstract Unix socket: all processes of the network namespace see it, and it ends with its
// holder. False: another job has it. A claim that cannot be made for another reason counts.
bool claim_name(const std::string& name, std::vector<UniqueFd>& claims) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.data(), length, address.sun_path + 1);  // after a zero byte: an abstract name
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return errno != EADDRINUSE;
  claims.push_back(std::move(socket));
  return true;
}

// Sockets get ranks in proportion to their usable cores.
Binding to_sockets(size_t ranks, const std::vector<Core>& cores) {
  Binding binding;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Core place{cores[rank * cores.size() / ranks].socket, {}};
    for (const Core& core : cores) {
      if (core.socket == place.socket)
        place.processors.insert(place.processors.end(), core.processors.begin(), core.processors.end());
    }
    std::sort(place.processors.begin(), place.processors.end());
    binding.places.push_back(std::move(place));
  }
  return binding;
}

Binding to_cores(bool share, size_t ranks, const std::vector<Core>& cores, const std::string& claim) {
  const std::string counts = "ranks: " + std::to_string(ranks) + ", usable cores: " + std::to_string(cores.size());
  if (ranks > cores.size()) return {{}, counts + "; not bound", {}};
  Binding binding;
  std::vector<Core> taken;
  for (const Core& core : cores) {
    if (binding.places.size() == ranks) break;
    const bool free = claim_name(claim + std::to_string(core.processors.front()), binding.claims);
    (free ? binding.places : taken).push_back(core);
  }
  const size_t missing = ranks - binding.places.size();
  if (missing == 0) return binding;
  const std::string note = counts + ", taken by other jobs: " + std::to_string(taken.size());
  if (!share) return {{}, note + "; not bound", {}};
  binding.places.insert(binding.places.end(), taken.begin(), taken.begin() + static_cast<ptrdiff_t>(missing));
  binding.note = note + "; " + std::to_string(missing) + " shared";
  return binding;
}

}  // namespace

Result<Bind> parse_bind(const std::string& text) {
  if (text == "none") return Bind::kNone;
  if (text == "core") return Bind::kCore;
  if (text == "socket") return Bind::kSocket;
  return Error{Code::kInvalidArgument, "'" + text + "' is not none, core or socket"};
}

Binding bind_ranks(Bind bind, size_t ranks, const std::vector<Core>& cores, const std::string& claim) {
  if (bind == Bind::kNone) return {};
  return bind == Bind::kSocket ? to_sockets(ranks, cores) : to_cores(bind == Bind::kCore, ranks, cores, claim);
}

}  // namespace trestle
