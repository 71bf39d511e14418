#include "base/files/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/text/value_text.h"
#include "base/unique_fd.h"

namespace trestle {

namespace {

constexpr size_t kLongestLine = 1 << 20;

}  // namespace

Result<std::string> first_line(const std::string& path) {
  const Error unreadable{Code::kSystemError, path + " cannot be read"};
  const UniqueFd file = UniqueFd::open([&path] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (!file) return unreadable;
  std::string text;
  std::array<char, 4096> piece{};
  ssize_t length = 0;
  while ((length = ::read(file.get(), piece.data(), piece.size())) > 0 && text.size() < kLongestLine)
    text.append(piece.data(), static_cast<size_t>(length));
  if (length != 0) return unreadable;
  return text.substr(0, text.find('\n'));
}

int64_t number_in(const std::string& path, int64_t unknown) {
  const auto line = first_line(path);
  if (!line.ok()) return unknown;
  const auto number = parse_integer(line.value());
  return number.ok() ? number.value() : unknown;
}

}  // namespace trestle
