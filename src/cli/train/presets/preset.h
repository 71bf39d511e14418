// A table or figure of a paper as `trestle train --preset` calculates it again, beside known numbers. Value types, any
// thread.
//
// To add a preset, add its function and its row in presets.cpp. `--list`, `--preset` and the tests follow from the row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace trestle {

// A number or a word; neither: nothing is known.
struct PresetValue {
  std::optional<double> number;
  std::string word;
  bool known() const { return number.has_value() || !word.empty(); }
};

struct PresetCell {
  PresetValue ours;       // calculated here
  PresetValue reference;  // what PresetTable::reference says
  bool whole = false;

  PresetCell() = default;
  explicit PresetCell(double value) : ours{value, ""} {}
  // A number of something, for people without digits after the point.
  static PresetCell count(double value, double known = -1) {
    PresetCell cell(value);
    if (known >= 0) cell.reference.number = known;
    cell.whole = true;
    return cell;
  }
  PresetCell(double value, double known) : ours{value, ""}, reference{known, ""} {}
  PresetCell(std::string value, std::string known) : ours{{}, std::move(value)}, reference{{}, std::move(known)} {}
};

// known: 0 if it is not.
inline PresetCell cell_of(double ours, double known) {
  return known > 0 ? PresetCell(ours, known) : PresetCell(ours);
}

struct PresetRow {
  std::string label;
  std::vector<PresetCell> cells;  // one per column
};

struct PresetTable {
  std::string title;      // with the unit
  std::string reference;  // where the numbers in brackets come from; "": there are none
  std::vector<std::string> columns;
  int digits = 1;  // after the point
  std::vector<PresetRow> rows;
};

struct PresetReport {
  std::vector<std::string> conditions;  // sentences
  std::vector<PresetTable> tables;
  std::vector<std::string> findings;  // sentences: what is wrong in the paper, and what is right
  std::string svg;                    // a picture of it; "": there is none
};

struct Preset {
  std::string_view name;
  std::string_view title;   // what it calculates
  std::string_view source;  // the paper, and the table or figure
  Result<PresetReport> (*run)();
};

// Where references come from.
inline constexpr const char* kPrinted = "printed in the paper";
inline constexpr const char* kRecalculated = "calculated before, independently of this program";

}  // namespace trestle
