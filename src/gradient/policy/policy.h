// What a policy of the training step is: a row with a pure planner. Value types, any thread.
//
// To add a policy, add its file and its row in policies.cpp. The command, `auto` and the tests read the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gradient/deft/preserver.h"
#include "gradient/network_cost.h"
#include "gradient/plan.h"
#include "gradient/timeline.h"
#include "gradient/workload.h"

namespace trestle {

// What a policy may do to the training itself, beyond the order of messages. Bits.
enum GradientLiberty : uint32_t {
  kLibertyNone = 0,
  kLibertyStale = 1,     // an update may use gradients of earlier steps
  kLibertyCompress = 2,  // only the largest elements of gradients travel; the others are added in later steps
};

// What the words behind a policy's name say. Each policy reads its own members.
struct PolicyArguments {
  uint64_t bytes = 0;                        // of a buffer or a part
  uint32_t count = 0;                        // of tensors or of trials
  double negotiation_s = 0;                  // priority: per part
  bool tuned = false;                        // dear: search for the bytes
  bool shared = false;                       // split_optimal: the same groups in both passes
  GatherIssue gather = GatherIssue::kEager;  // dear
  double ratio = 0;                          // topk: the part that travels; 0: the largest that hides
};

struct StepPlanRequest {
  const GradientWorkload& workload;  // at least one tensor
  const GradientLink& link;
  PolicyArguments arguments;
  uint32_t liberties = kLibertyNone;  // that auto may take
  // Of each link beside the first: the time of a message on it over its time on the first one (DeFT's mu), at least 1.
  // Empty: one link. Only deft uses them.
  std::vector<double> link_ratios = {};
  // How the loss answers to merged updates, for policies that merge them. Nothing: they ignore the loss.
  std::optional<PreserverModel> loss = {};
  // What messages between two workers cost, and how many workers there are. Only topk uses it, and needs it.
  std::optional<NetworkModel> network = {};
};

// Of a policy that compresses.
struct CompressedStep {
  double ratio = 1;        // the part of the elements that travels
  std::string collective;  // to_string of the SparseCollective
  double selection_s = 0;  // compute time to select them, in iteration_s
};

// A plan with what it is predicted to do.
struct PlannedStep {
  std::string policy;  // the name with its arguments; of auto: of the policy it took
  GradientPlan plan;
  StepTime time;
  double updates_per_iteration = 1;
  uint32_t age = 0;                     // the greatest age of gradients in an update, in steps
  std::vector<uint32_t> batches = {1};  // steps whose gradients an update sums, for each update; then repeating
  std::optional<PreserverRatio> loss;   // what merging does to the loss, if the request has a model
  std::optional<CompressedStep> compressed;
};

struct GradientPolicy {
  std::string_view name;
  std::string_view syntax;   // of the words behind it, for people: "[:BYTES]"
  std::string_view summary;  // one line, with the source
  // Reads the words behind the name, without colons. Errors (kInvalidArgument) are a sentence without the name.
  Result<PolicyArguments> (*parse)(std::span<const std::string> words);
  Result<PlannedStep> (*plan)(const StepPlanRequest& request);
  uint32_t liberties = kLibertyNone;  // that it takes
  // Variants that `all` and `auto` try: words with colons; "": the defaults.
  std::span<const std::string_view> variants;
  bool by_sizes = false;  // its plan follows from the tensors' sizes alone
};

// A plan with its time.
PlannedStep timed(GradientPlan plan, const StepPlanRequest& request);

}  // namespace trestle
