// What happens when rails fail, and how they come back.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transport/message/peer_rails.h"

namespace trestle {
namespace {

constexpr int64_t kFirstConnectNs = 10'000'000'000;
constexpr int64_t kConnectNs = 2'000'000'000;  // for an attempt to make a connection again

}  // namespace

bool PeerRails::others_up(size_t rail) const {
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (i != rail && ways_[i].state == RailState::kUp) return true;
  }
  return false;
}

bool PeerRails::others_carry(size_t rail) const {
  for (size_t i = 0; i < ways_.size(); ++i) {
    const bool coming = ways_[i].state == RailState::kConnecting && !ways_[i].was_up && ways_[i].why.empty();
    if (i != rail && (ways_[i].state == RailState::kUp || coming)) return true;
  }
  return false;
}

void PeerRails::connected(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  CHECK(way.sent.empty() && !unsettled(rail), "a connection begins before the end of the last one is settled");
  way.state = RailState::kUp;
  way.was_up = true;
  ++way.epoch;
  begin_counts(way);
  way.goodput = {};
  way.record->connected(now_ns);
  tell_load(way);
  way.owes_probe = way.owes_question = false;
  way.asked_ns = now_ns;
  way.unmeasured = true;
  way.probe_pause_ns = kFirstProbePauseNs;
  way.confirmed_ns = way.used_ns = now_ns;
  way.answered_ns = 0;  // the peer may not know of the connection yet
  way.backoff_ns = 0;
  measure_new(now_ns);
  if (!way.why.empty()) hooks_.changed(rail, true, way.why);
  way.why.clear();
}

void PeerRails::begin_counts(Way& way) {
  way.confirmed = way.received = way.told = way.given = way.written = 0;
  way.doubted_ns = way.retry_ns = 0;
  way.owes_request = false;
  way.requested_ns = 0;
}

bool PeerRails::lost(size_t rail, const std::string& why, int64_t now_ns) {
  Way& way = ways_[rail];
  if (way.state == RailState::kUp) {
    end_here(rail, why, now_ns);
  } else if (way.state == RailState::kConnecting) {
    way.state = RailState::kDown;
    way.why = why;
    way.record->down(why, now_ns);
    way.backoff_ns = next_rail_backoff_ns(way.backoff_ns);
    way.retry_ns = now_ns + way.backoff_ns;
  }
  return others_carry(rail);
}

void PeerRails::closed(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  way.state = RailState::kDown;
  way.record->down("the other rank has left in order", now_ns);
  way.retry_ns = INT64_MAX;
  send_again(way);
}

// Nothing of the connection is read any more, so the count that is told to the peer is final.
void PeerRails::end_here(size_t rail, const std::string& why, int64_t now_ns) {
  Way& way = ways_[rail];
  protocol_.interrupted(rail);
  way.suspicion->ended(now_ns, options_.silence_ns);
  way.state = RailState::kEnding;
  way.why = why;
  way.owes_end = true;
  way.owes_probe = way.owes_question = way.owes_request = false;
  way.goodput.forget_under_way();
  way.record->lost(RailState::kEnding, why, now_ns);
  tell_load(way);
  way.backoff_ns = kFirstRailBackoffNs;
  way.retry_ns = now_ns + way.backoff_ns;
  if (others_carry(rail)) hooks_.changed(rail, false, why);
}

// The peer may have had a connection that never became one on this side.
bool PeerRails::is_unseen(const Way& way, const Frame& header) const {
  return header.tag.operation == way.epoch + uint64_t{1} && way.state != RailState::kUp &&
         way.state != RailState::kEnding;
}

void PeerRails::see(Way& way, int64_t now_ns) {
  ++way.epoch;
  way.record->connected(now_ns);
  begin_counts(way);
}

// The peer has ended its side of a connection over another rail than this frame came over.
Status PeerRails::peer_ended(size_t rail, const Frame& header, int64_t now_ns) {
  const size_t ended = header.tag.phase;
  if (ended >= ways_.size() || ended == rail)
    return Error{Code::kRemoteError, "ended a rail that it does not have, or the one over which it says so"};
  Way& way = ways_[ended];
  const bool unseen = is_unseen(way, header);
  if (header.tag.operation != way.epoch && !unseen)
    return Error{Code::kRemoteError, "ended a connection that was not its last one"};
  if (way.peers_count.has_value() || (way.state != RailState::kUp && way.state != RailState::kEnding && !unseen))
    return Error{Code::kRemoteError, "ended a connection twice"};
  if (way.state != RailState::kEnding) hooks_.drop(ended);
  if (unseen) see(way, now_ns);
  if (way.state != RailState::kEnding) end_here(ended, "the other side has ended it", now_ns);
  way.peers_count = header.bytes;
  return settle(way, now_ns);
}

// It may come late: for a connection that has ended, or over the rail itself, which has come back.
Status PeerRails::peer_requests_end(size_t rail, const Frame& header, int64_t now_ns) {
  const size_t silent = header.tag.phase;
  if (silent >= ways_.size() || !options_.ends_silent_rails)
    return Error{Code::kRemoteError, "asked for the end of a rail that it does not have, or may end itself"};
  Way& way = ways_[silent];
  const bool unseen = is_unseen(way, header);
  if (silent == rail || (!unseen && (way.state != RailState::kUp || header.tag.operation != way.epoch))) return {};
  hooks_.drop(silent);
  if (unseen) see(way, now_ns);
  end_here(silent, "nothing was acknowledged to the other side", now_ns);
  return {};
}

