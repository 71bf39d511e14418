// TRESTLE_ALGO: any text gives either valid rules or an error with a sentence. Rules that a topology accepts never fail
// for lack of an algorithm without an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/catalog.h"
#include "base/check.h"
#include "sched/model/algo_rules.h"
#include "sched/select/select.h"

using namespace trestle;

namespace {

const Topology& grid() {
  static const Topology topology = [] {
    Topology result;
    result.dimensions.resize(2);
    result.dimensions[0].size = 3;
    result.dimensions[1].size = 2;
    return result;
  }();
  return topology;
}

void check_rules(const AlgorithmRules& rules) {
  for (const AlgorithmRules::Entry& entry : rules.entries()) {
    CHECK(entry.low < entry.high, "an empty range of sizes was accepted");
    CHECK(!entry.rule.algorithms.empty(), "a rule without an algorithm was accepted");
    for (uint16_t algorithm : entry.rule.algorithms) {
      CHECK(algorithm < algorithms().size(), "a rule names an algorithm that does not exist");
    }
    const AlgorithmRules::Entry* found = rules.find(entry.collective.value_or(Collective::kAllReduce), entry.low);
    CHECK(found != nullptr || !entry.collective, "an entry is not found by what it is for");
  }
}

void check_selection(const SelectionConfig& config, Collective collective, uint64_t bytes) {
  SelectionRequest request;
  request.collective = collective;
  request.bytes = bytes;
  request.element_bytes = 4;
  const Result<Schedule> schedule = select_schedule(request, grid(), config);
  if (!schedule.ok()) {
    CHECK(!schedule.error().message.empty(), "an error without a sentence");
    return;
  }
  uint64_t sum = 0;
  for (const ChunkSchedule& chunk : schedule.value().chunks) sum += chunk.bytes;
  CHECK(sum == schedule.value().bytes, "chunks do not add up to the operation");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SelectionConfig config;
  config.algo.assign(reinterpret_cast<const char*>(data), size);
  config.chunks = 2;
  const Result<AlgorithmRules> rules = AlgorithmRules::parse(config.algo);
  const Status valid = validate(config, grid());
  if (!rules.ok()) {
    CHECK(rules.error().code == Code::kInvalidArgument, "a malformed rule has a code of its own");
    CHECK(!rules.error().message.empty(), "an error without a sentence");
    CHECK(!valid.ok(), "rules that cannot be parsed are valid");
    return 0;
  }
  check_rules(rules.value());
  if (!valid.ok()) return 0;
  for (Collective collective : {Collective::kAllReduce, Collective::kBroadcast}) {
    for (uint64_t bytes : {24u, 1u << 17}) check_selection(config, collective, bytes);
  }
  return 0;
}
