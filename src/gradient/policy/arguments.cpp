#include "gradient/policy/arguments.h"

#include <algorithm>
#include <charconv>

#include "base/text/value_text.h"
#include "gradient/policy/buffer_tuner.h"
#include "gradient/policy/dear.h"

namespace trestle {
namespace {

Error unexpected(const std::string& word) {
  return invalid_argument("\"" + word + "\" is one word too many");
}

Result<uint64_t> bytes_of(const std::string& word) {
  const int64_t bytes = TRY(parse_bytes(word));
  if (bytes < 1) return invalid_argument("\"" + word + "\" is not at least one byte");
  return static_cast<uint64_t>(bytes);
}

}  // namespace

Result<PolicyArguments> no_words(PolicyWords words) {
  if (!words.empty()) return unexpected(words[0]);
  return PolicyArguments{};
}

Result<PolicyArguments> bytes_word(PolicyWords words, uint64_t otherwise) {
  if (words.size() > 1) return unexpected(words[1]);
  PolicyArguments arguments;
  arguments.bytes = words.empty() ? otherwise : TRY(bytes_of(words[0]));
  return arguments;
}

Result<PolicyArguments> part_words(PolicyWords words, uint64_t otherwise) {
  if (words.size() > 2) return unexpected(words[2]);
  PolicyArguments arguments = TRY(bytes_word(words.first(std::min<size_t>(words.size(), 1)), otherwise));
  if (words.size() < 2) return arguments;
  arguments.negotiation_s = 1e-9 * static_cast<double>(TRY(parse_duration_ns(words[1])));
  if (arguments.negotiation_s < 0) return invalid_argument("\"" + words[1] + "\" is negative");
  return arguments;
}

Result<PolicyArguments> count_word(PolicyWords words, uint32_t otherwise, uint32_t most) {
  if (words.size() > 1) return unexpected(words[1]);
  PolicyArguments arguments;
  arguments.count = otherwise;
  if (words.empty()) return arguments;
  const int64_t count = TRY(parse_integer(words[0]));
  if (count < 1 || count > most) return invalid_argument(words[0] + " is not from 1 to " + std::to_string(most));
  arguments.count = static_cast<uint32_t>(count);
  return arguments;
}

Result<PolicyArguments> dear_words(PolicyWords words) {
  PolicyArguments arguments;
  arguments.bytes = kDearBytes;
  arguments.count = kTuningTrials;
  size_t next = 0;
  const auto is_gather = [&](size_t i) { return words[i] == "eager" || words[i] == "lookahead"; };
  if (next < words.size() && !is_gather(next)) {
    arguments.tuned = words[next] == "tuned";
    if (!arguments.tuned) arguments.bytes = TRY(bytes_of(words[next]));
    ++next;
  }
  if (next < words.size()) {
    if (!is_gather(next)) return invalid_argument("\"" + words[next] + "\" is neither eager nor lookahead");
    if (words[next] == "lookahead") arguments.gather = GatherIssue::kOneAhead;
    ++next;
  }
  if (next < words.size()) return unexpected(words[next]);
  return arguments;
}

Result<PolicyArguments> split_words(PolicyWords words) {
  if (words.size() > 1) return unexpected(words[1]);
  PolicyArguments arguments;
  arguments.shared = words.empty() || words[0] == "shared";
  if (!arguments.shared && words[0] != "free")
    return invalid_argument("\"" + words[0] + "\" is neither shared nor free");
  return arguments;
}

Result<PolicyArguments> ratio_words(PolicyWords words) {
  if (words.size() > 1) return unexpected(words[1]);
  PolicyArguments arguments;
  if (words.empty() || words[0] == "hidden") return arguments;
  const char* const end = words[0].data() + words[0].size();
  const auto read = std::from_chars(words[0].data(), end, arguments.ratio);
  const bool number = read.ec == std::errc() && read.ptr == end;
  if (!number || !(arguments.ratio > 0 && arguments.ratio <= 1))
    return invalid_argument("\"" + words[0] + "\" is neither hidden nor a ratio above 0 and at most 1");
  return arguments;
}

}  // namespace trestle
