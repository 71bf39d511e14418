// Brings rank 0's decision about an exchange to all ranks, so that all do the same. Collective.
#pragma once

#include <utility>

#include "base/result.h"
#include "compress/exchange/rank_calls.h"
#include "compress/exchange_choice.h"

namespace trestle {

// Rank 0 gives its decision. The others adopt it. Errors: the communicator's.
Status give_decision(const RankCalls& calls, const ExchangeChoice& choice);
Status adopt_decision(const RankCalls& calls, const char* function, ExchangeChoice& choice);

// Rank 0 calls change(ExchangeChoice&); the others adopt what it decided. After an error no rank's choice has changed.
template <class Change>
Status decide(const RankCalls& calls, const char* function, ExchangeChoice& choice, Change&& change) {
  if (calls.rank() != 0) return adopt_decision(calls, function, choice);
  ExchangeChoice changed = choice;
  change(changed);
  TRY(give_decision(calls, changed));
  choice = std::move(changed);
  return {};
}

}  // namespace trestle
