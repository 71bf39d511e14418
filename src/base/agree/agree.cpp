#include "base/agree/agree.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"

namespace trestle {
namespace {

constexpr const char* kSameEverywhere = "it must be the same on all ranks";
constexpr size_t kMostBytes = size_t{64} << 20;  // that a rank says of its call

std::string name_of(size_t rank, const RankNames& names) {
  return rank < names.size() ? names[rank] : "rank " + std::to_string(rank);
}

const Fact* find_fact(const Facts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

bool same_value(const Fact* a, const Fact* b) {
  return a == nullptr || b == nullptr ? a == b : a->value == b->value;
}

// "TRESTLE_EAGER=64K", "no tensor 2"
std::string shown(const std::string& name, const Fact* fact) {
  if (fact == nullptr) return "no " + name;
  const std::string& text = fact->shown.empty() ? fact->value : fact->shown;
  return name + "=" + (text.empty() ? "(empty)" : text);
}

// The name of the first fact that differs; nullptr: none does.
const std::string* first_difference(const Facts& facts, const Facts& first) {
  for (const Fact& fact : first) {
    if (!same_value(find_fact(facts, fact.name), &fact)) return &fact.name;
  }
  for (const Fact& fact : facts) {
    if (find_fact(first, fact.name) == nullptr) return &fact.name;
  }
  return nullptr;
}

// A sentence of a call begins with its name, here before the rank.
Error of_rank(const Error& error, const std::string& start, const std::string& rank) {
  const std::string_view message = error.message;
  const bool starts = message.starts_with(start);
  return {error.code, start + rank + " cannot take part: " + std::string(message.substr(starts ? start.size() : 0))};
}

}  // namespace

std::string exact_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

void write_said(ByteWriter& out, const Said& said) {
  out.integer(static_cast<uint32_t>(said.own.ok() ? Code::kSuccess : said.own.error().code));
  out.text(said.own.ok() ? "" : said.own.error().message).integer(static_cast<uint32_t>(said.facts.size()));
  for (const Fact& fact : said.facts) out.text(fact.name).text(fact.value).text(fact.shown).text(fact.rule);
}

Said read_said(ByteReader& in, size_t text_bytes) {
  Said said;
  const auto code = static_cast<Code>(in.integer<uint32_t>());
  const std::string_view sentence = in.text(text_bytes);
  const bool known = code > Code::kSuccess && code <= kLastCode;
  if (code != Code::kSuccess) said.own = Error{known ? code : Code::kRemoteError, std::string(sentence)};
  for (uint32_t left = in.count(4 * sizeof(uint32_t)); left > 0 && in.ok(); --left) {
    Fact& fact = said.facts.emplace_back();
    for (std::string* text : {&fact.name, &fact.value, &fact.shown, &fact.rule}) *text = in.text(text_bytes);
  }
  return said;
}

Status compare_said(std::string_view function, const std::vector<Said>& by_rank, const RankNames& names) {
  const std::string start = function.empty() ? "" : std::string(function) + ": ";
  for (size_t r = 0; r < by_rank.size(); ++r) {
    if (!by_rank[r].own.ok()) return of_rank(by_rank[r].own.error(), start, name_of(r, names));
  }
  const Facts& first = by_rank.front().facts;
  for (size_t r = 1; r < by_rank.size(); ++r) {
    const Facts& facts = by_rank[r].facts;
    const std::string* const name = facts == first ? nullptr : first_difference(facts, first);
    if (name == nullptr) continue;
    const Fact* const theirs = find_fact(facts, *name);
    const Fact* const ours = find_fact(first, *name);
    const auto more = std::count_if(by_rank.begin() + static_cast<std::ptrdiff_t>(r) + 1, by_rank.end(),
                                    [&](const Said& one) { return same_value(find_fact(one.facts, *name), theirs); });
    const std::string& rule = (ours != nullptr ? ours : theirs)->rule;
    return invalid_usage(start + name_of(r, names) +
                         (more == 0 ? " has " : " and " + std::to_string(more) + " more have ") + shown(*name, theirs) +
                         ", " + name_of(0, names) + " has " + shown(*name, ours) + "; " +
                         (rule.empty() ? kSameEverywhere : rule));
  }
  return {};
}

Status agree(std::string_view function, const Facts& facts, const Status& own, const ExchangeBytes& exchange,
             const RankNames& names) {
  Said said{own, {{"the call", std::string(function)}}};
  said.facts.insert(said.facts.end(), facts.begin(), facts.end());
  ByteWriter out;
  write_said(out, said);
  std::string mine = out.take();
  const std::string head = ByteWriter().integer(Hasher().string(mine).digest()).integer(uint64_t{mine.size()}).take();
  const std::string heads = TRY(exchange(head));
  // Ranks that all say the same may go on from here, so nothing is allocated for them.
  size_t longest = 0;
  bool same = true;
  for (std::string_view rest = heads; rest.size() >= head.size(); rest.remove_prefix(head.size())) {
    ByteReader in(rest.substr(sizeof(uint64_t)));
    longest = std::max<size_t>(longest, in.integer<uint64_t>());
    same = same && rest.starts_with(head);
  }
  if (same) return own;
  if (longest > kMostBytes)
    return own.ok() ? Error{Code::kRemoteError, "a rank says " + std::to_string(longest) + " bytes of its call"}
                    : own.error();
  mine.resize(longest);
  const std::string all = TRY(exchange(mine));
  if (!own.ok()) return own;
  // What follows a rank's bytes fills them up to the length of the longest.
  std::vector<Said> by_rank;
  for (size_t at = 0; at < all.size(); at += longest) {
    ByteReader in(std::string_view(all).substr(at, longest));
    by_rank.push_back(read_said(in, longest));
    if (!in.ok())
      return Error{Code::kRemoteError,
                   name_of(by_rank.size() - 1, names) + ": what it says of its call cannot be read"};
  }
  return compare_said(function, by_rank, names);
}

}  // namespace trestle
