#include "comm/calls/call_check.h"

#include "base/hash.h"
#include "base/text/byte_text.h"
#include "control_mesh/letter_kind.h"

namespace trestle {

namespace {

std::string counts_text(const std::vector<uint64_t>& counts) {
  std::string text = " counts";
  for (const uint64_t count : counts) {
    if (text.size() > kMostCallText / 2) return text + " ... (" + std::to_string(counts.size()) + " in all)";
    text += ' ' + std::to_string(count);
  }
  return text;
}

// The text, with the place of the data if either call has it on a device: most programs have no devices.
std::string with_place(const CallSummary& call, const CallSummary& other) {
  const bool on_device = call.place == DataPlace::kDevice || other.place == DataPlace::kDevice;
  return on_device ? call.text + ", " + to_string(call.place) : call.text;
}

}  // namespace

CallSummary summary_of(const PrepareRequest& request) {
  const Collective collective = request.collective;
  std::string text = to_string(collective);
  if (request.half) text += " (half of an allreduce)";
  Hasher hasher;
  if (has_known_blocks(collective)) {
    text += counts_text(known_blocks(*request.blocks, collective).counts) + " of ";
    hasher.integer(hash_of_counts(*request.blocks, collective));
  } else if (!has_pairwise_blocks(collective)) {
    hasher.integer(request.count);
    text += " of " + std::to_string(request.count) + " ";
  } else {
    text += " of ";
  }
  text += to_string(request.type);
  if (!moves_data(collective)) text = to_string(collective);
  if (reduces(collective)) text += std::string(" (") + to_string(request.op) + ")";
  if (has_root(collective)) text += ", root " + std::to_string(request.root);
  if (request.options) text += "," + request.options.text();
  hasher.string(text);
  if (text.size() > kMostCallText) text.resize(kMostCallText);  // a pushed configuration may be of any length
  return {hasher.digest(), text, data_place(request)};
}

CallSummary summary_of(const char* function) {
  return {Hasher().string(function).digest(), function, DataPlace::kHost};
}

void CallCheck::Book::write(const Key& key, CallSummary summary) {
  if (!calls.insert_or_assign(key, std::move(summary)).second) return;
  ages.push_back(key);
  if (ages.size() <= kRemembered) return;
  calls.erase(ages.front());
  ages.pop_front();
}

Status CallCheck::compare(const Key& key, int32_t other, const CallSummary& theirs, const CallSummary& ours) const {
  if (theirs.hash == ours.hash && goes_with(theirs.place, ours.place)) return {};
  const bool message = key.first >= 0;
  std::string text = names_[static_cast<size_t>(other)];
  text +=
      (message ? " sends " + numbered("message", key.second) : " calls " + numbered("operation", key.second)) + " as ";
  text += with_place(theirs, ours) + ", " + names_[static_cast<size_t>(rank_)];
  text += (message ? " receives it as " : " as ") + with_place(ours, theirs);
  const bool placed = goes_with(theirs.place, ours.place);
  if (placed && theirs.text == ours.text) text += ", which differ in a part that is not shown here";
  return Error{Code::kInvalidUsage, text};
}

Result<std::optional<CallCheck::Letter>> CallCheck::made(const OperationKey& operation, const CallSummary& summary) {
  const auto ranks = static_cast<int32_t>(names_.size());
  const Key key{operation.peer, operation.number};
  std::optional<Letter> letter;
  if (operation.peer < 0 || operation.sending) {
    const int32_t to = operation.peer < 0 ? (rank_ + 1) % ranks : operation.peer;
    if (to != rank_) {
      ByteWriter out;
      out.integer(static_cast<uint8_t>(LetterKind::kCall)).integer(operation.number).integer(summary.hash);
      letter = {to, out.text(summary.text).integer(static_cast<uint8_t>(summary.place)).take()};
    }
    if (operation.sending && to == rank_) TRY(heard_call(key, rank_, summary));
    if (operation.sending) return letter;
  }
  const MutexLock lock(mutex_);
  own_.write(key, summary);
  const auto theirs = theirs_.calls.find(key);
  if (theirs == theirs_.calls.end()) return letter;
  const int32_t other = operation.peer < 0 ? (rank_ + ranks - 1) % ranks : operation.peer;
  TRY(compare(key, other, theirs->second, summary));
  return letter;
}

bool CallCheck::is_letter(const std::string& text) {
  return !text.empty() && static_cast<LetterKind>(text[0]) == LetterKind::kCall;
}

Status CallCheck::heard(int32_t from, const std::string& text) {
  ByteReader in(text);
  in.integer<uint8_t>();
  const auto number = in.integer<uint64_t>();
  CallSummary theirs;
  theirs.hash = in.integer<uint64_t>();
  theirs.text = in.text(kMostCallText);
  theirs.place = static_cast<DataPlace>(in.integer<uint8_t>());
  const auto ranks = static_cast<int32_t>(names_.size());
  const bool message = (number & kPointToPoint) != 0;
  if (!in.at_end() || theirs.place > DataPlace::kNone || (!message && from != (rank_ + ranks - 1) % ranks)) return {};
  return heard_call({message ? from : -1, number}, from, theirs);
}

Status CallCheck::heard_call(const Key& key, int32_t from, const CallSummary& theirs) {
  const MutexLock lock(mutex_);
  const auto ours = own_.calls.find(key);
  if (ours != own_.calls.end()) return compare(key, from, theirs, ours->second);
  theirs_.write(key, theirs);
  return {};
}

}  // namespace trestle
