#include "perf/driver/split.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace trestle::perf {
namespace {

struct Name {
  const char* name;
  char op;
};
constexpr Name kNames[] = {{"AND", '&'}, {"OR", '|'}, {"MOD", '%'}, {"DIV", '/'},
                           {"&", '&'},   {"|", '|'},  {"%", '%'},   {"/", '/'}};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::optional<uint64_t> parse_number(std::string_view digits, int base) {
  const std::string text(digits);
  if (text.empty() || !std::isalnum(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(text.c_str(), &end, base);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return value;
}

// Parses 10, 0x.., 0b..
std::optional<uint64_t> parse_any_number(std::string_view text) {
  if (text.starts_with("0X")) return parse_number(text.substr(2), 16);
  if (text.starts_with("0B")) return parse_number(text.substr(2), 2);
  return parse_number(text, 10);
}

}  // namespace

int Split::color(int process) const {
  const uint64_t value = static_cast<uint64_t>(process);
  constexpr uint64_t kMost = 0x7fffffff;  // fits an int
  switch (op) {
    case '&':
      return static_cast<int>(value & number & kMost);
    case '|':
      return static_cast<int>((value | number) & kMost);
    case '%':
      return static_cast<int>(value % number);
    case '/':
      return static_cast<int>(value / number);
    default:
      return 0;
  }
}

Split parse_split(const std::string& split, const std::string& mask) {
  Split result;
  if (split.empty() && mask.empty()) return result;
  if (split.empty()) {
    std::string_view digits = mask;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    const auto number = parse_number(digits, 16);
    result.op = '&';
    result.number = number.value_or(0);
    if (!number) result.problem = "NCCL_TESTS_SPLIT_MASK is a hexadecimal number, not '" + mask + "'";
    return result;
  }
  const std::string text = upper(split);
  for (const Name& name : kNames) {
    if (result.op != 0 || !text.starts_with(name.name)) continue;
    const std::string_view rest = std::string_view(text).substr(std::string_view(name.name).size());
    const size_t begin = rest.find_first_not_of(" \t=");
    const auto number = parse_any_number(begin == std::string_view::npos ? "" : rest.substr(begin));
    if (!number) break;
    result.op = name.op;
    result.number = *number;
  }
  const bool divides_by_zero = (result.op == '%' || result.op == '/') && result.number == 0;
  if (result.op == 0 || divides_by_zero) {
    result.problem =
        "NCCL_TESTS_SPLIT is AND, OR, MOD or DIV (or & | % /) and a number, e.g. 'MOD 8', not '" + split + "'";
  }
  return result;
}

Layout group_layout(const Layout& job, const Split& split) {
  Layout group = job;
  group.process = group.processes = 0;
  for (int process = 0; process < job.processes; ++process) {
    if (split.color(process) != split.color(job.process)) continue;
    if (process < job.process) ++group.process;
    ++group.processes;
  }
  return group;
}

}  // namespace trestle::perf
