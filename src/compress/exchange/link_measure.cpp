#include "compress/exchange/link_measure.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

constexpr size_t kSizes = 6;
constexpr size_t kRounds = 5;
constexpr size_t kSmallest = 256;  // words
constexpr size_t kFactor = 4;
constexpr double kLeastSeconds = 1e-9;  // the clock's resolution, so that no message takes no time

using Rounds = std::array<double, kRounds>;

double median(Rounds seconds) {
  std::ranges::nth_element(seconds, seconds.begin() + kRounds / 2);
  return std::max(seconds[kRounds / 2], kLeastSeconds);
}

// Seconds of body(), which all ranks begin together.
template <class Body>
Result<double> timed(const RankCalls& calls, Body&& body) {
  TRY(calls.barrier());
  const int64_t begin = monotonic_clock().now_ns();
  TRY(body());
  return static_cast<double>(monotonic_clock().now_ns() - begin) / 1e9;
}

size_t words_of(size_t size) {
  size_t words = kSmallest;
  for (size_t i = 0; i < size; ++i) words *= kFactor;
  return words;
}

// An exchange of AR-Topk: indices, then values.
Status reduce(const RankCalls& calls, const ExchangeMemory& memory, size_t words) {
  TRY(calls.broadcast(memory.at(), words, trestleUint32, 0));
  return calls.all_reduce(memory.at(), words, trestleFloat32, trestleSum, "*ring");
}

}  // namespace

Result<std::vector<TimedMessage>> measure_link(const RankCalls& calls, const char* function) {
  if (calls.ranks() == 1) return std::vector<TimedMessage>();
  const auto ranks = static_cast<size_t>(calls.ranks());
  const auto workers = static_cast<uint32_t>(calls.ranks());
  ExchangeMemory memory;
  // An all-gather's block may be of one word.
  TRY(calls.agree(function, {}, memory.reserve((words_of(kSizes - 1) + 2 * ranks + 2) * sizeof(uint32_t))));
  std::array<double, 2 * kSizes> seconds = {};
  std::vector<TimedMessage> messages;
  for (size_t size = 0; size < kSizes; ++size) {
    const size_t words = words_of(size);
    const size_t block = std::max<size_t>(1, words / ranks);
    Rounds reduced, gathered;
    for (size_t round = 0; round < kRounds; ++round) {
      reduced[round] = TRY(timed(calls, [&] { return reduce(calls, memory, words); }));
      gathered[round] = TRY(timed(calls, [&] {
        return calls.all_gather(memory.at(block * sizeof(uint32_t) * static_cast<size_t>(calls.rank())), memory.at(),
                                block, trestleUint32);
      }));
    }
    seconds[2 * size] = median(reduced);
    messages.push_back(timed_exchange(SparseCollective::kRing, static_cast<double>(words), workers, 0));
    seconds[2 * size + 1] = median(gathered);
    // Half of a block's words are indices.
    messages.push_back(timed_exchange(SparseCollective::kAllGather, static_cast<double>(block) / 2, workers, 0));
  }
  TRY(calls.all_reduce(seconds.data(), seconds.size(), trestleFloat64, trestleMin));
  for (size_t i = 0; i < messages.size(); ++i) messages[i].seconds = seconds[i];
  return messages;
}

}  // namespace trestle
