#include "base/config/config_nccl.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text.append(text.empty() ? "" : ",").append(item);
  return text;
}

// ---- NCCL_ALGO

constexpr std::array<const char*, 5> kFunctions = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce"};
constexpr std::array<const char*, 5> kOnlyNccl = {"collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};

// Our algorithm for NCCL's in this function; nullptr: there is none.
const char* algorithm_of(std::string_view nccl, std::string_view function) {
  if (nccl == "ring") return "ring";
  if (nccl == "tree" && (function == "allreduce" || function == "broadcast" || function == "reduce")) return "dbtree";
  return nullptr;
}

class AlgorithmTranslation {
 public:
  explicit AlgorithmTranslation(Fallback& fallback) : fallback_(fallback) {}

  void translate(const std::string& text) {
    for (const std::string& clause : split(lower(text), ';')) {
      if (!clause.empty()) read_clause(clause);
    }
    for (const auto& [function, rule] : rules_) {
      if (!rule.empty())
        fallback_.text.append(fallback_.text.empty() ? "" : ";").append(function).append(":").append(rule);
    }
  }

 private:
  void warn(const std::string& what) { fallback_.warnings.push_back("NCCL_ALGO: " + what); }

  void read_clause(std::string_view clause) {
    const size_t colon = clause.find(':');
    const bool named = colon != std::string_view::npos;
    const std::string function(named ? clause.substr(0, colon) : "");
    std::string_view names = named ? clause.substr(colon + 1) : clause;
    if (named && std::find(kFunctions.begin(), kFunctions.end(), function) == kFunctions.end()) {
      return warn("there is no function '" + function + "'; ignored");
    }
    const bool exclude = names.starts_with('^');
    if (exclude) names.remove_prefix(1);
    const std::vector<std::string> known = known_names(names, exclude);
    for (const char* candidate : kFunctions) {
      if (named ? function == candidate : !explicit_.contains(candidate)) read_names(candidate, known, exclude, named);
    }
    if (named) explicit_[function] = true;
  }

  // The names that have a counterpart; warns about the others.
  std::vector<std::string> known_names(std::string_view names, bool exclude) {
    std::vector<std::string> known;
    for (const std::string& name : split(names, ',')) {
      if (name == "ring" || name == "tree") {
        known.push_back(name);
      } else if (std::find(kOnlyNccl.begin(), kOnlyNccl.end(), name) == kOnlyNccl.end()) {
        warn("there is no algorithm '" + name + "'; ignored");
      } else if (!exclude) {  // what does not exist is excluded already
        warn("'" + name + "' has no counterpart here; ignored");
      }
    }
    return known;
  }

  void read_names(const char* function, const std::vector<std::string>& names, bool exclude, bool named) {
    std::vector<std::string> ours;
    for (const std::string& name : names) {
      // Without a function NCCL's tree is for all-reduce, as in NCCL.
      if (name == "tree" && !named && std::string_view(function) != "allreduce") continue;
      const char* algorithm = algorithm_of(name, function);
      if (algorithm == nullptr) {
        if (!exclude) warn(std::string("'") + name + "' cannot serve " + function + "; ignored");
      } else if (std::find(ours.begin(), ours.end(), algorithm) == ours.end()) {
        ours.emplace_back(algorithm);
        if (exclude && name == "tree") ours.emplace_back("tree");  // the single tree counts as a tree too
      }
    }
    std::string& rule = rules_[function];
    rule.clear();
    if (ours.size() > 1 && !exclude) {
      return warn(std::string("several algorithms for ") + function + " leave the choice between all of them");
    }
    if (!ours.empty()) rule = (exclude ? "^" : "") + joined(ours);
  }

  Fallback& fallback_;
  std::map<std::string, std::string> rules_;  // by function
  std::map<std::string, bool> explicit_;      // functions that had a clause of their own
};

void translate_algorithms(const std::string& text, Fallback& fallback) {
  AlgorithmTranslation(fallback).translate(text);
}

// ---- the others

void translate_level(const std::string& text, Fallback& fallback) {
  if (parse_log_level(text).ok()) {
    fallback.text = text;
  } else {
    fallback.warnings.push_back("NCCL_DEBUG: '" + text + "' is not a log level here; ignored");
  }
}

void translate_subsystems(const std::string& text, Fallback& fallback) {
  constexpr std::array<const char*, 7> kOnlyThere = {"alloc_host", "proxy", "nvls", "reg", "profile", "ras", "destroy"};
  const bool all_but = text.starts_with('^');
  std::vector<std::string> kept;
  for (const std::string& item : split(std::string_view(text).substr(all_but ? 1 : 0), ',')) {
    if (item.empty() || std::find(kOnlyThere.begin(), kOnlyThere.end(), lower(item)) != kOnlyThere.end()) continue;
    if (parse_subsystems(item).ok()) {
      kept.push_back(item);
    } else {
      fallback.warnings.push_back("NCCL_DEBUG_SUBSYS: there is no subsystem '" + item + "'; ignored");
    }
  }
  if (all_but) {
    fallback.text = kept.empty() ? "ALL" : "^" + joined(kept);
  } else {
    fallback.text = joined(kept);
  }
}

void translate_as_is(const std::string& text, Fallback& fallback) {
  fallback.text = text;
}

void translate_disable(const std::string& text, Fallback& fallback) {
  if (text == "0" || text == "1") {
    fallback.text = text == "0" ? "1" : "0";
  } else {
    fallback.warnings.push_back("NCCL_P2P_DISABLE: '" + text + "' is neither 0 nor 1; ignored");
  }
}

struct Translation {
  const char* nccl;
  const char* ours;
  void (*translate)(const std::string& text, Fallback& fallback);
};

constexpr Translation kTranslations[] = {
    {"NCCL_SOCKET_IFNAME", "TRESTLE_SOCKET_IFNAME", translate_as_is},
    {"NCCL_ALGO", "TRESTLE_ALGO", translate_algorithms},
    {"NCCL_DEBUG", "TRESTLE_DEBUG", translate_level},
    {"NCCL_DEBUG_SUBSYS", "TRESTLE_DEBUG_SUBSYS", translate_subsystems},
    {"NCCL_DEBUG_FILE", "TRESTLE_DEBUG_FILE", translate_as_is},
    {"NCCL_P2P_DISABLE", "TRESTLE_PEER_ACCESS", translate_disable},
};

}  // namespace

std::vector<Fallback> nccl_fallbacks(const Environment& environment) {
  std::vector<Fallback> fallbacks;
  for (const Translation& row : kTranslations) {
    const auto found = environment.find(row.nccl);
    if (found == environment.end() || found->second.empty()) continue;
    Fallback fallback{row.ours, row.nccl, "", {}};
    row.translate(found->second, fallback);
    fallbacks.push_back(std::move(fallback));
  }
  return fallbacks;
}

std::string nccl_name_of(const char* variable) {
  for (const Translation& row : kTranslations) {
    if (std::string_view(row.ours) == variable) return row.nccl;
  }
  return "";
}

}  // namespace trestle
