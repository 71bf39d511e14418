#include "rendezvous/rank_info.h"

#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/fork.h"
#include "base/host.h"
#include "base/text/byte_text.h"
#include "transport/auth/crypto.h"
#include "transport/rails/rails_text.h"

namespace trestle {
namespace {

constexpr uint32_t kFormat = 5;
constexpr size_t kMaxText = 4096;

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
  out.integer(kFormat).integer(info.rank).integer(info.pid);
  out.text(info.place.hostname).text(info.place.host_id).integer(info.place.process_id);
  out.text(info.place.machine).integer(static_cast<uint32_t>(info.place.processors.size()));
  for (const uint64_t word : info.place.processors) out.integer(word);
  out.text(info.place.no_shared_memory);
  out.integer(static_cast<uint32_t>(info.addresses.size()));
  for (const auto& [name, address] : info.addresses) out.text(name).text(address);
  write_said(out, info.agreed);
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
  for (uint32_t left = in.count(8); left > 0 && in.ok(); --left) {
    std::string name(in.text(kMaxText));
    info.addresses[std::move(name)] = in.text(kMaxText);
  }
  info.agreed = read_said(in, kMaxText);
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

Result<Fact> rails_fact(const std::string& rails) {
  const auto read = parse_rails(rails);
  if (!read.ok()) return Error{read.error().code, "TRESTLE_RAILS=" + rails + ": " + read.error().message};
  return Fact{"TRESTLE_RAILS", rails_shape(read.value()), rails,
              "interfaces may differ, but for which dimensions there are some, and the transports of the others, must "
              "be the same on all ranks"};
}

Status compare_configuration(const std::vector<RankInfo>& infos) {
  std::vector<Said> said;
  std::vector<std::string> names;
  for (const RankInfo& info : infos) {
    said.push_back(info.agreed);
    names.push_back(rank_name(info));
  }
  return compare_said("", said, names);
}

}  // namespace trestle
