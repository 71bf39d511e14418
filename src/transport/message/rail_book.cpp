#include "transport/message/rail_book.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

// reports: all rails to one peer.
void set_shares(std::span<RailReport> reports) {
  uint64_t all = 0;
  for (const RailReport& report : reports) all += report.sent_bytes;
  if (all == 0) return;
  for (RailReport& report : reports) {
    const double share = static_cast<double>(report.sent_bytes) / static_cast<double>(all);
    report.share_permille = static_cast<uint32_t>(std::lround(1000 * share));
  }
}

}  // namespace

RailRecord::RailRecord(int32_t peer, std::string name, uint32_t rails, int64_t now_ns)
    : peer_(peer), name_(std::move(name)), rails_(rails), history_{{now_ns, RailState::kConnecting, {}}} {}

RailState RailRecord::change(RailState state, const std::string& why, int64_t now_ns) {
  const MutexLock lock(mutex_);
  RailChange& last = history_.back();
  const RailState before = last.state;
  if (before == state) {
    if (!why.empty()) last.why = why;
    return before;
  }
  // The reason for the end (kEnding) is also the reason why the rail is down.
  std::string reason = why.empty() && state == RailState::kDown ? last.why : why;
  if (history_.size() == kRailHistory) history_.pop_front();
  history_.push_back({now_ns, state, std::move(reason)});
  return before;
}

void RailRecord::load(uint64_t queued_bytes, double bytes_per_second) {
  queued_.store(queued_bytes, std::memory_order_relaxed);
  goodput_.store(static_cast<uint64_t>(bytes_per_second), std::memory_order_relaxed);
}

void RailRecord::connected(int64_t now_ns) {
  connections_.add(1);
  change(RailState::kUp, {}, now_ns);
}

void RailRecord::lost(RailState now, const std::string& why, int64_t now_ns) {
  if (change(now, why, now_ns) == RailState::kUp) losses_.add(1);
}

void RailRecord::down(const std::string& why, int64_t now_ns) {
  change(RailState::kDown, why, now_ns);
}

// The time is that of the loss. Attempts to connect again change only the reason.
std::string RailRecord::story(int64_t now_ns) const {
  const MutexLock lock(mutex_);
  const auto carries_nothing = [](const RailChange& change) {
    return change.state == RailState::kEnding || change.state == RailState::kDown;
  };
  auto since = history_.end() - 1;
  while (since != history_.begin() && carries_nothing(*std::prev(since))) --since;
  const std::string& why = history_.back().why;
  return name_ + ": " + (why.empty() ? "has no connection" : why) + ", " + ago(now_ns - since->at_ns);
}

// What was acknowledged is read before what was sent, and losses before connections. So no part is more than its whole.
RailReport RailRecord::report() const {
  RailReport report;
  report.peer = peer_;
  report.name = name_;
  report.rails = rails_;
  report.acknowledged_bytes = acknowledged_.get();
  report.sent_bytes = sent_.get();
  report.received_bytes = received_.get();
  report.queued_bytes = queued_.load(std::memory_order_relaxed);
  report.goodput = goodput_.load(std::memory_order_relaxed);
  report.frames_sent_again = sent_again_.get();
  report.losses = losses_.get();
  report.connections = connections_.get();
  const MutexLock lock(mutex_);
  report.history.assign(history_.begin(), history_.end());
  return report;
}

RailRecord& RailBook::add(int32_t peer, std::string name, uint32_t rails, int64_t now_ns) {
  const MutexLock lock(mutex_);
  return records_.emplace_back(peer, std::move(name), rails, now_ns);
}

void RailBook::close(int64_t now_ns) {
  const MutexLock lock(mutex_);
  for (RailRecord& record : records_) {
    const RailState state = record.report().now().state;
    const bool carried = state == RailState::kUp || state == RailState::kConnecting;
    if (state != RailState::kDown) record.down(carried ? "the communicator has ended" : "", now_ns);
    record.load(0, 0);
  }
}

std::vector<RailReport> RailBook::read() const {
  std::vector<const RailRecord*> records;
  {
    const MutexLock lock(mutex_);
    for (const RailRecord& record : records_) records.push_back(&record);
  }
  std::vector<RailReport> all;
  all.reserve(records.size());
  for (const RailRecord* record : records) all.push_back(record->report());
  std::stable_sort(all.begin(), all.end(), [](const RailReport& a, const RailReport& b) { return a.peer < b.peer; });
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].peer == all[begin].peer) ++end;
    set_shares(std::span(all).subspan(begin, end - begin));
  }
  return all;
}

}  // namespace trestle
