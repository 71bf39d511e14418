#include <algorithm>

#include "base/text/json.h"
#include "cli/text_line.h"
#include "cli/train/presets/presets.h"

namespace trestle {
namespace {

std::string shown(const PresetValue& value, int digits) {
  return value.number ? line("%.*f", digits, *value.number) : value.word;
}

// Ours, and the reference in brackets as it is known.
std::string shown(const PresetCell& cell, int digits) {
  std::string text = cell.ours.known() ? shown(cell.ours, cell.whole ? 0 : digits) : "-";
  if (!cell.reference.known()) return text;
  return text + " [" + (cell.reference.number ? line("%.9g", *cell.reference.number) : cell.reference.word) + "]";
}

std::string table_text(const PresetTable& table) {
  size_t label = 0;
  std::vector<size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(column.size());
  for (const PresetRow& row : table.rows) {
    label = std::max(label, row.label.size());
    for (size_t c = 0; c < row.cells.size(); ++c)
      widths[c] = std::max(widths[c], shown(row.cells[c], table.digits).size());
  }
  std::string text = "\n" + table.title + "\n";
  if (!table.reference.empty()) text += "in brackets: " + table.reference + "\n";
  text += line("%-*s", static_cast<int>(label), "");
  for (size_t c = 0; c < widths.size(); ++c)
    text += line("  %*s", static_cast<int>(widths[c]), table.columns[c].c_str());
  text += '\n';
  for (const PresetRow& row : table.rows) {
    text += line("%-*s", static_cast<int>(label), row.label.c_str());
    for (size_t c = 0; c < row.cells.size(); ++c)
      text += line("  %*s", static_cast<int>(widths[c]), shown(row.cells[c], table.digits).c_str());
    text += '\n';
  }
  return text;
}

Json value_json(const PresetValue& value) {
  if (value.number) return *value.number;
  return value.word.empty() ? nullptr : Json(value.word);
}

Json cell_json(const PresetCell& cell) {
  Json members = {{"ours", value_json(cell.ours)}};
  if (cell.reference.known()) members["reference"] = value_json(cell.reference);
  return members;
}

Json row_json(const PresetRow& row) {
  return Json::object({{"label", row.label}, {"cells", json_list(row.cells, cell_json)}});
}

Json table_json(const PresetTable& table) {
  return Json::object({{"title", table.title},
                       {"reference", table.reference.empty() ? nullptr : Json(table.reference)},
                       {"columns", table.columns},
                       {"rows", json_list(table.rows, row_json)}});
}

}  // namespace

std::string preset_text(const Preset& preset, const PresetReport& report) {
  std::string text = std::string(preset.source) + ": " + std::string(preset.title) + "\n";
  for (const std::string& condition : report.conditions) text += "  " + condition + "\n";
  for (const PresetTable& table : report.tables) text += table_text(table);
  text += '\n';
  for (const std::string& finding : report.findings) text += "* " + finding + "\n";
  return text;
}

std::string preset_json(const Preset& preset, const PresetReport& report) {
  return json_text(Json::object({{"preset", preset.name},
                                 {"title", preset.title},
                                 {"source", preset.source},
                                 {"conditions", report.conditions},
                                 {"tables", json_list(report.tables, table_json)},
                                 {"findings", report.findings}})) +
         "\n";
}

}  // namespace trestle
