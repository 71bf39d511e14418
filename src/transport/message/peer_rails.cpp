// What goes over which rail.
#include "transport/message/peer_rails.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "transport/pieces.h"

namespace trestle {
namespace {

constexpr std::array<std::byte, kProbeBytes> kProbe{};
constexpr ConstPiece kProbePiece{kProbe.data(), kProbe.size(), nullptr};
constexpr uint64_t kQuestionBytes = 64;                   // few: hundreds of pairs may ask at once
constexpr uint64_t kControlFrameBytes = 2 * kFrameBytes;  // of a header without payload, with the network's own headers

// Of PeerRails, and not of messages.
bool is_own(FrameType type) {
  return type == FrameType::kAck || type == FrameType::kRailEnd || type == FrameType::kProbe ||
         type == FrameType::kRailSilent;
}

// A probe that measures, and no question.
bool is_of_row(const Frame& frame) {
  return frame.type == FrameType::kProbe && measures(frame.length);
}

// Acknowledgements and goodbyes are not counted: they are never sent again.
bool counts(FrameType type) {
  return type != FrameType::kAck && type != FrameType::kGoodbye && type != FrameType::kGoodbyeSeen;
}

}  // namespace

PeerRails::PeerRails(PeerProtocol& protocol, BufferPool& pool, std::span<const Given> rails, const Options& options,
                     Hooks hooks)
    : protocol_(protocol),
      pool_(pool),
      options_(options),
      hooks_(std::move(hooks)),
      ways_(rails.size()),
      loads_(rails.size()) {
  for (size_t i = 0; i < rails.size(); ++i) {
    ways_[i].stated_rate = rails[i].rate * 1e-9;
    ways_[i].record = rails[i].record;
    ways_[i].probes = rails[i].probes;
    ways_[i].suspicion = rails[i].suspicion;
  }
}

PeerRails::~PeerRails() {
  const auto free_copies = [this](std::deque<Sent>& all) {
    for (Sent& sent : all) {
      if (sent.copy != nullptr) pool_.give(sent.copy, sent.fragment.header.length);
    }
  };
  for (Way& way : ways_) free_copies(way.sent);
  free_copies(again_);
}

void PeerRails::tell_load(const Way& way) const {
  way.record->load(way.goodput.queued(), way.state == RailState::kUp ? way.goodput.rate() * 1e9 : 0);
}

// ---- shares

RailLoad PeerRails::load_of(const Way& way) const {
  if (way.state != RailState::kUp) return {};
  const double rate = way.goodput.rate() > 0 ? way.goodput.rate() : way.stated_rate;
  const int64_t oldest_ns = way.sent.empty() ? now_ns_ : way.sent.front().mark.sent_ns;
  return {rate, static_cast<double>(way.goodput.round_trip_ns()), static_cast<double>(way.goodput.queued()),
          static_cast<double>(way.goodput.most_under_way()), static_cast<double>(now_ns_ - oldest_ns)};
}

void PeerRails::update_loads() const {
  for (size_t i = 0; i < ways_.size(); ++i) loads_[i] = load_of(ways_[i]);
  const auto up = [](const Way& way) { return way.state == RailState::kUp; };
  assume_first(loads_, static_cast<size_t>(std::find_if(ways_.begin(), ways_.end(), up) - ways_.begin()));
}

size_t PeerRails::fastest(uint64_t bytes) const {
  update_loads();
  return fastest_rail(loads_, static_cast<double>(bytes));
}

// Bytes of the next message that the rail may carry now; of messages that stay whole all or nothing. A message without
// bytes is 1.
uint64_t PeerRails::may_take(size_t rail) const {
  const Way& way = ways_[rail];
  if (way.state != RailState::kUp || (again_.empty() && !protocol_.has_messages())) return 0;
  const bool again = !again_.empty();
  WaitingBytes waiting;
  waiting.front = std::max<uint64_t>(1, again ? again_.front().fragment.header.length : protocol_.front_bytes());
  waiting.front_is_whole = again ? again_.front().whole() : protocol_.front_is_whole();
  waiting.all = waiting_bytes();
  const RailLoad load = load_of(way);
  if (window_is_full(load, waiting.front)) return 0;
  update_loads();
  return bytes_to_take(loads_, rail, window_bytes(load), waiting);
}

uint64_t PeerRails::hold_bytes(size_t rail) const {
  return bytes_to_hold(load_of(ways_[rail]).rate);
}

// ---- output

bool PeerRails::carries_control(size_t rail) const {
  return ways_[rail].state == RailState::kUp && fastest(kFrameBytes) == rail;
}

bool PeerRails::has_output(size_t rail) const {
  const Way& way = ways_[rail];
  if (way.state != RailState::kUp) return false;
  if (way.told < way.received || way.owes_probe || way.owes_question || owes_request(rail) || may_take(rail) > 0)
    return true;
  if (protocol_.has_goodbye(rail) && goodbye_may_go()) return true;
  const bool own =
      !again_control_.empty() || std::any_of(ways_.begin(), ways_.end(), [](const Way& w) { return w.owes_end; });
  return (own || protocol_.has_control()) && carries_control(rail);
}

// Ends of rails, and headers that were lost with another rail.
bool PeerRails::next_own_control(Frame& header) {
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (!std::exchange(ways_[i].owes_end, false)) continue;
    header = {};
    header.type = FrameType::kRailEnd;
    header.tag.operation = ways_[i].epoch;
    header.tag.phase = static_cast<uint32_t>(i);
    header.bytes = ways_[i].received;
    return true;
  }
  if (again_control_.empty()) return false;
  header = again_control_.front();
  again_control_.pop_front();
  return true;
}

