// AlgorithmRules: TRESTLE_ALGO, parsed. Value type; pure functions, any thread.
//
// Grammar (blanks are not allowed):
//   rules  := clause (';' clause)*
//   clause := [collective ':'] (names | sizes)        without a collective: for all that have no clause of their own
//   names  := ['^'] name (',' name)*                  one per dimension, innermost first; the last one also holds for
//                                                     the dimensions beyond it; with ^: none of these
//           | '*' name                                one phase over all ranks
//   sizes  := low '-' high '=' ['*'] name (',' ...)*  for low <= bytes < high; high may be "inf"; other sizes are free
// Bytes are those of SelectionRequest::bytes.
//
// One name allows one phase over all ranks as well as phases on every dimension. A list asks for phases on every
// dimension, if each name can serve its dimension. The names alone decide which phases. An all-reduce has
// reduce-scatter and all-gather phases on the innermost dimensions whose algorithms have these, and all-reduce phases
// on the dimensions beyond. For example, ring,rd gives reduce-scatter by ring, all-reduce by rd, all-gather by ring;
// rd,ring gives two all-reduce phases. A broadcast goes from the outermost dimension in; a reduce and an all-to-all go
// from the innermost out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace trestle {

struct AlgorithmRule {
  bool exclude = false;
  bool flat = false;                 // one phase over all ranks; `algorithms` has one entry
  std::vector<uint16_t> algorithms;  // indices into algorithms(), as written
  std::string text;                  // as written, for error messages
};

class AlgorithmRules {
 public:
  struct Entry {
    std::optional<Collective> collective;  // empty: for all collectives that have no entry of their own
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;  // UINT64_MAX: no end
    AlgorithmRule rule;
  };

  // Errors (kInvalidArgument) quote the wrong part. Errors about unknown names list the known ones.
  static Result<AlgorithmRules> parse(std::string_view text);
  // nullptr: the choice is free.
  const Entry* find(Collective collective, uint64_t bytes) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace trestle
