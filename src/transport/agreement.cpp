#include "transport/agreement.h"

#include <cstdio>
#include <utility>

namespace trestle {
namespace {

constexpr uint64_t kWhatBits = (uint64_t{1} << 24) - 1;
constexpr uint64_t kPlaceBits = uint64_t{3} << 14;

DataPlace place_of(uint64_t check) {
  return static_cast<DataPlace>((check & kPlaceBits) >> 14);
}

bool agree(uint64_t a, uint64_t b) {
  return ((a ^ b) & ~kPlaceBits) == 0 && goes_with(place_of(a), place_of(b));
}

// `other`: of the rank that it is compared with. Only places that differ are said.
std::string what(uint64_t check, uint64_t other) {
  const auto collective = static_cast<Collective>(check & 0xff);
  std::string text = to_string(collective);
  if ((check >> 8 & 1) != 0) text += " (half of an allreduce)";
  if (!is_valid(collective) || !moves_data(collective)) return text;
  text += std::string(" of ") + to_string(static_cast<DataType>(check >> 9 & 0x1f));
  if (reduces(collective)) text += std::string(", ") + to_string(static_cast<ReduceOp>(check >> 16 & 0xff));
  if (!goes_with(place_of(check), place_of(other))) text += std::string(", ") + to_string(place_of(check));
  return text;
}

std::string hash_text(uint64_t check) {
  char text[24];
  std::snprintf(text, sizeof text, " (hash %06x)", static_cast<unsigned>(check >> 24 & 0xffffff));
  return text;
}

}  // namespace

std::string disagreement(const OperationRun& theirs, const OperationRun& ours) {
  const std::string start = theirs.rank + " runs " + numbered("operation", theirs.operation) + " as " +
                            what(theirs.check, ours.check) + hash_text(theirs.check);
  if (theirs.operation != ours.operation)
    return start + " where " + ours.rank + " runs " + numbered("operation", ours.operation) + " as " +
           what(ours.check, theirs.check) + hash_text(ours.check);
  if (((theirs.check ^ ours.check) & kWhatBits & ~kPlaceBits) == 0 &&
      goes_with(place_of(theirs.check), place_of(ours.check)))
    return start + ", " + ours.rank + " with another count, root or schedule" + hash_text(ours.check);
  return start + ", " + ours.rank + " as " + what(ours.check, theirs.check) + hash_text(ours.check);
}

namespace {

// The error for a message whose two ends mean different things by it.
Error different_ends(const std::string& sender, const std::string& sent, const std::string& receiver,
                     const std::string& expected, uint64_t operation) {
  const bool pair = (operation & kPointToPoint) != 0;
  return {Code::kInvalidUsage, sender + " sends " + sent + " to " + receiver + ", which expects " + expected + ", in " +
                                   numbered(pair ? "message" : "operation", operation) + (pair ? " between them" : "")};
}

}  // namespace

Error different_sizes(const std::string& sender, const std::string& receiver, const MessageTag& sent,
                      uint64_t sent_bytes, const MessageTag& expected, uint64_t expected_bytes) {
  // Segments on a device are longer: the size of one says nothing then.
  if (places_differ(sent, expected)) return different_places(sender, receiver, sent, expected);
  const auto size = [](const MessageTag& tag, uint64_t bytes) {
    return std::to_string(tag.whole != 0 ? tag.whole : bytes);
  };
  return different_ends(sender, size(sent, sent_bytes) + " bytes", receiver, size(expected, expected_bytes),
                        sent.operation);
}

bool places_differ(const MessageTag& sent, const MessageTag& expected) {
  return !goes_with(place_of(sent.check), place_of(expected.check));
}

bool is_on_device(const MessageTag& tag) {
  return place_of(tag.check) == DataPlace::kDevice;
}

Error different_places(const std::string& sender, const std::string& receiver, const MessageTag& sent,
                       const MessageTag& expected) {
  const auto data = [](const MessageTag& tag) { return std::string("data ") + to_string(place_of(tag.check)); };
  return different_ends(sender, data(sent), receiver, data(expected), sent.operation);
}

Agreement::Agreement(int32_t rank, const RankNames& names) : rank_(rank), names_(names) {}

std::string Agreement::name(int32_t rank) const {
  const auto i = static_cast<size_t>(rank);
  return i < names_.size() && !names_[i].empty() ? names_[i] : "rank " + std::to_string(rank);
}

bool Agreement::same(int32_t rank, uint64_t operation, uint64_t check) {
  if ((operation & kPointToPoint) != 0) return true;
  Told& first = first_[slot_of(operation)];
  if (first.operation == operation && !agree(first.check, check)) {
    sentence_ = disagreement({name(rank), operation, check}, {name(first.rank), operation, first.check});
    return false;
  }
  // The place of a rank with data is the one that the others must have.
  const bool says_more = first.operation == operation && place_of(first.check) == DataPlace::kNone;
  // The numbers of different captures, and of calls that are not captured, say nothing about their order.
  const bool unordered = capture_of(first.operation) != capture_of(operation);
  if (first.operation == kNone || unordered || first.operation < operation || says_more)
    first = {operation, check, rank};
  return true;
}

}  // namespace trestle
