// The names of a communicator's ranks, like "rank 3 (host a, pid 12)". And the translation of sentences of one
// communicator to the rank numbers of another one: ranks are identified by their processes.
//
// A value and pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trestle {

// Ranks of one communicator. More are a caller's mistake, and a list of the missing ones would take gigabytes.
inline constexpr int32_t kMostRanks = 1 << 20;

// The names by rank. Copies share one immutable list: several parts of a communicator have it, and for thousands of
// ranks it is hundreds of KiB.
class RankNames {
 public:
  RankNames() : RankNames(std::vector<std::string>()) {}
  RankNames(std::vector<std::string> names)
      : names_(std::make_shared<const std::vector<std::string>>(std::move(names))) {}
  RankNames(std::initializer_list<std::string> names) : RankNames(std::vector<std::string>(names)) {}
  RankNames(const RankNames&) = default;
  RankNames& operator=(const RankNames&) = default;  // no move: every object has a list

  // A list of its own, in which one rank has another name.
  RankNames with(size_t rank, const std::string& name) const {
    std::vector<std::string> names = *names_;
    names[rank] = name;
    return names;
  }

  const std::vector<std::string>& all() const { return *names_; }
  operator const std::vector<std::string>&() const { return *names_; }
  size_t size() const { return names_->size(); }
  const std::string& operator[](size_t rank) const { return (*names_)[rank]; }
  auto begin() const { return names_->begin(); }
  auto end() const { return names_->end(); }

 private:
  std::shared_ptr<const std::vector<std::string>> names_;
};

// The " (host a, pid 12)" of such a name; "": it has none.
std::string_view process_of(std::string_view name);

// If the sentence begins with a rank's name: the sentence with the matching one of `names` instead. nullopt if it does
// not, or if none of `names` is in that process. Also nullopt for the process of `own`, the rank that gets the
// sentence: it would be told that it did itself what another rank in its process has done.
std::optional<std::string> in_numbers_of(const std::vector<std::string>& names, const std::string& own,
                                         const std::string& sentence);

}  // namespace trestle
