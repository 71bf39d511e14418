#include "comm/device/stream_links.h"

#include <algorithm>
#include <new>

namespace trestle {

namespace {

// Words that the host and a device write have cache lines of their own.
constexpr size_t kLineBytes = 64;
constexpr size_t kLinesAtOnce = 1024;
// More than anybody submits ahead, and far from where the numbers wrap around.
constexpr uint32_t kMostAheadByWords = uint32_t{1} << 20;

uint32_t* word_at(std::byte* place) {
  return new (place) uint32_t(0);
}

}  // namespace

Status StreamLinks::prepare() {
  const MutexLock adding(adding_);
  return add_lines();
}

Status StreamLinks::add_lines() {
  std::byte* const memory = TRY(device_.allocate_pinned(kLineBytes * kLinesAtOnce));
  const MutexLock lock(lines_mutex_);
  lines_.reserve(lines_made_ + kLinesAtOnce);
  lines_made_ += kLinesAtOnce;
  for (size_t i = kLinesAtOnce; i-- > 0;) lines_.push_back(memory + i * kLineBytes);
  return {};
}

bool StreamLinks::find_line(std::byte*& line) {
  const MutexLock lock(lines_mutex_);
  if (lines_.empty()) return false;
  line = lines_.back();
  lines_.pop_back();
  return true;
}

Result<std::byte*> StreamLinks::take_line() {
  std::byte* line = nullptr;
  if (find_line(line)) return line;
  const MutexLock adding(adding_);
  while (!find_line(line)) TRY(add_lines());
  return line;
}

void StreamLinks::give_line_back(std::byte* line) {
  const MutexLock lock(lines_mutex_);
  lines_.push_back(line);
}

Result<std::unique_ptr<StreamLink>> StreamLinks::make() {
  const uint32_t most = way_ == GateWay::kWord ? kMostAheadByWords : kMostAheadByEvents;
  auto link = std::make_unique<StreamLink>();
  link->gate = TRY(Gate::create(device_, way_, word_at(TRY(take_line()))));
  link->mark = TRY(Mark::create(device_, way_, most, word_at(TRY(take_line()))));
  const MutexLock lock(mutex_);
  given_back_.reserve(made_ + 1);
  ++made_;
  return link;
}

// A pair whose old stream will still write to the mark's word would confuse its next stream.
std::unique_ptr<StreamLink> StreamLinks::used_again() {
  const auto found = std::ranges::find_if(given_back_, [](const std::unique_ptr<StreamLink>& link) {
    const Result<bool> clear = link->mark->is_clear();
    return clear.ok() && clear.value();
  });
  if (found == given_back_.end()) return nullptr;
  std::unique_ptr<StreamLink> link = std::move(*found);
  given_back_.erase(found);
  return link;
}

Result<std::unique_ptr<StreamLink>> StreamLinks::take() {
  {
    const MutexLock lock(mutex_);
    if (auto link = used_again()) return link;
  }
  return make();
}

Result<uint32_t*> StreamLinks::take_word() {
  return word_at(TRY(take_line()));
}

void StreamLinks::give_word_back(uint32_t* word) {
  give_line_back(reinterpret_cast<std::byte*>(word));
}

void StreamLinks::give_back(std::unique_ptr<StreamLink> link) {
  const MutexLock lock(mutex_);
  given_back_.push_back(std::move(link));
}

}  // namespace trestle
