#include "base/config/config_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/config/config_table.h"
#include "base/files/listing.h"
#include "base/text/names.h"

namespace trestle {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view without_comment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || kBlanks.find(line[at - 1]) != std::string_view::npos) return line.substr(0, at);
  }
  return line;
}

Error wrong(const std::string& place, const std::string& sentence) {
  return Error{Code::kInvalidArgument, place + ": " + sentence};
}

// Error messages do not quote the value: it may be a secret.
Status read_line(std::string_view line, const std::string& place, FileValues& values) {
  const size_t equals = line.find('=');
  const std::string name(trimmed(line.substr(0, equals)));
  if (equals == std::string_view::npos || name.empty()) return wrong(place, "this line is not NAME=value");
  const Variable* row = find_variable(name);
  if (row == nullptr) return wrong(place, "there is no variable " + name + nearest_variable(name));
  if (row->member == ConfigMember(&Config::config_file)) return wrong(place, name + " cannot be set in a file");
  const auto [found, is_new] = values.emplace(name, FileValue{std::string(trimmed(line.substr(equals + 1))), place});
  if (!is_new) return wrong(place, name + " is set already at " + found->second.place);
  return {};
}

// Empty if the file is missing and not required.
Result<std::string> read_text(const std::string& path, bool required) {
  const OpenFile file = open_to_read(path);
  if (file == nullptr) {
    if (!required && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return std::string();
    return Error{Code::kSystemError, "the configuration file '" + path + "' cannot be read: " + std::strerror(errno)};
  }
  std::string text;
  char piece[4096];
  size_t length = 0;
  while ((length = std::fread(piece, 1, sizeof piece, file.get())) > 0) {
    text.append(piece, length);
    if (text.size() > kMostBytes)
      return Error{Code::kInvalidArgument, "the configuration file '" + path + "' is larger than 1 MiB"};
  }
  if (std::ferror(file.get()) != 0)
    return Error{Code::kSystemError, "the configuration file '" + path + "' cannot be read: " + std::strerror(errno)};
  return text;
}

std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

std::string nearest_variable(std::string_view name) {
  return nearest_name(name, names_of(kVariables));
}

Result<FileValues> parse_config_file(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  FileValues values;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(without_comment(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) TRY(read_line(line, path + ":" + std::to_string(number), values));
  }
  return values;
}

Result<FileValues> read_config_files(const Environment& environment, const char* system_file) {
  FileValues values = TRY(parse_config_file(TRY(read_text(system_file, false)), system_file));
  std::string path = value_of(environment, "TRESTLE_CONF_FILE");
  const bool named = !path.empty();
  const std::string folder = value_of(environment, "HOME");
  if (!named && folder.empty()) return values;
  if (!named) path = folder + "/.trestle.conf";
  FileValues own = TRY(parse_config_file(TRY(read_text(path, named)), path));
  own.merge(values);  // keeps the values that it has
  return own;
}

}  // namespace trestle