// Both sides have ended the connection, and this rank knows what has come.
Status PeerRails::settle(Way& way, int64_t now_ns) {
  TRY(confirm(way, *way.peers_count, now_ns));
  way.peers_count.reset();
  send_again(way);
  way.state = RailState::kDown;
  way.record->down(way.why, now_ns);
  return {};
}

void PeerRails::send_again(Way& way) {
  // The oldest first, behind those of a rail that failed earlier. The order matters only for speed.
  for (Sent& sent : way.sent) {
    if (sent.fragment.header.type == FrameType::kProbe) continue;
    way.record->sent_again();
    if (sent.control) {
      again_control_.push_back(sent.fragment.header);
      continue;
    }
    again_bytes_ += sent.fragment.header.length;
    again_.push_back(sent);
  }
  way.sent.clear();
  way.goodput.forget_under_way();
  tell_load(way);
}

// A first attempt has no time limit as long as no other rail is up. Then it gets one, so that others_carry() does not
// count a rail for ever that never connects.
void PeerRails::expect_first_connection(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  if (way.state != RailState::kConnecting || way.was_up || !way.why.empty() || !others_up(rail)) return;
  if (way.retry_ns == 0) way.retry_ns = now_ns + kFirstConnectNs;
  if (now_ns < way.retry_ns) return;
  hooks_.drop(rail);
  lost(rail, "no connection was made", now_ns);
}

void PeerRails::try_again(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  way.state = RailState::kConnecting;
  way.retry_ns = now_ns + kConnectNs;
  way.may_be_in_line = true;
  if (const Status reached = hooks_.reach(rail); !reached.ok()) lost(rail, reached.error().message, now_ns);
}

// An attempt may wait in line behind attempts to other peers. Its time limit begins when the attempt begins.
void PeerRails::begin_limit(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  if (way.state != RailState::kConnecting) return;
  const bool in_line = hooks_.in_line(rail);
  const bool first = !way.was_up && way.why.empty();
  if (in_line || way.may_be_in_line) way.retry_ns = first ? 0 : now_ns + kConnectNs;
  way.may_be_in_line = in_line;
}

bool PeerRails::may_begin_row(const Way& way, int64_t now_ns) const {
  return way.probes->begin_row(given_bytes_ - way.probed_at + waiting_bytes(), way.unmeasured, now_ns);
}

// Measures new connections, except those that the data which they carried meanwhile has measured.
void PeerRails::measure_new(int64_t now_ns) {
  for (Way& way : ways_) {
    if (!way.unmeasured || way.state != RailState::kUp) continue;
    if (way.goodput.rate() > 0) {
      way.unmeasured = false;
    } else if (may_begin_row(way, now_ns)) {
      way.unmeasured = false;
      way.owes_probe = true;
    }
  }
}

// A rail that carries nothing of what waits, while others go on, is measured soon, and then less often.
void PeerRails::watch_idle(size_t rail, int64_t now_ns) {
  Way& way = ways_[rail];
  if (way.unmeasured || way.owes_probe || carried_ns_ - way.used_ns < way.probe_pause_ns) return;
  if (way.goodput.queued() > 0 || may_take(rail) > 0 || !may_begin_row(way, now_ns)) return;
  way.owes_probe = true;
  way.probe_pause_ns = next_probe_pause_ns(way.probe_pause_ns);
}

bool PeerRails::tick(int64_t now_ns) {
  now_ns_ = now_ns;
  for (size_t i = 0; i < ways_.size(); ++i) {
    Way& way = ways_[i];
    begin_limit(i, now_ns);
    expect_first_connection(i, now_ns);
    if (silent(i, now_ns) && !judge(i, now_ns)) return false;
    const bool again = way.was_up || !way.why.empty();
    // A rail that is lost with the goodbye on it is not made again: there would be none for it.
    if (way.state == RailState::kDown && !unsettled(i) && now_ns >= way.retry_ns && !protocol_.is_closed()) {
      try_again(i, now_ns);
    } else if (way.state == RailState::kConnecting && again && now_ns >= way.retry_ns) {
      hooks_.drop(i);
      lost(i, "no answer to an attempt to connect", now_ns);
    }
    if (way.state == RailState::kUp) ask_if_doubted(way, now_ns);
    if (way.state == RailState::kUp) watch_idle(i, now_ns);
  }
  measure_new(now_ns);
  ticked_ns_ = now_ns;
  return true;
}

bool PeerRails::needs_ticks() const {
  return std::any_of(ways_.begin(), ways_.end(),
                     [](const Way& way) { return way.state != RailState::kUp || !way.sent.empty(); });
}

std::string PeerRails::story(int64_t now_ns) const {
  std::string text;
  for (const Way& way : ways_) text += (text.empty() ? "" : "; ") + way.record->story(now_ns);
  return text;
}

}  // namespace trestle
