// agree: whether all ranks of a communicator make the same call with the same arguments, and whether all of them could
// do their part so far.
//
// Each rank says how its own part has gone, and a list of facts that must be the same on all ranks. All ranks get the
// same answer. If ranks have failed, it is the code and the sentence of the lowest of them. Else, if facts differ, it
// is kInvalidUsage with the first fact that differs, the ranks, and both values. A rank that has failed keeps its own
// error.
//
// Pure but for the exchange that the caller gives; the calling thread. Texts of other ranks are not trusted.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rank_names.h"
#include "base/result.h"
#include "base/text/byte_text.h"

namespace trestle {

struct Fact {
  std::string name;        // "TRESTLE_EAGER", "count": once in a list
  std::string value;       // what is compared
  std::string shown = {};  // in its place in a sentence; "": the value
  std::string rule = {};   // the end of the sentence; "": it must be the same on all ranks
  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// A number that is read back exactly from the text, in as few digits as possible.
std::string exact_text(double number);

// What a rank says. own: how its part has gone so far; if it has failed, its facts do not count.
struct Said {
  Status own = {};
  Facts facts = {};
};
void write_said(ByteWriter& out, const Said& said);
// The reader says whether it could be read. text_bytes: the most of one text.
Said read_said(ByteReader& in, size_t text_bytes);

// The answer, for what has been exchanged already, as every rank finds it. by_rank: at least one. function: of the
// call, for the start of the sentence; or "". The first rank that differs from rank 0 is named, and how many more
// differ as it does: "Grow: rank 2 has count=11, rank 0 has count=10; it must be the same on all ranks".
Status compare_said(std::string_view function, const std::vector<Said>& by_rank, const RankNames& names = {});

// All ranks' bytes, one behind the other. Every rank gives as many.
using ExchangeBytes = std::function<Result<std::string>(const std::string& mine)>;

// Collective. function: a fact, too. names: by rank; fewer: ranks are called by their numbers. One exchange of 16 bytes
// if all ranks say the same, else two. Errors: also those of the exchange; kRemoteError: a rank has sent
// something else. Throws std::bad_alloc; then the other ranks wait for this one, unless the answer was success.
Status agree(std::string_view function, const Facts& facts, const Status& own, const ExchangeBytes& exchange,
             const RankNames& names = {});

}  // namespace trestle
