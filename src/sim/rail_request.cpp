#include "sim/rail_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr int64_t kMostTimeNs = 1'000'000'000'000'000;  // 11 days
constexpr int64_t kMostLatencyNs = 1'000'000'000;       // as in a topology file
constexpr int64_t kMostBurstBytes = int64_t{1} << 30;
constexpr double kLeastRate = 1e-6;
constexpr double kMostRate = 1000;

struct ChangeName {
  std::string_view name;
  SimRailChange change;
};
constexpr ChangeName kChanges[] = {{"down", SimRailChange::kDown},
                                   {"up", SimRailChange::kUp},
                                   {"drop", SimRailChange::kDrop},
                                   {"pass", SimRailChange::kPass},
                                   {"rate", SimRailChange::kRate}};

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Result<uint64_t> time_of(std::string_view item, std::string_view text, int64_t most_ns) {
  const Result<int64_t> time_ns = parse_duration_ns(text);
  if (!time_ns.ok()) return invalid_argument(quoted(item) + ": " + time_ns.error().message);
  if (time_ns.value() > most_ns)
    return invalid_argument(quoted(item) + ": " + std::string(text) + " is more than " + duration_text(most_ns));
  return static_cast<uint64_t>(time_ns.value());
}

Result<uint64_t> burst_of(std::string_view item, std::string_view text) {
  const Result<int64_t> bytes = parse_bytes(text);
  if (!bytes.ok()) return invalid_argument(quoted(item) + ": " + bytes.error().message);
  if (bytes.value() < 0 || bytes.value() > kMostBurstBytes)
    return invalid_argument(quoted(item) + ": a burst has 0 to 1G bytes, not " + std::string(text));
  return static_cast<uint64_t>(bytes.value());
}

// A rate of 0 is an error: the rail would be dead, and no rank would ever notice.
Result<uint64_t> rate_ppm(std::string_view item, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (!number || !(value >= kLeastRate && value <= kMostRate)) {
    return invalid_argument(
        quoted(item) + ": " + quoted(text) +
        " is no part of a rail's rate: it must be a number from 0.000001 to 1000, such as 0.1; a rail that "
        "carries nothing is down@TIME or drop@TIME");
  }
  return static_cast<uint64_t>(std::llround(value * 1e6));
}

Result<SimRailFault> change_of(std::string_view item, size_t at) {
  const std::string_view name = item.substr(0, at);
  const auto* const known = std::ranges::find(kChanges, name, &ChangeName::name);
  if (known == std::end(kChanges)) {
    return invalid_argument(
        quoted(item) +
        " is nothing that can happen to a rail; there are down@TIME, up@TIME, drop@TIME, pass@TIME and "
        "rate@TIME=FRACTION");
  }
  std::string_view time = item.substr(at + 1);
  SimRailFault fault;
  fault.change = known->change;
  if (known->change == SimRailChange::kRate) {
    const size_t equals = time.find('=');
    if (equals == std::string_view::npos)
      return invalid_argument(quoted(item) + " has no rate: rate@0.3=0.1 is a tenth from 0.3 s on");
    fault.rate_ppm = TRY(rate_ppm(item, time.substr(equals + 1)));
    time = time.substr(0, equals);
  }
  fault.at_ns = TRY(time_of(item, time, kMostTimeNs));
  return fault;
}

Status read_item(std::string_view item, SimRailRequest& request) {
  const size_t at = item.find('@');
  if (at != std::string_view::npos) {
    request.changes.push_back(TRY(change_of(item, at)));
  } else if (item.starts_with("latency=")) {
    request.latency_ns = TRY(time_of(item, item.substr(8), kMostLatencyNs));
  } else if (item.starts_with("jitter=")) {
    request.most_jitter_ns = TRY(time_of(item, item.substr(7), kMostLatencyNs));
  } else if (item.starts_with("burst=")) {
    request.burst_bytes = TRY(burst_of(item, item.substr(6)));
  } else {
    return invalid_argument(
        quoted(item) +
        " says nothing of a rail; there are latency=TIME, jitter=TIME, burst=BYTES, down@TIME, up@TIME, drop@TIME, "
        "pass@TIME and rate@TIME=FRACTION");
  }
  return {};
}

Error no_such_rail(const std::string& name, const std::vector<SimLink>& links) {
  std::vector<std::string_view> names;
  for (const SimLink& link : links) {
    for (const SimRail& rail : link.rails) {
      if (std::ranges::find(names, rail.name) == names.end()) names.push_back(rail.name);
    }
  }
  if (names.empty())
    return invalid_argument(quoted(name) + " is no rail of this topology: its dimensions name no rails");
  return unknown_name(name, "a rail of this topology", names);
}

}  // namespace

Result<SimRailRequest> parse_sim_rail(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size()) {
    return invalid_argument(quoted(text) +
                            " must have the name of a rail and what happens to it: eth1:down@0.5,up@1.2");
  }
  SimRailRequest request;
  request.interface = text.substr(0, colon);
  for (const std::string& item : split(std::string_view(text).substr(colon + 1), ',')) TRY(read_item(item, request));
  return request;
}

Status use_sim_rails(const std::vector<SimRailRequest>& requests, std::vector<SimLink>& links, SimFaults& faults) {
  for (const SimRailRequest& request : requests) {
    bool found = false;
    for (size_t d = 0; d < links.size(); ++d) {
      for (size_t i = 0; i < links[d].rails.size(); ++i) {
        SimRail& rail = links[d].rails[i];
        if (rail.name != request.interface) continue;
        found = true;
        rail.latency_ns = request.latency_ns.value_or(rail.latency_ns);
        rail.most_jitter_ns = request.most_jitter_ns.value_or(rail.most_jitter_ns);
        rail.burst_bytes = request.burst_bytes.value_or(rail.burst_bytes);
        for (SimRailFault change : request.changes) {
          change.dimension = static_cast<uint8_t>(d);
          change.rail = static_cast<uint8_t>(i);
          faults.rails.push_back(change);
        }
      }
    }
    if (!found) return no_such_rail(request.interface, links);
  }
  return {};
}

}  // namespace trestle