// A request about a silent rail goes neither over that rail nor over another one that may be silent.
bool PeerRails::owes_request(size_t over) const {
  if (ways_[over].doubted_ns != 0) return false;
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (i != over && ways_[i].owes_request) return true;
  }
  return false;
}

bool PeerRails::next_request(size_t over, Frame& header) {
  if (!owes_request(over)) return false;
  size_t silent = 0;
  while (silent == over || !ways_[silent].owes_request) ++silent;
  ways_[silent].owes_request = false;
  header = {};
  header.type = FrameType::kRailSilent;
  header.tag.operation = ways_[silent].epoch;
  header.tag.phase = static_cast<uint32_t>(silent);
  return true;
}

void PeerRails::remember_control(Way& way, const Frame& header, int64_t now_ns) {
  Sent& sent = way.sent.emplace_back();
  sent.control = true;
  sent.fragment.header = header;
  sent.mark = way.goodput.send(kControlFrameBytes, now_ns, true);
  if (way.sent.size() == 1) way.confirmed_ns = now_ns;
}

bool PeerRails::next_control(size_t rail, Frame& header, int64_t now_ns) {
  now_ns_ = now_ns;
  Way& way = ways_[rail];
  if (way.state != RailState::kUp) return false;
  if (way.told < way.received) {
    way.told = way.received;
    header = {};
    header.type = FrameType::kAck;
    header.bytes = way.received;
    return true;
  }
  if (next_request(rail, header) ||
      (carries_control(rail) && (next_own_control(header) || protocol_.next_control(header)))) {
    remember_control(way, header, now_ns);
    return true;
  }
  // The goodbye is the last frame over every rail. It goes when all frames before it have arrived, or in a hurry.
  return protocol_.has_goodbye(rail) && goodbye_may_go() && protocol_.next_goodbye(rail, header);
}

bool PeerRails::goodbye_may_go() const {
  return all_arrived() || (hurry_ && again_.empty() && again_control_.empty() && !protocol_.has_control());
}

bool PeerRails::all_arrived() const {
  const auto settled = [](const Way& way) { return way.sent.empty() && !way.owes_end; };
  return again_.empty() && again_control_.empty() && !protocol_.has_control() &&
         std::all_of(ways_.begin(), ways_.end(), settled);
}

bool PeerRails::take_probe(size_t rail, Fragment& fragment, int64_t now_ns) {
  Way& way = ways_[rail];
  const bool asks = std::exchange(way.owes_question, false);
  const bool probes = std::exchange(way.owes_probe, false);
  if (!asks && !probes) return false;
  if (probes) way.probed_at = given_bytes_;
  Sent taken;
  taken.fragment.header.type = FrameType::kProbe;
  taken.fragment.header.bytes = taken.fragment.header.length = probes ? kProbeBytes : kQuestionBytes;
  taken.fragment.pieces = {&kProbePiece, 1};
  give(way, std::move(taken), fragment, now_ns);
  return true;
}

void PeerRails::take_again(uint64_t most, Sent& taken) {
  Sent& front = again_.front();
  Frame& rest = front.fragment.header;
  taken = front;
  const uint64_t length = front.whole() ? rest.length : std::min(rest.length, most);
  taken.fragment.header.length = length;
  again_bytes_ -= length;
  if (length == rest.length) {
    again_.pop_front();
    return;
  }
  rest.credit = 0;
  rest.at += length;
  rest.length -= length;
  front.fragment.skip += length;
}

// The request of a message that stays whole is done at once. So a copy of its bytes is kept.
void PeerRails::keep_copy(Sent& taken) {
  const Fragment& fragment = taken.fragment;
  const uint64_t bytes = fragment.header.length;
  if (bytes > 0) {
    taken.copy = pool_.take(bytes);
    if (taken.copy == nullptr) return;  // without memory the request is done when the message has come
    const Piece to{taken.copy, bytes, nullptr};
    copy_pieces(fragment.pieces, {&to, 1});
  }
  protocol_.arrived(fragment);
  taken.fragment.request = nullptr;
  taken.fragment.pieces = {};
}

