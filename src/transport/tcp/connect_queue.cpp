#include "transport/tcp/connect_queue.h"

#include <algorithm>

namespace trestle {

bool ConnectQueue::has_room(int64_t now_ns) {
  std::erase_if(counted_, [now_ns](const Attempt& attempt) { return now_ns - attempt.began_ns >= kSlowNs; });
  return counted_.size() < kMostAtOnce;
}

bool ConnectQueue::begin(int32_t rank, int64_t now_ns) {
  if (!line_.empty() || !has_room(now_ns)) {
    line_.push_back(rank);
    return false;
  }
  counted_.push_back({rank, now_ns});
  return true;
}

void ConnectQueue::end(int32_t rank) {
  std::erase_if(counted_, [rank](const Attempt& attempt) { return attempt.rank == rank; });
  std::erase(line_, rank);
}

std::optional<int32_t> ConnectQueue::next(int64_t now_ns) {
  if (line_.empty() || !has_room(now_ns)) return std::nullopt;
  const int32_t rank = line_.front();
  line_.pop_front();
  counted_.push_back({rank, now_ns});
  return rank;
}

int64_t ConnectQueue::due_ns() const {
  if (line_.empty()) return INT64_MAX;
  return counted_.size() < kMostAtOnce ? 0 : counted_.front().began_ns + kSlowNs;
}

}  // namespace trestle
