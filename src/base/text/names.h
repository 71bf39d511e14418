// Names in tables: what is said of one that no row has.
//
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trestle {

// Smallest number of insertions, deletions and replacements that turn one text into the other (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);
// "; did you mean NAME?" with the known name that takes the fewest of them, or "" where none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string_view>& known);
// kInvalidArgument: "'rign' is not an algorithm; did you mean ring? There are ring, tree".
Error unknown_name(std::string_view name, const char* what, const std::vector<std::string_view>& known);

// The names of rows with a member `name`.
template <class Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}
// The row of that name, else unknown_name().
template <class Rows>
auto row_named(const Rows& rows, std::string_view name, const char* what) -> Result<decltype(&*std::begin(rows))> {
  for (const auto& row : rows) {
    if (name == row.name) return &row;
  }
  return unknown_name(name, what, names_of(rows));
}

}  // namespace trestle
