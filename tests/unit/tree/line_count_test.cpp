// The sources grow only on purpose. lines.txt has the number of lines of the product and of the tests; the tree is
// within 300 of both. A commit that raises a number by more says in its message what it removes, or which issue asks
// for it.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

constexpr size_t kMargin = 300;
constexpr const char* kNumbers = "tests/unit/tree/lines.txt";

using Numbers = std::map<std::string, size_t>;

Numbers numbers_in(const std::string& text) {
  Numbers numbers;
  std::istringstream in(text);
  for (std::string area, count; in >> area >> count;) numbers[area] = std::stoul(count);
  return numbers;
}

size_t lines_of(const std::vector<std::string>& places) {
  size_t lines = 0;
  for (const SourceFile& file : read_sources(root(), places, {".h", ".cpp", ".cu", ".cuh", ".c"})) {
    lines += file.lines.size();
  }
  return lines;
}

// "" if so many lines are as the numbers say.
std::string complaint(const std::string& area, size_t lines, const Numbers& numbers) {
  const auto row = numbers.find(area);
  if (row == numbers.end()) return std::string(kNumbers) + " has no number for " + area;
  if (lines <= row->second + kMargin && lines + kMargin >= row->second) return "";
  return area + " has " + std::to_string(lines) + " lines, " + std::to_string(row->second) + " in " + kNumbers +
         ": write " + std::to_string(lines) +
         (lines < row->second ? "" : ", and in the message of the commit what it removes or which issue asks for it");
}

// Whether a change of the numbers needs a reason that the message does not give.
bool lacks_reason(const Numbers& before, const Numbers& after, const std::string& message) {
  static const std::regex reason("(^|\n)(Removes|Asked for by): *[^ \n]");
  if (std::regex_search(message, reason)) return false;
  for (const auto& [area, count] : after) {
    const auto old = before.find(area);
    if (old != before.end() && count > old->second + kMargin) return true;
  }
  return false;
}

struct Answer {
  bool ok = false;
  std::string text;
};

// What git says about the repository of this tree, and not of one that this tree was unpacked in.
Answer git(const std::string& arguments) {
  Answer answer;
  const std::string command = "git -C '" + root().string() + "' " + arguments + " 2>/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return answer;
  char part[4096];
  for (size_t read = 0; (read = std::fread(part, 1, sizeof part, pipe)) != 0;) answer.text.append(part, read);
  answer.ok = ::pclose(pipe) == 0;
  return answer;
}

TEST(Lines, AreAsManyAsTheNumbersSay) {
  const SourceFile file = read_source(root(), root() / kNumbers);
  std::string text;
  for (const std::string& line : file.lines) text += line + "\n";
  const Numbers numbers = numbers_in(text);
  EXPECT_EQ(complaint("product", lines_of({"src", "kernels", "include", "perf"}), numbers), "");
  EXPECT_EQ(complaint("tests", lines_of({"tests"}), numbers), "");
}

// Looks at the last commit that changed the numbers; those before it were looked at when they were the last.
TEST(Lines, GrowForAReason) {
  if (const Answer top = git("rev-parse --show-prefix"); !top.ok || top.text != "\n") {
    GTEST_SKIP() << "no history: this tree is no checkout of git";
  }
  const Answer last = git(std::string("log -1 --format=%H -- ") + kNumbers);
  const std::string commit = last.text.substr(0, last.text.find('\n'));
  const auto numbers_at = [](const std::string& revision) { return git("show " + revision + ":" + kNumbers); };
  const Answer before = numbers_at(commit + "^");
  if (commit.empty() || !before.ok)
    GTEST_SKIP() << "no history: it has no commit before the last change of " << kNumbers;
  const Answer message = git("show -s --format=%B " + commit);
  EXPECT_FALSE(lacks_reason(numbers_in(before.text), numbers_in(numbers_at(commit).text), message.text))
      << commit << " raises a number in " << kNumbers << " by more than " << kMargin
      << ": its message needs a line \"Removes: ...\" or \"Asked for by: ...\"";
}

TEST(Lines, ThatAreTooManyAreFound) {
  const Numbers numbers = numbers_in("product 1000\ntests 2000\n");
  EXPECT_EQ(complaint("product", 1300, numbers), "");
  EXPECT_EQ(complaint("product", 1301, numbers).substr(0, 59),
            "product has 1301 lines, 1000 in tests/unit/tree/lines.txt: ");
  EXPECT_EQ(complaint("tests", 1700, numbers), "");
  EXPECT_NE(complaint("tests", 1699, numbers), "");
  EXPECT_NE(complaint("perf", 1, numbers), "");
  EXPECT_GT(lines_of({"tests/unit/tree"}), 500u) << "the lines of the tests are not counted any more";
}

TEST(Lines, NeedAReasonForMoreThanTheMargin) {
  const Numbers before = {{"product", 1000}, {"tests", 1000}};
  const Numbers more = {{"product", 900}, {"tests", 1301}};
  EXPECT_TRUE(lacks_reason(before, more, "Tests of much\n"));
  EXPECT_TRUE(lacks_reason(before, more, "Tests of much\n\nRemoves:\n"));
  EXPECT_TRUE(lacks_reason(before, more, "Tests of much. Removes: nothing\n"));
  EXPECT_FALSE(lacks_reason(before, more, "Tests of much\n\nRemoves: the ones of little\n"));
  EXPECT_FALSE(lacks_reason(before, more, "Tests of much\n\nAsked for by: issue 7\n"));
  EXPECT_FALSE(lacks_reason(before, {{"product", 1300}, {"tests", 5}}, "Little\n"));
  EXPECT_FALSE(lacks_reason({}, more, "The first numbers\n"));
}

}  // namespace
}  // namespace trestle
