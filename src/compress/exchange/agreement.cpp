#include "compress/exchange/agreement.h"

#include <bit>
#include <cstdio>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/hash.h"

namespace trestle {
namespace {

// What a rank says before its arguments.
enum Said : size_t { kCode, kFunction, kFirstArgument };
// All calls say as much, so that ranks that make different calls find that out.
constexpr size_t kArgumentWords = 20;

std::string text_of(SaidArgument::Kind kind, uint64_t word) {
  if (kind == SaidArgument::Kind::kInteger) return std::to_string(word);
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(word));
  return text;
}

uint64_t code_of(const Status& own) {
  return own.ok() ? 0 : static_cast<uint64_t>(own.error().code);
}

Error refusal_by(uint64_t rank, Code code, const char* function) {
  return Error{code, std::string(function) + ": rank " + std::to_string(rank) + " refused the call (" +
                         to_string(code) + "); its own call has the sentence"};
}

// The first rank that could not make the call.
std::optional<Error> refusal_of(const std::vector<uint64_t>& all, size_t words, const char* function) {
  for (size_t at = 0; at < all.size(); at += words) {
    if (all[at + kCode] != 0) return refusal_by(at / words, static_cast<Code>(all[at + kCode]), function);
  }
  return std::nullopt;
}

Result<std::vector<uint64_t>> said_by_all(const RankCalls& calls, const std::vector<uint64_t>& own) {
  std::vector<uint64_t> all(own.size() * static_cast<size_t>(calls.ranks()));
  TRY(calls.all_gather(own.data(), all.data(), own.size(), trestleUint64));
  return all;
}

}  // namespace

SaidArgument SaidArgument::number(const char* name, double value) {
  return {name, Kind::kNumber, std::bit_cast<uint64_t>(value)};
}

Status compare(const RankCalls& calls, const char* function, const std::vector<SaidArgument>& arguments,
               const Status& own) {
  std::vector<uint64_t> mine = {code_of(own), Hasher().string(function).digest()};
  for (const SaidArgument& argument : arguments) mine.push_back(argument.word);
  CHECK(mine.size() <= kArgumentWords, "a call has more arguments than room to say them");
  mine.resize(kArgumentWords);
  const std::vector<uint64_t> all = TRY(said_by_all(calls, mine));
  // From here on the other ranks may go on. So nothing is allocated but the sentence of a refusal, which all ranks
  // make.
  const auto rank = [&](size_t at) { return std::string(function) + ": rank " + std::to_string(at / mine.size()); };
  if (!own.ok()) return own;
  if (auto refusal = refusal_of(all, mine.size(), function)) return *std::move(refusal);
  for (size_t at = mine.size(); at < all.size(); at += mine.size()) {
    if (all[at + kFunction] != all[kFunction])
      return Error{Code::kInvalidUsage, rank(at) + " makes another call than rank 0"};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint64_t theirs = all[at + kFirstArgument + i];
      const uint64_t first = all[kFirstArgument + i];
      if (theirs == first) continue;
      const SaidArgument& argument = arguments[i];
      if (argument.kind == SaidArgument::Kind::kDigest)
        return Error{Code::kInvalidUsage, rank(at) + " has other " + argument.name + " than rank 0"};
      return Error{Code::kInvalidUsage, rank(at) + " says " + argument.name + " " + text_of(argument.kind, theirs) +
                                            " and rank 0 " + text_of(argument.kind, first)};
    }
  }
  return {};
}

// The lower the rank, the larger its word. So one maximum names the first rank that could not, and nothing is
// allocated.
Status all_could(const RankCalls& calls, const char* function, const Status& own) {
  constexpr uint64_t kLastRank = 0xffff'ffff;
  constexpr int kCodeBits = 8;
  const uint64_t place = kLastRank - static_cast<uint64_t>(calls.rank());
  uint64_t most = own.ok() ? 0 : place << kCodeBits | code_of(own);
  TRY(calls.all_reduce(&most, 1, trestleUint64, trestleMax));
  if (!own.ok()) return own;
  if (most == 0) return {};
  return refusal_by(kLastRank - (most >> kCodeBits), static_cast<Code>(most & ((1u << kCodeBits) - 1)), function);
}

}  // namespace trestle
