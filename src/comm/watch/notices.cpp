#include "comm/watch/notices.h"

#include <utility>

#include "base/check.h"
#include "base/text/byte_text.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/letter_kind.h"

namespace trestle {

static_assert(Notices::kMostNotice + sizeof(uint8_t) + sizeof(uint64_t) + sizeof(uint32_t) <= kMostLetterBytes);

void Notices::leave(int32_t to, const std::string& text) {
  CHECK(text.size() <= kMostNotice, "a notice that is too long");
  const uint64_t number = ++sent_;
  if (to == rank_) return keep(rank_, number, text);
  mesh_.send_letter(to,
                    ByteWriter().integer(static_cast<uint8_t>(LetterKind::kNotice)).integer(number).text(text).take());
}

std::string Notices::latest(int32_t from) const {
  const MutexLock lock(mutex_);
  const auto found = notices_.find(from);
  return found == notices_.end() ? "" : found->second.text;
}

bool Notices::is_letter(const std::string& letter) {
  return !letter.empty() && static_cast<LetterKind>(letter[0]) == LetterKind::kNotice;
}

void Notices::take(int32_t from, const std::string& letter) {
  ByteReader in(letter);
  in.integer<uint8_t>();
  const auto number = in.integer<uint64_t>();
  std::string text(in.text(kMostNotice));
  if (in.at_end()) keep(from, number, std::move(text));
}

void Notices::keep(int32_t from, uint64_t number, std::string text) {
  const MutexLock lock(mutex_);
  Notice& notice = notices_[from];
  if (number > notice.number) notice = {number, std::move(text)};
}

}  // namespace trestle
