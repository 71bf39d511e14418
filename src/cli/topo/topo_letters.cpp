#include <algorithm>

#include "base/cpu/numa.h"
#include "base/text/value_text.h"
#include "cli/topo/topo_ranks.h"

namespace trestle {
namespace {

constexpr size_t kMostField = 190;  // five of them and their ends stay below 1000 bytes

// A field ends where the line does.
std::string field(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  if (text.size() > kMostField) text = text.substr(0, kMostField - 3) + "...";
  return text + "\n";
}

// As usable_cpu_mask() has it; empty: not known.
std::vector<uint64_t> mask_of(const std::string& processors) {
  std::vector<uint64_t> mask;
  const auto numbers = parse_processors(processors);
  if (!numbers.ok()) return mask;
  for (const int number : numbers.value()) {
    mask.resize(std::max(mask.size(), static_cast<size_t>(number / 64 + 1)));
    mask[static_cast<size_t>(number / 64)] |= uint64_t{1} << number % 64;
  }
  return mask;
}

}  // namespace

// Leaves out a list of processors that is too long: cut, it would name other processors.
std::string encode(const RankLetter& letter) {
  return field(letter.host) + field(letter.identity) + field(letter.boot_id) +
         field(letter.processors.size() > kMostField ? "" : letter.processors) + field(letter.summary);
}

RankLetter decode_letter(const std::string& text) {
  std::vector<std::string> fields = split(text, '\n');
  fields.resize(5);
  return {fields[0], fields[1], fields[2], fields[3], fields[4]};
}

RanksOfJob ranks_from(const std::vector<RankLetter>& letters) {
  RanksOfJob job;
  std::vector<std::string> identities;  // by host index
  for (size_t r = 0; r < letters.size(); ++r) {
    const RankLetter& letter = letters[r];
    const auto at = static_cast<size_t>(std::ranges::find(identities, letter.identity) - identities.begin());
    const auto host = static_cast<int32_t>(at);
    if (at == identities.size()) {
      identities.push_back(letter.identity);
      if (at > 0) job.others.push_back({letter.host, host, letter.summary});
    }
    job.ranks.push_back({static_cast<int32_t>(r), letter.host, host, letter.processors});
    job.places.push_back({letter.host, letter.identity, r + 1, letter.boot_id, mask_of(letter.processors)});
  }
  return job;
}

}  // namespace trestle
