// Reads one value of one row of the table.
#include <algorithm>

#include "base/check.h"
#include "base/config/config_table.h"
#include "base/text/names.h"
#include "base/transport_kinds.h"

namespace trestle {
namespace {

Error not_allowed() {
  return Error{Code::kInvalidArgument, ""};
}

Result<int64_t> number(const Variable& row, const std::string& text) {
  switch (row.kind) {
    case VariableKind::kBytes:
      return parse_bytes(text);
    case VariableKind::kDuration:
      return parse_duration_ns(text);
    default:
      return parse_integer(text);
  }
}

std::string choices_of(const Variable& row) {
  return row.kind == VariableKind::kTransportList ? transport_names(",") : row.choices;
}

Result<std::vector<std::string>> choices(const Variable& row, const std::string& text) {
  const std::vector<std::string> known = split(choices_of(row), ',');
  std::vector<std::string> chosen = split(text, ',');
  for (const std::string& item : chosen) {
    if (std::find(known.begin(), known.end(), item) != known.end()) continue;
    const std::string nearest = nearest_name(item, {known.begin(), known.end()});
    return Error{Code::kInvalidArgument, nearest.substr(std::min<size_t>(2, nearest.size()))};
  }
  return chosen;
}

// One overload per type of member; the row's kind decides how the text is read.
Status read(const Variable& row, const std::string& text, std::string& value) {
  if (row.kind == VariableKind::kChoice && TRY(choices(row, text)).size() != 1) return not_allowed();
  value = text;
  return {};
}

Status read(const Variable& row, const std::string& text, int64_t& value) {
  if (row.kind == VariableKind::kIntegerOrAuto && text == "auto") {
    value = -1;
    return {};
  }
  const int64_t parsed = TRY(number(row, text));
  if (parsed < row.low || parsed > row.high) return not_allowed();
  value = parsed;
  return {};
}

Status read(const Variable& row, const std::string& text, std::vector<std::string>& value) {
  value = TRY(choices(row, text));
  return {};
}

Status read(const Variable&, const std::string& text, bool& value) {
  value = TRY(parse_boolean(text));
  return {};
}

Status read(const Variable&, const std::string& text, std::vector<uint32_t>& value) {
  value = TRY(parse_dimensions(text));
  return {};
}

Status read(const Variable&, const std::string& text, PortRange& value) {
  value = TRY(parse_port_range(text));
  return {};
}

Status read(const Variable&, const std::string& text, LogLevel& value) {
  value = TRY(parse_log_level(text));
  return {};
}

Status read(const Variable&, const std::string& text, uint32_t& value) {
  value = TRY(parse_subsystems(text));
  return {};
}

std::string limit_text(const Variable& row, int64_t limit) {
  if (row.kind == VariableKind::kBytes) return bytes_text(limit);
  if (row.kind == VariableKind::kDuration) return duration_text(limit);
  return std::to_string(limit);
}

std::string range_text(const Variable& row) {
  return std::string(" from ").append(limit_text(row, row.low)).append(" to ").append(limit_text(row, row.high));
}

}  // namespace

const Variable* find_variable(std::string_view name) {
  for (const Variable& row : kVariables) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::string allowed_values(const Variable& row) {
  switch (row.kind) {
    case VariableKind::kText:
    case VariableKind::kSecret:
      return "text";
    case VariableKind::kChoice:
      return "one of " + choices_of(row);
    case VariableKind::kTransportList:
      return "comma list of " + choices_of(row);
    case VariableKind::kInteger:
      return "integer" + range_text(row);
    case VariableKind::kIntegerOrAuto:
      return "auto or an integer" + range_text(row);
    case VariableKind::kBoolean:
      return "1 or 0";
    case VariableKind::kBytes:
      return "bytes" + range_text(row);
    case VariableKind::kDuration:
      return "duration (ms, s, m, h; plain: seconds)" + range_text(row);
    case VariableKind::kDimensions:
      return "sizes such as 4x2";
    case VariableKind::kPortRange:
      return "low-high, 1 to 65535";
    case VariableKind::kLogLevel:
      return "NONE, VERSION, WARN, INFO or TRACE";
    case VariableKind::kSubsystems:
      return "comma list of subsystems, or ^ and those to leave out";
  }
  return {};
}

std::string canonical_text(const Variable& row, const std::string& text) {
  if (row.kind == VariableKind::kBoolean) {
    const Result<bool> value = parse_boolean(text);
    return value.ok() ? (value.value() ? "1" : "0") : text;
  }
  const bool numeric = std::holds_alternative<int64_t Config::*>(row.member);
  const Result<int64_t> value = numeric ? number(row, text) : Result<int64_t>(not_allowed());
  return value.ok() ? limit_text(row, value.value()) : text;
}

Status set_config_value(Config& config, const Variable& row, const std::string& text) {
  const Status status = std::visit([&](auto member) { return read(row, text, config.*member); }, row.member);
  if (status.ok()) return {};
  const bool secret = row.kind == VariableKind::kSecret;
  std::string message(row.name);
  message.append("=").append(secret ? "(set)" : text).append(": must be ").append(allowed_values(row));
  if (!status.error().message.empty()) message.append(" (").append(status.error().message).append(")");
  return Error{Code::kInvalidArgument, std::move(message)};
}

}  // namespace trestle
