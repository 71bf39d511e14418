#include "cli/env.h"

#include "base/text/json.h"
#include "sched/model/algo_rules.h"
#include "sched/policy/policies.h"
#include "sched/policy/priority_rules.h"

namespace trestle {

Result<std::string> env_text(const Config& config, const EnvOptions& options) {
  // The table takes these texts as they are; communicators refuse them.
  TRY(AlgorithmRules::parse(config.algorithm));
  TRY(find_policy(config.schedule));
  TRY(find_priority_rule(config.intra));
  if (shown_variables(config, options.word).empty()) {
    return Error{Code::kInvalidArgument,
                 "no variable has '" + options.word + "' in its name or text" + nearest_variable(options.word)};
  }
  const std::vector<ShownVariable> variables = shown_variables(config, options.word, options.changed);
  if (!options.json) return config_text(variables);
  return json_text(json_list(variables,
                             [](const ShownVariable& each) {
                               return Json::object({{"name", each.value.name},
                                                    {"value", each.value.text},
                                                    {"default", each.fallback},
                                                    {"source", source_text(each.value)},
                                                    {"agreed", each.value.agreed},
                                                    {"meaning", each.meaning},
                                                    {"values", each.allowed}});
                             })) +
         "\n";
}

}  // namespace trestle
