#include "base/text/names.h"

#include <algorithm>
#include <cctype>

namespace trestle {
namespace {

std::string without_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  constexpr size_t kMostSlips = 4;
  const auto distance = [name](std::string_view each) { return edit_distance(without_case(name), without_case(each)); };
  const auto nearest = std::ranges::min_element(known, {}, distance);
  const size_t most = std::min(kMostSlips, (name.size() + 1) / 2);
  if (nearest == known.end() || distance(*nearest) > most) return "";
  return "; did you mean " + std::string(*nearest) + "?";
}

Error unknown_name(std::string_view name, const char* what, const std::vector<std::string_view>& known) {
  std::string all;
  for (const std::string_view each : known) all.append(all.empty() ? "" : ", ").append(each);
  const std::string nearest = nearest_name(name, known);
  std::string message("'");
  message.append(name).append("' is not ").append(what).append(nearest);
  return Error{Code::kInvalidArgument, message + (nearest.empty() ? "; there are " : " There are ") + all};
}

}  // namespace trestle
