#include "cli/topo/topo_ranks.h"

#include "base/cpu/numa.h"
#include "base/hash.h"
#include "base/host.h"
#include "cli/job.h"

namespace trestle {
namespace {

RankLetter own_letter(const Config& config, const Machine& machine) {
  const std::string identity = config.host_id.empty() ? host_identity() : config.host_id;
  std::string summary = summary_text(machine);
  for (const MachineInterface& one : machine.interfaces) {
    if (one.rail) summary += "; rail " + one.interface.name + " " + rate_words(one.rate_bps);
  }
  return {machine.hostname, std::to_string(Hasher().string(identity).digest()), machine.boot_id,
          processors_text(machine.usable), summary};
}

}  // namespace

Result<RanksOfJob> gather_ranks(const Config& config, const Machine& machine) {
  int ranks = 0;
  TRY(said(trestleLauncherInfo(nullptr, &ranks, nullptr), nullptr));
  if (ranks < 2) return RanksOfJob{};
  const Job job = TRY(Job::join(flat_topology(ranks)));
  std::vector<RankLetter> letters;
  for (const std::string& text : TRY(job.all_gather(encode(own_letter(config, machine)))))
    letters.push_back(decode_letter(text));
  RanksOfJob gathered = ranks_from(letters);
  gathered.rank = job.rank();
  return gathered;
}

}  // namespace trestle
