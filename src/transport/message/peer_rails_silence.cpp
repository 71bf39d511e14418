// Which rail is silent: nothing is acknowledged over it, while the peer answers over others.
//
// Times are parts of Options::silence_ns. After 4/16 without acknowledgement a pair doubts a rail, asks over the others
// whether the peer is there, and lets this rank's other pairs ask theirs over the doubted one. It leaves the rail after
// 10/16, or after 4/16 if a connection of another pair has ended. TCP sends again after 0.2, 0.6 and 1.4 s, so that
// with 3 s three packets in a row may be lost, or two where a connection has ended.
#include <algorithm>

#include "transport/message/peer_rails.h"

namespace trestle {
namespace {

constexpr int64_t kAwayNs = 200'000'000;  // without a tick: this rank was not driven
// Rails that work have some milliseconds of data before them, and links have round trips. So doubts of other pairs make
// no time limit shorter than this.
constexpr int64_t kLeastSuspectedNs = 100'000'000;

}  // namespace

std::string PeerRails::silence_text(const Way& way, int64_t now_ns) const {
  return "nothing was acknowledged for " + std::to_string((now_ns - unanswered_since(way)) / 1'000'000) + " ms";
}

// Since when the rail should have answered. It must have something under way.
int64_t PeerRails::unanswered_since(const Way& way) const {
  return std::max(way.confirmed_ns, way.sent.front().mark.sent_ns);
}

// Asks those that have not answered for a while. Now and then: where rails are overloaded, more would make them worse.
// Returns when one answered last.
int64_t PeerRails::ask_others(size_t rail, int64_t now_ns) {
  int64_t answered_ns = INT64_MIN;
  for (size_t i = 0; i < ways_.size(); ++i) {
    Way& other = ways_[i];
    if (i == rail || other.state != RailState::kUp) continue;
    answered_ns = std::max(answered_ns, other.answered_ns);
    if (other.sent.empty() && now_ns - other.answered_ns >= options_.silence_ns / 8) other.owes_question = true;
  }
  return answered_ns;
}

// Only answers over other rails, after this one should have answered, prove that the peer is there. If all rails are
// silent, the peer may be frozen. When the peer or this rank goes on, one rail answers first, so the others get a
// moment to answer, too.
bool PeerRails::silent(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  if (way.state != RailState::kUp || way.sent.empty()) return false;
  const int64_t part_ns = options_.silence_ns / 16;
  const int64_t since_ns = unanswered_since(way);
  if (now_ns - since_ns < 4 * part_ns || now_ns - ticked_ns_ > std::max(2 * part_ns, kAwayNs)) {
    way.doubted_ns = 0;
    return false;
  }
  const int64_t answered_ns = ask_others(rail, now_ns);
  if (answered_ns < since_ns + 4 * part_ns || answered_ns <= now_ns - std::max(8 * part_ns, kAwayNs)) {
    way.doubted_ns = 0;
    return false;
  }
  if (way.doubted_ns == 0) {
    way.doubted_ns = std::max(answered_ns, ticked_ns_);  // an older answer was there when this rank came back
    way.suspicion->doubted_ns = now_ns;
  }
  // The first pair of ranks leaves the rail early. So the pairs that notice because of it can leave it within
  // silence_ns, too.
  const int64_t first_ns = 10 * part_ns;
  if (!way.suspicion->has_ended(now_ns, options_.silence_ns))
    return now_ns - since_ns >= first_ns && now_ns - way.doubted_ns >= 2 * part_ns;
  const int64_t next_ns = std::min(first_ns, std::max(4 * part_ns, kLeastSuspectedNs));
  return now_ns - since_ns >= next_ns && now_ns - way.doubted_ns >= part_ns;
}

// Silence shows only on data under way, so a rail without any gets a question. After a goodbye nothing may follow.
void PeerRails::ask_if_doubted(Way& way, int64_t now_ns) {
  if (way.suspicion->doubted_ns <= way.asked_ns || now_ns - way.asked_ns < options_.silence_ns / 8) return;
  way.asked_ns = now_ns;
  if (way.sent.empty() && !protocol_.is_closed()) way.owes_question = true;
}

// A rail is silent. False: no other one is left.
bool PeerRails::judge(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  if (options_.ends_silent_rails) {
    const std::string why = silence_text(way, now_ns);
    hooks_.drop(rail);
    return lost(rail, why, now_ns);
  }
  if (way.requested_ns != 0 && now_ns - way.requested_ns < options_.silence_ns) return true;
  way.owes_request = true;
  way.requested_ns = now_ns;
  return true;
}

}  // namespace trestle
