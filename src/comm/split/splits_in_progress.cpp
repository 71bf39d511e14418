#include "comm/split/splits_in_progress.h"

#include <utility>

namespace trestle {

std::atomic<int32_t>& SplitsInProgress::begin(uint64_t number) {
  const MutexLock lock(mutex_);
  return splits_[number].awaited;
}

void SplitsInProgress::end(uint64_t number) {
  const MutexLock lock(mutex_);
  splits_.erase(number);
}

void SplitsInProgress::set_members(uint64_t number, const std::vector<int32_t>& members) {
  const MutexLock lock(mutex_);
  splits_[number].members = members;
}

Status SplitsInProgress::failure(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto& failure = splits_[number].failure;
  if (failure) return *failure;
  return {};
}

bool SplitsInProgress::contains(uint64_t number) {
  const MutexLock lock(mutex_);
  return splits_.contains(number);
}

std::optional<uint64_t> SplitsInProgress::oldest() {
  const MutexLock lock(mutex_);
  if (splits_.empty()) return std::nullopt;
  return splits_.begin()->first;
}

std::optional<int32_t> SplitsInProgress::awaited_while_joining(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto split = splits_.find(number);
  if (split == splits_.end() || split->second.members.empty()) return std::nullopt;
  const int32_t awaited = split->second.awaited;
  return awaited < 0 ? -1 : split->second.members[static_cast<size_t>(awaited)];
}

void SplitsInProgress::set_failure(uint64_t number, Error error) {
  const MutexLock lock(mutex_);
  const auto split = splits_.find(number);
  if (split != splits_.end() && !split->second.failure) split->second.failure = std::move(error);
}

}  // namespace trestle
