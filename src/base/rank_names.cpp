#include "base/rank_names.h"

#include <algorithm>

namespace trestle {

std::string_view process_of(std::string_view name) {
  const size_t at = name.find(" (");
  return at == std::string_view::npos ? std::string_view() : name.substr(at);
}

std::optional<std::string> in_numbers_of(const std::vector<std::string>& names, const std::string& own,
                                         const std::string& sentence) {
  const size_t end = sentence.find(')');
  if (!sentence.starts_with("rank ") || end == std::string::npos) return std::nullopt;
  const std::string_view told = std::string_view(sentence).substr(0, end + 1);
  const std::string_view process = process_of(told);
  if (process.empty() || process == process_of(own)) return std::nullopt;
  // If several ranks are in that process: the one with that number, if it exists.
  auto meant = std::find(names.begin(), names.end(), told);
  if (meant == names.end())
    meant =
        std::find_if(names.begin(), names.end(), [process](const auto& name) { return process_of(name) == process; });
  if (meant == names.end()) return std::nullopt;
  return *meant + sentence.substr(end + 1);
}

}  // namespace trestle
