#include "transport/agreement.h"

#include <cstdio>
#include <utility>

namespace trestle {
namespace {

constexpr uint64_t kWhatBits = (uint64_t{1} << 24) - 1;

std::string what(uint64_t check) {
  const auto collective = static_cast<Collective>(check & 0xff);
  std::string text = to_string(collective);
  if ((check >> 8 & 1) != 0) text += " (half of an allreduce)";
  if (!is_valid(collective) || !moves_data(collective)) return text;
  text += std::string(" of ") + to_string(static_cast<DataType>(check >> 9 & 0x7f));
  if (reduces(collective)) text += std::string(", ") + to_string(static_cast<ReduceOp>(check >> 16 & 0xff));
  return text;
}

std::string hash_text(uint64_t check) {
  char text[24];
  std::snprintf(text, sizeof text, " (hash %06x)", static_cast<unsigned>(check >> 24 & 0xffffff));
  return text;
}

}  // namespace

std::string disagreement(const OperationRun& theirs, const OperationRun& ours) {
  const std::string start = theirs.rank + " runs operation " + std::to_string(theirs.operation) + " as " +
                            what(theirs.check) + hash_text(theirs.check);
  if (theirs.operation != ours.operation)
    return start + " where " + ours.rank + " runs operation " + std::to_string(ours.operation) + " as " +
           what(ours.check) + hash_text(ours.check);
  if ((theirs.check & kWhatBits) == (ours.check & kWhatBits))
    return start + ", " + ours.rank + " with another count, root or schedule" + hash_text(ours.check);
  return start + ", " + ours.rank + " as " + what(ours.check) + hash_text(ours.check);
}

Error different_sizes(const std::string& sender, const std::string& receiver, const MessageTag& sent,
                      uint64_t sent_bytes, const MessageTag& expected, uint64_t expected_bytes) {
  const auto size = [](const MessageTag& tag, uint64_t bytes) {
    return std::to_string(tag.whole != 0 ? tag.whole : bytes);
  };
  const bool pair = (sent.operation & kPointToPoint) != 0;
  return {Code::kInvalidUsage, sender + " sends " + size(sent, sent_bytes) + " bytes to " + receiver +
                                   ", which expects " + size(expected, expected_bytes) +
                                   (pair ? ", in message " : ", in operation ") +
                                   std::to_string(sent.operation & ~kPointToPoint) + (pair ? " between them" : "")};
}

Agreement::Agreement(int32_t rank, const RankNames& names) : rank_(rank), names_(names) {}

std::string Agreement::name(int32_t rank) const {
  const auto i = static_cast<size_t>(rank);
  return i < names_.size() && !names_[i].empty() ? names_[i] : "rank " + std::to_string(rank);
}

bool Agreement::same(int32_t rank, uint64_t operation, uint64_t check) {
  if ((operation & kPointToPoint) != 0) return true;
  Told& first = first_[operation % kRemembered];
  if (first.operation == operation && first.check != check) {
    sentence_ = disagreement({name(rank), operation, check}, {name(first.rank), operation, first.check});
    return false;
  }
  if (first.operation == kNone || first.operation < operation) first = {operation, check, rank};
  return true;
}

}  // namespace trestle
