#include "gradient/executor/links/link_meeting.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/fork.h"

namespace trestle {
namespace {

constexpr size_t kMostLinks = 16;
constexpr const char* kCome = "come";
constexpr const char* kGone = "gone";
constexpr const char* kSame = "same";
constexpr const char* kDiffer = "differ";

// Removes the text up to the next space from `rest`, and returns it.
std::string_view next_word(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

std::optional<uint64_t> number_of(std::string_view word) {
  uint64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size()) return std::nullopt;
  return number;
}

std::string notice(const char* kind, uint64_t number, const std::string& rest = "") {
  return std::string(kind) + " " + std::to_string(number) + (rest.empty() ? "" : " ") + rest;
}

// For a sentence: the communicators of another rank, named by their places in rank 0's list.
std::string described(const std::vector<std::string>& links, const std::vector<std::string>& first) {
  std::string text = std::to_string(links.size()) + " (";
  for (size_t i = 0; i < links.size(); ++i) {
    if (i > 0) text += ", ";
    const auto found = std::find(first.begin(), first.end(), links[i]);
    text += found == first.end() ? "one that rank 0 did not give"
                                 : "link " + std::to_string(found - first.begin()) + " of rank 0";
  }
  return text + ")";
}

}  // namespace

// ---- the judged ones

bool JudgedMeetings::contains(uint64_t number) const {
  const MutexLock lock(mutex_);
  return numbers_.contains(number);
}

void JudgedMeetings::add(uint64_t number) {
  const MutexLock lock(mutex_);
  numbers_.insert(number);
  by_age_.push_back(number);
  if (by_age_.size() <= kMost) return;
  numbers_.erase(by_age_.front());
  by_age_.pop_front();
}

JudgedMeetings& JudgedMeetings::process() {
  static constinit PerProcess<JudgedMeetings> judged;
  return judged.get();
}

// ---- one meeting

LinkMeeting::LinkMeeting(LinkAccess::Place place, uint64_t number, JudgedMeetings& judged)
    : place_(std::move(place)), number_(number), judged_(judged) {}

void LinkMeeting::come(const Leave& leave) const {
  if (place_.rank == 0) return;
  std::string list;
  for (const std::string& link : place_.links) list.append(list.empty() ? "" : " ").append(link);
  for (size_t link = 0; link < place_.links.size(); ++link) leave(link, 0, notice(kCome, number_, list));
}

void LinkMeeting::go(const Leave& leave) const {
  if (place_.rank == 0) return;
  for (size_t link = 0; link < place_.links.size(); ++link) leave(link, 0, notice(kGone, number_));
}

bool LinkMeeting::look(const Latest& latest, const Leave& leave) {
  if (place_.rank != 0) return look_for_verdict(latest);
  while (awaited() < place_.ranks) {
    std::optional<Guest> next = guest(awaited(), latest);
    if (!next) return false;
    guests_.push_back(*std::move(next));
  }
  result_ = verdict();
  for (size_t i = 0; i < guests_.size(); ++i) {
    const Guest& one = guests_[i];
    judged_.add(one.number);
    leave(one.link, static_cast<int>(i) + 1,
          result_.ok() ? notice(kSame, one.number) : notice(kDiffer, one.number, result_.error().message));
  }
  return true;
}

bool LinkMeeting::look_for_verdict(const Latest& latest) {
  for (size_t link = 0; link < place_.links.size(); ++link) {
    const std::string text = latest(link, 0);
    std::string_view rest = text;
    const std::string_view kind = next_word(rest);
    if ((kind != kSame && kind != kDiffer) || number_of(next_word(rest)) != number_) continue;
    if (kind == kDiffer) result_ = Error{Code::kInvalidUsage, std::string(rest)};
    return true;
  }
  return false;
}

// The rank's notice, if it has left one on some link of this rank that was not judged yet.
std::optional<LinkMeeting::Guest> LinkMeeting::guest(int rank, const Latest& latest) const {
  for (size_t link = 0; link < place_.links.size(); ++link) {
    const std::string text = latest(link, rank);
    std::string_view rest = text;
    if (next_word(rest) != kCome) continue;
    const std::optional<uint64_t> number = number_of(next_word(rest));
    if (!number || judged_.contains(*number)) continue;
    Guest guest{*number, link, {}};
    while (!rest.empty() && guest.links.size() < kMostLinks) guest.links.emplace_back(next_word(rest));
    return guest;
  }
  return std::nullopt;
}

Status LinkMeeting::verdict() const {
  for (size_t i = 0; i < guests_.size(); ++i) {
    if (guests_[i].links == place_.links) continue;
    const std::string count = std::to_string(place_.links.size());
    return Error{Code::kInvalidUsage,
                 "rank 0 gave GradCreate " + count + (place_.links.size() == 1 ? " communicator" : " communicators") +
                     ", and rank " + std::to_string(i + 1) + " gave " + described(guests_[i].links, place_.links) +
                     ": all ranks give it the same communicators in the same order"};
  }
  return {};
}

Status meet_on_links(LinkAccess& links, const char* function) {
  const LinkMeeting::Leave leave = [&links](size_t link, int to, const std::string& text) {
    links.leave_notice(link, to, text);
  };
  const LinkMeeting::Latest latest = [&links](size_t link, int from) { return links.latest_notice(link, from); };
  LinkMeeting meeting(links.place(), links.unique_number(), JudgedMeetings::process());
  meeting.come(leave);
  const Status waited = links.wait(
      function, [&] { return meeting.look(latest, leave); }, [&] { return meeting.awaited(); });
  meeting.go(leave);
  TRY(waited);
  return meeting.result();
}

}  // namespace trestle
