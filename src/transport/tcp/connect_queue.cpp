#include "transport/tcp/connect_queue.h"

#include <algorithm>

namespace trestle {

// When the oldest attempt counts no longer, if no peer answers until then.
int64_t ConnectQueue::room_ns() const {
  return std::max(heard_ns_, counted_.front().began_ns) + kQuietNs;
}

bool ConnectQueue::has_room(int64_t now_ns) {
  if (counted_.size() < kMostAtOnce) return true;
  if (now_ns < room_ns()) return false;
  counted_.erase(counted_.begin());
  heard_ns_ = now_ns;
  return true;
}

bool ConnectQueue::begin(int32_t rank, int64_t now_ns) {
  if (!line_.empty() || !has_room(now_ns)) {
    line_.push_back(rank);
    return false;
  }
  counted_.push_back({rank, now_ns, 0});
  return true;
}

void ConnectQueue::answered(int32_t rank, int64_t now_ns) {
  const auto attempt =
      std::find_if(counted_.begin(), counted_.end(), [rank](const Attempt& counted) { return counted.rank == rank; });
  if (attempt == counted_.end()) return end(rank);
  heard_ns_ = now_ns;
  std::for_each(counted_.begin(), attempt, [](Attempt& older) { ++older.overtaken; });
  counted_.erase(attempt);
  std::erase_if(counted_, [](const Attempt& older) { return older.overtaken >= kOvertakenBy; });
}

void ConnectQueue::end(int32_t rank) {
  std::erase_if(counted_, [rank](const Attempt& attempt) { return attempt.rank == rank; });
  std::erase(line_, rank);
}

std::optional<int32_t> ConnectQueue::next(int64_t now_ns) {
  if (line_.empty() || !has_room(now_ns)) return std::nullopt;
  const int32_t rank = line_.front();
  line_.pop_front();
  counted_.push_back({rank, now_ns, 0});
  return rank;
}

int64_t ConnectQueue::due_ns() const {
  if (line_.empty()) return INT64_MAX;
  return counted_.size() < kMostAtOnce ? 0 : room_ns();
}

}  // namespace trestle
