#include "torture/program.h"

#include <algorithm>
#include <array>

namespace torture {
namespace {

constexpr std::array<const char*, 16> kActNames = {"call",
                                                   "group",
                                                   "persistent request",
                                                   "decomposed all-reduce",
                                                   "chain",
                                                   "event record",
                                                   "stream wait event",
                                                   "event wait",
                                                   "stream wait",
                                                   "comm wait",
                                                   "barrier",
                                                   "split",
                                                   "destroy",
                                                   "refused call",
                                                   "questions",
                                                   "end"};

}  // namespace

int Program::rank_in(int comm, int rank) const {
  const std::vector<int>& ranks = comms[static_cast<size_t>(comm)];
  const auto at = std::find(ranks.begin(), ranks.end(), rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

std::string to_string(const Action& action) {
  std::string text = kActNames[static_cast<size_t>(action.act)];
  if (action.calls.empty()) return text + " (comm " + std::to_string(action.comm) + ")";
  text += " (" + to_string(action.calls[0]);
  if (action.calls.size() > 1) text += " and " + std::to_string(action.calls.size() - 1) + " more";
  return text + ")";
}

}  // namespace torture
