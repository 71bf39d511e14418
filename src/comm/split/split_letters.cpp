#include "comm/split/split_letters.h"

#include "base/text/byte_text.h"
#include "control_mesh/letter_kind.h"
#include "rendezvous/host_rails.h"

namespace trestle {

namespace {

constexpr size_t kMostSentence = 1000;

}  // namespace

std::string encode(const SplitPart& part) {
  return ByteWriter()
      .integer(part.color)
      .integer(part.key)
      .integer(part.process)
      .integer(static_cast<uint8_t>(part.has_place))
      .text(part.refusal.substr(0, kMostSentence))
      .take();
}

Result<SplitPart> decode_split_part(const std::string& bytes, const std::string& sender) {
  ByteReader in(bytes);
  SplitPart part;
  part.color = in.integer<int32_t>();
  part.key = in.integer<int32_t>();
  part.process = in.integer<uint64_t>();
  part.has_place = in.integer<uint8_t>() != 0;
  part.refusal = in.text(kMostSentence);
  if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + sender + " did not say its colour"};
  return part;
}

std::string encode(const SplitAddress& address) {
  return ByteWriter()
      .integer(static_cast<uint8_t>(address.code))
      .text(address.address)
      .text(address.sentence.substr(0, kMostSentence))
      .take();
}

Result<SplitAddress> decode_split_address(const std::string& bytes, const std::string& sender) {
  ByteReader in(bytes);
  SplitAddress address;
  address.code = static_cast<Code>(in.integer<uint8_t>());
  address.address = in.text(kMostMeetingText);
  address.sentence = in.text(kMostSentence);
  if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + sender + " did not say where it listens"};
  return address;
}

std::string encode(const SplitFailure& failure) {
  ByteWriter out;
  out.integer(static_cast<uint8_t>(LetterKind::kSplitFailure)).integer(failure.number);
  out.integer(static_cast<int32_t>(failure.error.code)).text(failure.error.message.substr(0, kMostSentence));
  return out.take();
}

bool is_split_failure(const std::string& letter) {
  return !letter.empty() && static_cast<LetterKind>(letter[0]) == LetterKind::kSplitFailure;
}

std::optional<SplitFailure> decode_split_failure(const std::string& letter) {
  ByteReader in(letter);
  in.integer<uint8_t>();
  const auto number = in.integer<uint64_t>();
  const auto code = in.integer<int32_t>();
  const std::string sentence(in.text(kMostSentence));
  if (!in.at_end() || code <= 0 || code > static_cast<int>(kLastCode)) return std::nullopt;
  return SplitFailure{number, {static_cast<Code>(code), sentence}};
}

}  // namespace trestle
