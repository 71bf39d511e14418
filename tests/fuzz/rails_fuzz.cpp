// TRESTLE_RAILS, and what two ranks publish of their rails, as "<rails>\n<mine>\n<theirs>". Whatever is accepted can be
// written and read again, and both ranks find the same pairs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text/value_text.h"
#include "transport/rails/pairing.h"
#include "transport/rails/rails_text.h"

using namespace trestle;

namespace {

void check_rails(const std::string& text) {
  const auto rails = parse_rails(text);
  if (!rails.ok()) {
    CHECK(!rails.error().message.empty(), "an error without a sentence");
    return;
  }
  std::string again;
  for (const DimensionRails& dimension : rails.value()) {
    std::string items = dimension.interfaces.empty() ? to_string(dimension.kind) : "";
    for (const NamedInterface& one : dimension.interfaces)
      items += (items.empty() ? "" : ",") + one.name + (one.rate_bps != 0 ? "@" + rate_text(one.rate_bps) : "");
    again += (again.empty() ? "" : ";") + items;
  }
  const auto reread = parse_rails(again);
  CHECK(reread.ok() && reread.value() == rails.value(), "writing and reading changed the rails");
}

std::vector<PublishedRail> check_published(const std::string& text) {
  const auto rails = parse_published(text);
  if (!rails.ok()) {
    CHECK(!rails.error().message.empty(), "an error without a sentence");
    return {};
  }
  CHECK(!rails.value().empty() && rails.value().size() <= kMostRails, "no rail, or too many");
  const auto written = publish(rails.value());
  CHECK(written.ok(), "what was read cannot be written");
  const auto reread = parse_published(written.value());
  CHECK(reread.ok() && reread.value() == rails.value(), "writing and reading changed what is published");
  return rails.value();
}

void check_pairs(const std::vector<PublishedRail>& mine, const std::vector<PublishedRail>& theirs) {
  const auto here = pair_rails({"rank 0", mine}, {"rank 1", theirs});
  const auto there = pair_rails({"rank 1", theirs}, {"rank 0", mine});
  CHECK(here.ok() == there.ok(), "only one rank finds rails in common");
  if (!here.ok()) return;
  CHECK(here.value().pairs.size() == there.value().pairs.size(), "the ranks find other numbers of pairs");
  for (size_t i = 0; i < here.value().pairs.size(); ++i) {
    const RailPair& pair = here.value().pairs[i];
    CHECK(pair.mine < mine.size() && pair.theirs < theirs.size(), "a pair of rails that do not exist");
    CHECK((there.value().pairs[i] == RailPair{pair.theirs, pair.mine, pair.rate_bps}), "the ranks find other pairs");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts = split(std::string(reinterpret_cast<const char*>(data), size), '\n');
  parts.resize(3);
  check_rails(parts[0]);
  const std::vector<PublishedRail> mine = check_published(parts[1]);
  const std::vector<PublishedRail> theirs = check_published(parts[2]);
  if (!mine.empty() && !theirs.empty()) check_pairs(mine, theirs);
  return 0;
}
