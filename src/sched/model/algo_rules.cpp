#include "sched/model/algo_rules.h"

#include <algorithm>

#include "algorithms/catalog.h"
#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

Error wrong(std::string_view part, const std::string& why) {
  return Error{Code::kInvalidArgument, "TRESTLE_ALGO: '" + std::string(part) + "': " + why};
}

Result<uint16_t> parse_name(std::string_view name) {
  if (name.empty()) return wrong(name, "the name of an algorithm is missing");
  const auto rows = algorithms();
  const auto found = row_named(rows, name, "an algorithm");
  if (!found.ok()) return Error{Code::kInvalidArgument, "TRESTLE_ALGO: " + found.error().message};
  return static_cast<uint16_t>(found.value() - rows.data());
}

Result<AlgorithmRule> parse_names(std::string_view text) {
  AlgorithmRule rule;
  rule.text = std::string(text);
  rule.exclude = text.starts_with('^');
  rule.flat = text.starts_with('*');
  if (rule.exclude || rule.flat) text.remove_prefix(1);
  if (text.empty()) return wrong(rule.text, "the name of an algorithm is missing");
  if (rule.flat && text.find(',') != std::string_view::npos) {
    return wrong(rule.text, "after a * there is one name: that of one phase over all ranks");
  }
  for (const std::string& name : split(text, ',')) {
    if (name.starts_with('^')) return wrong(rule.text, "a ^ may stand only before the first name and excludes all");
    if (name.starts_with('*')) return wrong(rule.text, "a * may stand only before a single name");
    rule.algorithms.push_back(TRY(parse_name(name)));
  }
  return rule;
}

Result<uint64_t> parse_size(std::string_view text, std::string_view part) {
  auto bytes = parse_bytes(text);
  if (!bytes.ok()) return wrong(part, bytes.error().message);
  return static_cast<uint64_t>(bytes.value());
}

Result<AlgorithmRules::Entry> parse_sized(std::string_view part) {
  const size_t equals = part.find('=');
  if (equals == std::string_view::npos) {
    return wrong(part, "expected sizes=name, such as 0-64k=rd (one clause has either names or sizes)");
  }
  const std::string_view range = part.substr(0, equals);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return wrong(part, "expected a range of sizes such as 0-64k or 64k-inf");
  AlgorithmRules::Entry entry;
  entry.low = TRY(parse_size(range.substr(0, dash), part));
  if (range.substr(dash + 1) != "inf") entry.high = TRY(parse_size(range.substr(dash + 1), part));
  if (entry.low >= entry.high) return wrong(part, "a range of sizes must grow");
  const std::string_view name = part.substr(equals + 1);
  entry.rule.text = std::string(name);
  entry.rule.flat = name.starts_with('*');
  entry.rule.algorithms = {TRY(parse_name(entry.rule.flat ? name.substr(1) : name))};
  return entry;
}

Result<std::vector<AlgorithmRules::Entry>> parse_clause(std::string_view text) {
  if (text.find('=') == std::string_view::npos) {
    AlgorithmRules::Entry entry;
    entry.rule = TRY(parse_names(text));
    return std::vector<AlgorithmRules::Entry>{std::move(entry)};
  }
  std::vector<AlgorithmRules::Entry> entries;
  for (const std::string& part : split(text, ',')) {
    AlgorithmRules::Entry entry = TRY(parse_sized(part));
    for (const AlgorithmRules::Entry& other : entries) {
      if (entry.low < other.high && other.low < entry.high) return wrong(part, "overlaps another range of sizes");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<AlgorithmRules> AlgorithmRules::parse(std::string_view text) {
  AlgorithmRules rules;
  for (const std::string& clause : split(text, ';')) {
    std::string_view rest = clause;
    std::optional<Collective> collective;
    if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
      auto named = parse_collective(rest.substr(0, colon));
      if (!named.ok()) return wrong(clause, named.error().message);
      collective = named.value();
      if (is_point_to_point(*collective)) return wrong(clause, "point-to-point messages have no algorithms");
      rest.remove_prefix(colon + 1);
    }
    if (rest.empty()) return wrong(clause, "the name of an algorithm is missing");
    const auto same = [&](const Entry& entry) { return entry.collective == collective; };
    if (std::ranges::any_of(rules.entries_, same)) {
      return wrong(clause, collective ? std::string(to_string(*collective)) + " has a clause already"
                                      : "there is a clause for all collectives already");
    }
    for (Entry& entry : TRY(parse_clause(rest))) {
      entry.collective = collective;
      rules.entries_.push_back(std::move(entry));
    }
  }
  return rules;
}

const AlgorithmRules::Entry* AlgorithmRules::find(Collective collective, uint64_t bytes) const {
  const auto own = [&](const Entry& entry) { return entry.collective == collective; };
  const bool has_own = std::ranges::any_of(entries_, own);
  for (const Entry& entry : entries_) {
    if (has_own ? !own(entry) : entry.collective.has_value()) continue;
    if (bytes >= entry.low && (bytes < entry.high || entry.high == UINT64_MAX)) return &entry;
  }
  return nullptr;
}

}  // namespace trestle
