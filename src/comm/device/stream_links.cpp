#include "comm/device/stream_links.h"

#include <algorithm>
#include <new>

namespace trestle {

namespace {

// Words that the host and a device write have cache lines of their own.
constexpr size_t kLineBytes = 64;
constexpr size_t kPairsAtOnce = 512;
// More than anybody submits ahead, and far from where the numbers wrap around.
constexpr uint32_t kMostAheadByWords = uint32_t{1} << 20;

uint32_t* word_at(std::byte* place) {
  return new (place) uint32_t(0);
}

}  // namespace

Status StreamLinks::prepare() {
  const MutexLock lock(mutex_);
  return add_words();
}

Status StreamLinks::add_words() {
  words_ = TRY(device_.allocate_pinned(2 * kLineBytes * kPairsAtOnce));
  pairs_left_ = kPairsAtOnce;
  return {};
}

Result<std::unique_ptr<StreamLink>> StreamLinks::make() {
  if (pairs_left_ == 0) TRY(add_words());
  const uint32_t most = way_ == GateWay::kWord ? kMostAheadByWords : kMostAheadByEvents;
  auto link = std::make_unique<StreamLink>();
  link->gate = TRY(Gate::create(device_, way_, word_at(words_)));
  link->mark = TRY(Mark::create(device_, way_, most, word_at(words_ + kLineBytes)));
  given_back_.reserve(made_ + 1);
  ++made_;
  words_ += 2 * kLineBytes;
  --pairs_left_;
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
  const MutexLock lock(mutex_);
  if (auto link = used_again()) return link;
  return make();
}

Result<uint32_t*> StreamLinks::take_word() {
  const MutexLock lock(mutex_);
  if (!words_of_graphs_.empty()) {
    uint32_t* const word = words_of_graphs_.back();
    words_of_graphs_.pop_back();
    return word;
  }
  if (pairs_left_ == 0) TRY(add_words());
  words_of_graphs_.reserve(words_made_ + 2);
  words_made_ += 2;
  uint32_t* const word = word_at(words_);
  words_of_graphs_.push_back(word_at(words_ + kLineBytes));
  words_ += 2 * kLineBytes;
  --pairs_left_;
  return word;
}

void StreamLinks::give_word_back(uint32_t* word) {
  const MutexLock lock(mutex_);
  words_of_graphs_.push_back(word);
}

void StreamLinks::give_back(std::unique_ptr<StreamLink> link) {
  const MutexLock lock(mutex_);
  given_back_.push_back(std::move(link));
}

}  // namespace trestle
