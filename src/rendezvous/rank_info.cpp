#include "rendezvous/rank_info.h"

#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/fork.h"
#include "base/host.h"
#include "control_mesh/byte_text.h"
#include "transport/auth/crypto.h"
#include "transport/rails/rails_text.h"

namespace trestle {
namespace {

constexpr uint32_t kFormat = 4;
constexpr size_t kMaxText = 4096;

std::string version_text(uint32_t code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

Error difference(const RankInfo& info, const RankInfo& first, const std::string& what, const std::string& value,
                 const std::string& first_value) {
  return Error{Code::kInvalidUsage, rank_name(info) + " has " + what + value + ", " + rank_name(first) + " has " +
                                        what + first_value + "; it must be the same on all ranks"};
}

std::string shown(const std::string& value) {
  return value.empty() ? "(empty)" : value;
}

Result<std::string> shape_of_rails(const RankInfo& info) {
  const auto rails = parse_rails(info.rails);
  if (rails.ok()) return rails_shape(rails.value());
  return Error{rails.error().code, rank_name(info) + " has TRESTLE_RAILS=" + info.rails + ": " + rails.error().message};
}

// Interfaces and rates may differ, because hosts do.
Status compare_rails(const RankInfo& info, const RankInfo& first) {
  if (info.rails == first.rails || TRY(shape_of_rails(info)) == TRY(shape_of_rails(first))) return {};
  return Error{Code::kInvalidUsage, rank_name(info) + " has TRESTLE_RAILS=" + shown(info.rails) + ", " +
                                        rank_name(first) + " has TRESTLE_RAILS=" + shown(first.rails) +
                                        "; interfaces may differ, but for which dimensions there are some, and the "
                                        "transports of the others, must be the same on all ranks"};
}

Status compare(const RankInfo& info, const RankInfo& first) {
  if (info.version != first.version)
    return difference(info, first, "Trestle version ", version_text(info.version), version_text(first.version));
  const std::map<std::string, std::string> mine(info.agreed.begin(), info.agreed.end());
  const std::map<std::string, std::string> theirs(first.agreed.begin(), first.agreed.end());
  for (const auto& [name, value] : theirs) {
    const auto found = mine.find(name);
    if (found == mine.end()) return difference(info, first, name, " unset", "=" + shown(value));
    if (found->second != value) return difference(info, first, name + "=", shown(found->second), shown(value));
  }
  for (const auto& [name, value] : mine) {
    if (!theirs.contains(name)) return difference(info, first, name, "=" + shown(value), " unset");
  }
  TRY(compare_rails(info, first));
  if (info.topology_hash != first.topology_hash)
    return difference(info, first, "a topology (TRESTLE_TOPO_FILE, TRESTLE_DIMS) with hash ",
                      std::to_string(info.topology_hash), std::to_string(first.topology_hash));
  if (info.configuration_hash != first.configuration_hash)
    return difference(info, first, "a configuration with hash ", std::to_string(info.configuration_hash),
                      std::to_string(first.configuration_hash));
  return {};
}

uint64_t fresh_token() {
  uint64_t token = 0;
  random_bytes(std::as_writable_bytes(std::span(&token, 1)));
  // Without a source of random numbers: the process id, which differs between living processes of a host.
  if (token == 0) token = static_cast<uint64_t>(getpid()) << 32 | 1;
  return token;
}

std::string rank_name(int32_t rank, const std::string& host, uint32_t pid) {
  return "rank " + std::to_string(rank) + " (host " + host + ", pid " + std::to_string(pid) + ")";
}

}  // namespace

std::string encode(const RankInfo& info) {
  ByteWriter out;
  out.integer(kFormat).integer(info.rank).integer(info.version).integer(info.pid);
  out.text(info.place.hostname).text(info.place.host_id).integer(info.place.process_id);
  out.text(info.place.machine).integer(static_cast<uint32_t>(info.place.processors.size()));
  for (const uint64_t word : info.place.processors) out.integer(word);
  out.text(info.place.no_shared_memory);
  out.integer(info.configuration_hash).integer(info.topology_hash).text(info.rails);
  out.integer(static_cast<uint32_t>(info.addresses.size()));
  for (const auto& [name, address] : info.addresses) out.text(name).text(address);
  out.integer(static_cast<uint32_t>(info.agreed.size()));
  for (const auto& [name, value] : info.agreed) out.text(name).text(value);
  return out.take();
}

Result<RankInfo> decode_rank_info(const std::string& bytes) {
  const Error damaged{Code::kRemoteError, "the description that a rank sent of itself cannot be read (" +
                                              std::to_string(bytes.size()) + " bytes)"};
  if (bytes.size() > kMaxRankInfoBytes) return damaged;
  ByteReader in(bytes);
  RankInfo info;
  const auto format = in.integer<uint32_t>();
  info.rank = in.integer<int32_t>();
  info.version = in.integer<uint32_t>();
  info.pid = in.integer<uint32_t>();
  if (!in.ok() || format != kFormat || info.rank < 0) return damaged;
  info.place.hostname = in.text(kMaxText);
  info.place.host_id = in.text(kMaxText);
  info.place.process_id = in.integer<uint64_t>();
  info.place.machine = in.text(kMaxText);
  for (uint32_t left = in.count(8); left > 0 && in.ok(); --left) {
    info.place.processors.push_back(in.integer<uint64_t>());
  }
  info.place.no_shared_memory = in.text(kMaxText);
  info.configuration_hash = in.integer<uint64_t>();
  info.topology_hash = in.integer<uint64_t>();
  info.rails = in.text(kMaxText);
  for (uint32_t left = in.count(8); left > 0 && in.ok(); --left) {
    std::string name(in.text(kMaxText));
    info.addresses[std::move(name)] = in.text(kMaxText);
  }
  for (uint32_t left = in.count(8); left > 0 && in.ok(); --left) {
    std::string name(in.text(kMaxText));
    info.agreed.emplace_back(std::move(name), in.text(kMaxText));
  }
  if (!in.at_end()) return damaged;
  return info;
}

std::vector<uint64_t> process_lineage() {
  constexpr size_t kMost = 16;
  static constinit PerProcess<const std::vector<uint64_t>> lineage;
  return lineage.get([] {
    std::vector<uint64_t> tokens = {fresh_token()};
    if (const auto* parents = lineage.inherited())
      tokens.insert(tokens.end(), parents->begin(), parents->begin() + std::min(parents->size(), kMost - 1));
    return tokens;
  });
}

uint64_t process_token() {
  return process_lineage().front();
}

std::string rank_name(const RankInfo& info) {
  return rank_name(info.rank, info.place.hostname, info.pid);
}

std::string own_rank_name(int32_t rank) {
  return rank_name(rank, host_name(), static_cast<uint32_t>(::getpid()));
}

Status compare_configuration(const std::vector<RankInfo>& infos) {
  for (size_t r = 1; r < infos.size(); ++r) TRY(compare(infos[r], infos[0]));
  return {};
}

}  // namespace trestle
