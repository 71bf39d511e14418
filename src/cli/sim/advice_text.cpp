#include "cli/sim/advice_text.h"

#include "base/text/json.h"
#include "base/text/value_text.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

double gbps(const Dimension& dimension) {
  return static_cast<double>(dimension.bandwidth_mbps) / 1000;
}

std::string dimensions_line(const Topology& topology) {
  std::string sizes;
  std::string speeds;
  for (const Dimension& dimension : topology.dimensions) {
    sizes += (sizes.empty() ? "" : "x") + std::to_string(dimension.size);
    speeds += line("%s%g", speeds.empty() ? "" : ", ", gbps(dimension));
  }
  return sizes + " ranks, " + speeds + " Gb/s per rank\n";
}

std::string pairs_text(const Advice& advice) {
  std::string text = "  dimensions   r      by the bytes       paper's rule       just enough for the outer one\n";
  for (const PairAdvice& pair : advice.pairs) {
    const Dimension& outer = advice.topology.dimensions[pair.inner + 1u];
    text += line("  %d and %d      %-6.3f %-18s %-18s %.1f Gb/s of %g\n", pair.inner + 1, pair.inner + 2, pair.r,
                 to_string(pair.exact), to_string(pair.paper), pair.just_enough_gbps, gbps(outer));
  }
  return text;
}

std::string policies_text(const Advice& advice) {
  std::string text = "  policy        time us  of ideal  recovered   used of each dimension (Gb/s wasted)\n";
  for (const PolicyAdvice& policy : advice.policies) {
    text += line("  %-10s %10.1f %8.2fx %9.1f%%  ", policy.policy.c_str(), policy.time_ns / 1000, policy.over_ideal,
                 100 * policy.recovered);
    for (const LinkAdvice& link : policy.links)
      text += line("  %.1f%% (%.0f)", 100 * link.utilization, link.wasted_gbps);
    text += '\n';
  }
  return text;
}

std::string marginal_text(const Advice& advice) {
  std::string text = "  one more Gb/s on dimension";
  for (const MarginalAdvice& each : advice.marginal) text += line(" %9d", each.dimension + 1);
  text += "\n  baseline saves, ns        ";
  for (const MarginalAdvice& each : advice.marginal) text += line(" %9.1f", each.baseline_saved_ns);
  text += line("\n  %-10s saves, ns      ", advice.policies[advice.best].policy.c_str());
  for (const MarginalAdvice& each : advice.marginal) text += line(" %9.1f", each.best_saved_ns);
  text += "\n  fluid bound falls by, ns  ";
  for (const MarginalAdvice& each : advice.marginal) text += line(" %9.1f", each.bound_saved_ns);
  const MarginalAdvice& baseline = advice.marginal[advice.helps_baseline];
  const MarginalAdvice& best = advice.marginal[advice.helps_best];
  text += line("\n  helps most: the baseline on dimension %d, ", baseline.dimension + 1);
  text += advice.policies[advice.best].policy;
  return text + (advice.alike ? " on every dimension about equally\n" : line(" on dimension %d\n", best.dimension + 1));
}

Json pair_json(const PairAdvice& pair) {
  return Json::object({{"inner", pair.inner + 1},
                       {"outer", pair.inner + 2},
                       {"r", rounded(pair.r)},
                       {"by_bytes", to_string(pair.exact)},
                       {"paper", to_string(pair.paper)},
                       {"paper_ratio", rounded(pair.paper_ratio)},
                       {"just_enough_gbps", rounded(pair.just_enough_gbps)}});
}

Json policy_json(const PolicyAdvice& policy) {
  const auto links = json_list(policy.links, [](const LinkAdvice& link) {
    return Json::object({{"utilization", rounded(link.utilization)}, {"wasted_gbps", rounded(link.wasted_gbps)}});
  });
  return Json::object({{"sched", policy.policy},
                       {"time_ns", rounded(policy.time_ns)},
                       {"utilization", rounded(policy.utilization)},
                       {"over_ideal", rounded(policy.over_ideal)},
                       {"recovered", rounded(policy.recovered)},
                       {"dimensions", links}});
}

Json advised_system_json(const NamedAdvice& named) {
  const Advice& advice = named.advice;
  const auto marginal = json_list(advice.marginal, [](const MarginalAdvice& each) {
    return Json::object({{"dimension", each.dimension + 1},
                         {"baseline_saved_ns", rounded(each.baseline_saved_ns)},
                         {"best_saved_ns", rounded(each.best_saved_ns)},
                         {"bound_saved_ns", rounded(each.bound_saved_ns)}});
  });
  return Json::object({{"system", named.system},
                       {"ideal_time_ns", rounded(advice.ideal_time_ns)},
                       {"fluid_bound_ns", rounded(advice.fluid_bound_ns)},
                       {"pairs", json_list(advice.pairs, pair_json)},
                       {"policies", json_list(advice.policies, policy_json)},
                       {"best", advice.policies[advice.best].policy},
                       {"one_more_gbps", marginal},
                       {"helps_baseline", advice.helps_baseline + 1},
                       {"helps_best", advice.helps_best + 1},
                       {"alike", advice.alike}});
}

}  // namespace

std::string advice_text(const std::vector<NamedAdvice>& all) {
  std::string text;
  for (const NamedAdvice& named : all) {
    const Advice& advice = named.advice;
    if (text.empty()) {
      text =
          "all-reduce of " + bytes_text(static_cast<int64_t>(advice.bytes)) + " in " + std::to_string(advice.chunks) +
          " chunks, in the paper's model\n" +
          "r: busy time of the outer dimension over that of the inner one, under the baseline; below 1 the outer one "
          "is over-provisioned\n";
    }
    text += "\n" + named.system + ": " + dimensions_line(advice.topology);
    if (!advice.pairs.empty()) text += pairs_text(advice);
    text += policies_text(advice) + marginal_text(advice);
  }
  return text;
}

std::string advice_json(const std::vector<NamedAdvice>& all) {
  if (all.empty()) return "{\"systems\":[]}\n";
  const Advice& first = all.front().advice;
  return json_text(Json::object(
             {{"bytes", first.bytes}, {"chunks", first.chunks}, {"systems", json_list(all, advised_system_json)}})) +
         "\n";
}

}  // namespace trestle
