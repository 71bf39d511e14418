#include "cli/train/choose.h"

#include <algorithm>
#include <array>

#include "base/text/json.h"
#include "base/text/value_text.h"
#include "cli/option_values.h"
#include "cli/text_line.h"
#include "compress/choice.h"
#include "gradient/network_cost.h"

namespace trestle {
namespace {

constexpr std::array kChosenCollectives = {SparseCollective::kRing, SparseCollective::kTree,
                                           SparseCollective::kAllGather};

struct Choice {
  SparseExchange exchange;
  SparseCosts costs;
  SparseRules rules;
  SparseCollective chosen = SparseCollective::kRing;
  std::array<SparseCollective, 3> order = kChosenCollectives;  // the fastest first
  double dense_ring_s = 0;
};

Result<SparseExchange> exchange_of(const ChooseOptions& options) {
  const std::array<std::pair<const char*, const std::string*>, 5> all = {{{"--bytes", &options.bytes},
                                                                          {"--ratio", &options.ratio},
                                                                          {"--workers", &options.workers},
                                                                          {"--alpha", &options.alpha},
                                                                          {"--beta", &options.beta}}};
  for (const auto& [option, text] : all) {
    if (text->empty()) return invalid_argument(std::string(option) + ": is needed to choose a collective");
  }
  SparseExchange exchange;
  exchange.bytes = static_cast<double>(TRY(bytes_value("--bytes", options.bytes)));
  exchange.ratio = TRY(real_value("--ratio", options.ratio));
  if (!(exchange.ratio > 0 && exchange.ratio <= 1)) {
    return invalid_argument("--ratio: " + options.ratio + " is not above 0 and at most 1");
  }
  exchange.workers = TRY(count_value("--workers", options.workers, 2, kMostWorkers));
  exchange.startup_s = TRY(real_value("--alpha", options.alpha));
  exchange.per_byte_s = TRY(real_value("--beta", options.beta));
  return exchange;
}

Choice choice_of(const SparseExchange& exchange) {
  Choice choice;
  choice.exchange = exchange;
  choice.costs = sparse_costs(exchange);
  choice.rules = sparse_rules(exchange);
  choice.chosen = chosen_by(choice.rules);
  std::ranges::stable_sort(choice.order, {}, [&](SparseCollective each) { return choice.costs.of(each); });
  const NetworkModel network{exchange.startup_s, exchange.per_byte_s, 0, exchange.workers};
  choice.dense_ring_s = all_reduce_cost(network, AllReduceAlgorithm::kRing).of(static_cast<uint64_t>(exchange.bytes));
  return choice;
}

struct NamedRule {
  const char* number;
  const char* key;
  const char* question;
  bool SparseRules::*holds;
};

constexpr std::array<NamedRule, 3> kRules = {
    {{"5a", "ring_beats_tree", "ring before tree", &SparseRules::ring_beats_tree},
     {"5b", "ring_beats_all_gather", "ring before all-gather", &SparseRules::ring_beats_all_gather},
     {"5c", "tree_beats_all_gather", "tree before all-gather", &SparseRules::tree_beats_all_gather}}};

std::string choice_json(const Choice& choice) {
  const SparseExchange& exchange = choice.exchange;
  const auto cost = [&](SparseCollective each) {
    return Json::object({{"collective", to_string(each)}, {"time_s", choice.costs.of(each)}});
  };
  Json rules;
  for (const NamedRule& rule : kRules) rules[rule.key] = choice.rules.*rule.holds;
  return json_text(Json::object({{"bytes", exchange.bytes},
                                 {"ratio", exchange.ratio},
                                 {"workers", exchange.workers},
                                 {"alpha_s", exchange.startup_s},
                                 {"beta_s", exchange.per_byte_s},
                                 {"costs", json_list(choice.order, cost)},
                                 {"rules", rules},
                                 {"chosen", to_string(choice.chosen)},
                                 {"dense_ring_s", choice.dense_ring_s}})) +
         "\n";
}

std::string choice_text(const Choice& choice) {
  const SparseExchange& exchange = choice.exchange;
  std::string text =
      line("%.3f MB of gradients, %g of them sent, %u workers, %g us per message, %g ns per byte\n\n",
           exchange.bytes / 1e6, exchange.ratio, exchange.workers, 1e6 * exchange.startup_s, 1e9 * exchange.per_byte_s);
  text += line("%-22s %14s\n", "collective", "time, ms");
  for (const SparseCollective each : choice.order) {
    text +=
        line("%-22s %14.3f%s\n", to_string(each), 1e3 * choice.costs.of(each), each == choice.chosen ? "  chosen" : "");
  }
  text += line("%-22s %14.3f  everything, uncompressed\n\n", "ring all-reduce", 1e3 * choice.dense_ring_s);
  for (const NamedRule& rule : kRules) {
    text += line("rule %s: %s: %s\n", rule.number, rule.question, choice.rules.*rule.holds ? "yes" : "no");
  }
  return text;
}

}  // namespace

Result<std::string> choose_collective(const ChooseOptions& options) {
  const Choice choice = choice_of(TRY(exchange_of(options)));
  return options.json ? choice_json(choice) : choice_text(choice);
}

}  // namespace trestle
