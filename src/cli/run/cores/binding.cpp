#include "cli/run/cores/binding.h"

#include <algorithm>
#include <array>
#include <utility>

namespace trestle {
namespace {

constexpr std::array<std::pair<const char*, Bind>, 3> kNames = {
    {{"none", Bind::kNone}, {"core", Bind::kCore}, {"socket", Bind::kSocket}}};

std::string counted(size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Joins the cores of a socket to one place.
Core socket_place(const std::vector<Core>& cores, int socket) {
  Core place{socket, {}};
  for (const Core& core : cores) {
    if (core.socket != socket) continue;
    place.processors.insert(place.processors.end(), core.processors.begin(), core.processors.end());
  }
  std::sort(place.processors.begin(), place.processors.end());
  return place;
}

// Sockets get ranks in proportion to their usable cores.
Binding to_sockets(size_t ranks, const std::vector<Core>& cores) {
  Binding binding;
  for (size_t rank = 0; rank < ranks; ++rank) {
    binding.places.push_back(socket_place(cores, cores[rank * cores.size() / ranks].socket));
  }
  return binding;
}

Binding to_cores(bool asked, size_t ranks, const std::vector<Core>& cores, CoreClaims& claims) {
  Binding binding;
  binding.asked = asked;
  if (ranks > cores.size()) {
    binding.note = counted(ranks, "rank") + " on " + counted(cores.size(), "usable core") + ": not bound";
    return binding;
  }
  std::vector<Core> taken;
  for (const Core& core : cores) {
    if (binding.places.size() == ranks) break;
    (claims.claim(core.processors.front()) ? binding.places : taken).push_back(core);
  }
  const size_t missing = ranks - binding.places.size();
  if (missing == 0) return binding;
  const std::string others =
      "other jobs are bound to " + std::to_string(taken.size()) + " of " + counted(cores.size(), "usable core");
  if (!asked) {
    claims.release_all();
    return {{}, others + ": not bound", false};
  }
  for (size_t i = 0; i < missing; ++i) binding.places.push_back(taken[i]);
  binding.note = others + ": " + counted(missing, "rank") + " of this one share" + (missing == 1 ? "s" : "") + " them";
  return binding;
}

}  // namespace

Result<Bind> parse_bind(const std::string& text) {
  for (const auto& [name, bind] : kNames) {
    if (text == name) return bind;
  }
  return Error{Code::kInvalidArgument, "'" + text + "' is not none, core or socket"};
}

Binding bind_ranks(Bind bind, size_t ranks, const std::vector<Core>& cores, CoreClaims& claims) {
  if (bind == Bind::kNone) return {};
  if (bind == Bind::kSocket) return to_sockets(ranks, cores);
  return to_cores(bind == Bind::kCore, ranks, cores, claims);
}

}  // namespace trestle