void PeerRails::give(Way& way, Sent&& taken, Fragment& fragment, int64_t now_ns) {
  const uint64_t bytes = taken.fragment.header.length;
  const bool starved = is_starved(waiting_bytes(), way.goodput.queued() + bytes, load_of(way));
  if (way.sent.empty()) way.confirmed_ns = now_ns;
  Sent& kept = way.sent.emplace_back(std::move(taken));
  kept.mark = way.goodput.send(bytes, now_ns, starved);
  kept.order = ++way.given;
  if (kept.copy != nullptr) {
    kept.piece = {kept.copy, bytes, nullptr};
    kept.fragment.pieces = {&kept.piece, 1};
    kept.fragment.skip = 0;
  }
  if (measures(bytes)) way.used_ns = now_ns;
  way.record->sent(bytes);
  tell_load(way);
  fragment = kept.fragment;
  if (fragment.header.type == FrameType::kProbe) return;
  carried_ns_ = now_ns;
  given_bytes_ += bytes;
  measure_new(now_ns);
}

bool PeerRails::next_fragment(size_t rail, Fragment& fragment, int64_t now_ns) {
  now_ns_ = now_ns;
  Way& way = ways_[rail];
  if (way.state != RailState::kUp) return false;
  if (take_probe(rail, fragment, now_ns)) return true;
  const uint64_t most = may_take(rail);
  if (most == 0) return false;
  Sent taken;
  if (!again_.empty()) {
    take_again(most, taken);
  } else {
    const bool whole = protocol_.front_is_whole();
    CHECK(protocol_.next_fragment(most, taken.fragment), "a message that may go is not there");
    if (whole) keep_copy(taken);
  }
  give(way, std::move(taken), fragment, now_ns);
  return true;
}

// ---- input

Result<std::span<const Piece>> PeerRails::begin(size_t rail, const Frame& header, int64_t now_ns) {
  now_ns_ = now_ns;
  Way& way = ways_[rail];
  way.incoming = header;
  switch (header.type) {
    case FrameType::kAck:
      TRY(confirm(way, header.bytes, now_ns));
      return std::span<const Piece>{};
    case FrameType::kRailEnd:
      TRY(peer_ended(rail, header, now_ns));
      return std::span<const Piece>{};
    case FrameType::kRailSilent:
      TRY(peer_requests_end(rail, header, now_ns));
      return std::span<const Piece>{};
    case FrameType::kProbe:
      return std::span<const Piece>{};
    default:
      return protocol_.begin(header, rail);
  }
}

Status PeerRails::end(size_t rail) {
  Way& way = ways_[rail];
  const Frame& header = way.incoming;
  if (!is_own(header.type)) protocol_.end(rail);
  if (counts(header.type)) ++way.received;
  if (has_payload(header.type)) way.record->received(header.length);
  return {};
}

Status PeerRails::confirm(Way& way, uint64_t count, int64_t now_ns) {
  if (count < way.confirmed || count - way.confirmed > way.sent.size())
    return Error{Code::kRemoteError, "acknowledged what was not sent"};
  if (count == way.confirmed) return {};
  // The peer cannot have what the rail has not written yet. After the end of a connection the rail holds nothing.
  for (size_t i = count - way.confirmed; i-- > 0 && way.state == RailState::kUp;) {
    if (way.sent[i].control) continue;
    if (way.sent[i].order > way.written) return Error{Code::kRemoteError, "acknowledged what was not sent"};
    break;
  }
  way.confirmed_ns = way.answered_ns = now_ns;
  way.owes_request = false;
  way.requested_ns = 0;
  const Goodput::Mark newest = way.sent[count - way.confirmed - 1].mark;
  for (; way.confirmed < count; ++way.confirmed) {
    Sent& sent = way.sent.front();
    way.goodput.deliver(sent.mark);
    if (!sent.control) way.record->acknowledged(sent.fragment.header.length);
    if (is_of_row(sent.fragment.header) && sent.mark.rides && !protocol_.is_closed()) way.owes_probe = true;
    if (sent.control) {
      protocol_.control_arrived(sent.fragment.header);
    } else {
      protocol_.arrived(sent.fragment);
    }
    if (sent.copy != nullptr) pool_.give(sent.copy, sent.fragment.header.length);
    way.sent.pop_front();
  }
  const double before = way.goodput.rate();
  way.goodput.sample(newest, now_ns);
  if (way.goodput.rate() > 2 * before) way.probe_pause_ns = kFirstProbePauseNs;
  tell_load(way);
  return {};
}

}  // namespace trestle
