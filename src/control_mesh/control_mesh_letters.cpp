// ControlMesh::Impl: letters from any rank to any other. A letter's frame holds the direction in `step`; its payload is
// the receiver i32, the sender i32, the text.
#include "base/text/byte_text.h"
#include "control_mesh/control_mesh_impl.h"

namespace trestle {

namespace {

enum Way : uint8_t { kUp, kDown };  // directions around the ring of ranks
constexpr size_t kLetterHeader = 2 * sizeof(int32_t);

}  // namespace

void ControlMesh::Impl::send_letter(int32_t to, const std::string& text) {
  CHECK(to >= 0 && to < settings_.ranks && to != settings_.rank, "a letter to no other rank");
  CHECK(text.size() <= kMostLetterBytes, "a letter that is too long");
  if (failure_ || closed_) return;
  ControlFrame letter;
  letter.kind = ControlKind::kLetter;
  letter.payload = ByteWriter().integer(to).integer(settings_.rank).raw(text).take();
  for (const Way way : {kUp, kDown}) {
    letter.step = way;
    pass_on(to, letter);
  }
}

// Greedy routing: sends the letter to the farthest neighbour that is not beyond the receiver. Every hop at least halves
// the remaining distance. A neighbour whose connection is moving gets it only if there is no other.
void ControlMesh::Impl::pass_on(int32_t to, const ControlFrame& letter) {
  const std::vector<size_t>& side = letter.step == kUp ? out_ : in_;
  const int64_t ahead = letter.step == kUp ? int64_t{to} - settings_.rank : int64_t{settings_.rank} - to;
  const int64_t distance = (ahead + settings_.ranks) % settings_.ranks;
  for (const bool moving : {false, true}) {
    for (size_t k = side.size(); k-- > 0;) {
      const ControlLink& link = links_[side[k]];
      if ((int64_t{1} << k) > distance || !(moving ? link.away() : link.open())) continue;
      return send(side[k], letter);
    }
  }
}

void ControlMesh::Impl::take_letter(size_t link, ControlFrame& frame) {
  ByteReader in(frame.payload);
  const auto to = in.integer<int32_t>();
  const auto from = in.integer<int32_t>();
  const auto known = [this](int32_t rank) { return rank >= 0 && rank < settings_.ranks; };
  if (!in.ok() || frame.payload.size() > kLetterHeader + kMostLetterBytes || frame.step > kDown || !known(to) ||
      !known(from) || from == settings_.rank)
    return malformed(links_[link].peer());
  if (failure_ || closed_) return;
  if (to != settings_.rank) return pass_on(to, frame);
  events_.push_back({Event::Kind::kLetter, from, frame.payload.substr(kLetterHeader)});
}

}  // namespace trestle
