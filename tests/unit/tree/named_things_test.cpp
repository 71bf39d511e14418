// Everything that user-visible texts name exists: functions of the API, and all names that begin with TRESTLE_.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

using Words = std::set<std::string>;

std::string text_of(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) text += line + '\n';
  return text;
}

// Keeps literals, because they name variables. In shell and CMake comments begin with '#'.
std::string without_comments(const std::string& text, bool c) {
  std::string code;
  for (size_t at = 0; at < text.size();) {
    const bool block = c && text.compare(at, 2, "/*") == 0;
    const bool line = c ? text.compare(at, 2, "//") == 0 : text[at] == '#';
    if (!block && !line) {
      code += text[at++];
      continue;
    }
    const size_t end = block ? text.find("*/", at + 2) : text.find('\n', at);
    at = end == std::string::npos ? text.size() : end + (block ? 2 : 0);
  }
  return code;
}

Words words(const std::string& text, const char* pattern) {
  const std::regex word(pattern);
  Words all;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) all.insert(at->str());
  return all;
}

std::string code_of(const std::vector<std::string>& places, const std::vector<std::string>& extensions, bool c) {
  std::string all;
  for (const SourceFile& file : read_sources(root(), places, extensions)) all += without_comments(text_of(file), c);
  return all;
}

const char* const kVariable = R"(\bTRESTLE_[A-Z0-9_]*[A-Z0-9]\b)";
const char* const kFunction = R"(\btrestle[A-Z]\w*)";

const std::vector<SourceFile>& headers() {
  static const auto all = read_sources(root(), {"include"}, {".h"});
  return all;
}

const Words& declared() {
  static const Words all = words(code_of({"include"}, {".h"}, true), kFunction);
  return all;
}

TEST(NamedThings, FunctionsAndTypesOfTextsAreDeclared) {
  ASSERT_TRUE(declared().contains("trestleAllReduce"));
  for (const auto& file : read_sources(root(), {"README.md", "docs", "include"}, {".md", ".c", ".h"})) {
    for (const std::string& name : words(text_of(file), kFunction)) {
      EXPECT_TRUE(declared().contains(name)) << file.path << " names " << name;
    }
  }
}

// The header omits the prefix when it mentions its functions.
TEST(NamedThings, ShortNamesInTheHeaderAreFunctions) {
  size_t found = 0;
  for (const SourceFile& file : headers()) {
    for (const std::string& name : words(text_of(file), R"(\b[A-Z][a-z]+[A-Z][A-Za-z]+\b)")) {
      ++found;
      EXPECT_TRUE(declared().contains("trestle" + name)) << file.path << " names " << name;
    }
  }
  EXPECT_GT(found, 10U);
}

TEST(NamedThings, VariablesAndMacrosOfTextsExist) {
  Words known =
      words(code_of({"include", "src", "kernels", "perf", "docs/examples"}, {".h", ".cpp", ".c"}, true), kVariable);
  known.merge(words(code_of({"CMakeLists.txt", "cmake", "src", "tests"}, {".txt", ".cmake"}, false), kVariable));
  known.merge(words(code_of({"scripts"}, {""}, false), kVariable));
  ASSERT_TRUE(known.contains("TRESTLE_TIMEOUT"));
  for (const auto& file : read_sources(root(), {"README.md", "docs", "include"}, {".md", ".c", ".h"})) {
    for (const std::string& name : words(text_of(file), kVariable)) {
      EXPECT_TRUE(known.contains(name)) << file.path << " names " << name;
    }
  }
}

}  // namespace
}  // namespace trestle
