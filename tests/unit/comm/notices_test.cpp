// Notices between ranks, and listeners to a failure.
#include "comm/watch/notices.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/text/byte_text.h"
#include "comm/watch/failure_listeners.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/letter_kind.h"

namespace trestle {
namespace notices_test {
namespace {

std::string letter(uint64_t number, const std::string& text) {
  return ByteWriter().integer(static_cast<uint8_t>(LetterKind::kNotice)).integer(number).text(text).take();
}

TEST(Notices, TheLatestCountsWhateverTheOrder) {
  const auto mesh = ControlMesh::create({}, {}, {});
  ASSERT_TRUE(mesh.ok());
  Notices notices(*mesh.value(), 0);
  EXPECT_EQ(notices.latest(1), "");
  notices.take(1, letter(2, "second"));
  notices.take(1, letter(1, "first"));
  notices.take(1, letter(2, "second"));
  EXPECT_EQ(notices.latest(1), "second");
  EXPECT_EQ(notices.latest(2), "");
  notices.take(1, letter(3, ""));
  EXPECT_EQ(notices.latest(1), "") << "taken back";
  notices.leave(0, "to itself");
  notices.leave(0, "again");
  EXPECT_EQ(notices.latest(0), "again");
}

TEST(Notices, MalformedLettersAreIgnored) {
  const auto mesh = ControlMesh::create({}, {}, {});
  ASSERT_TRUE(mesh.ok());
  Notices notices(*mesh.value(), 0);
  const std::string whole = letter(7, "text");
  EXPECT_TRUE(Notices::is_letter(whole));
  EXPECT_FALSE(Notices::is_letter(""));
  for (size_t length = 1; length < whole.size(); ++length) notices.take(1, whole.substr(0, length));
  notices.take(1, whole + "more");
  notices.take(1, letter(8, std::string(Notices::kMostNotice + 1, 'x')));
  EXPECT_EQ(notices.latest(1), "");
}

TEST(FailureListeners, HearAFailureForAsLongAsTheyAreRegistered) {
  const auto listeners = std::make_shared<FailureListeners>();
  std::vector<std::string> heard;
  const auto listener = [&heard](const Error& error) { heard.push_back(error.message); };
  auto first = std::make_unique<FailureListeners::Registration>(listeners, listener);
  const FailureListeners::Registration second(listeners, listener);
  listeners->tell({Code::kAborted, "a"});
  first.reset();
  listeners->tell({Code::kTimeout, "b"});
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "a", "b"}));
}

}  // namespace
}  // namespace notices_test
}  // namespace trestle
