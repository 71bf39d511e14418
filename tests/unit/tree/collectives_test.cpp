// A collective outside its row (base/collective.h) is only a number and functions in the public header. Few files may
// name it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/collective.h"
#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

constexpr size_t kMostFilesPerCollective = 6;

const std::vector<SourceFile>& sources(const char* place) {
  static std::map<std::string, std::vector<SourceFile>> known;
  const auto [files, fresh] = known.try_emplace(place);
  if (fresh) files->second = read_sources(TRESTLE_SOURCE_DIR, {place}, {".h", ".cpp"});
  return files->second;
}

bool matches(const SourceFile& file, const std::regex& pattern) {
  return std::ranges::any_of(file.code, [&](const std::string& line) { return std::regex_search(line, pattern); });
}

// "AllReduce" of trestleCollAllReduce = 0, by number.
std::map<size_t, std::string> public_names() {
  static const std::regex value(R"(\btrestleColl([A-Z]\w*)\s*=\s*(\d+))");
  std::map<size_t, std::string> names;
  for (const SourceFile& file : sources("include")) {
    for (const std::string& line : file.code) {
      std::smatch match;
      if (std::regex_search(line, match, value)) names[std::stoul(match[2])] = match[1];
    }
  }
  return names;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

TEST(PublicCollectives, HaveTheNumbersOfTheRows) {
  const std::map<size_t, std::string> names = public_names();
  EXPECT_EQ(names.size(), kCollectives);
  for (const auto& [number, name] : names) {
    ASSERT_LT(number, kCollectives) << "trestleColl" << name << " has no row";
    EXPECT_EQ(lower(name), kCollectiveRows[number].name);
  }
}

TEST(PublicCollectives, HaveTheFunctionsOfTheRows) {
  const auto declared = [](const char* function) {
    const std::regex declaration("^TRESTLE_API trestleResult_t trestle" + std::string(function) + "\\(");
    return std::ranges::any_of(sources("include"), [&](const SourceFile& file) { return matches(file, declaration); });
  };
  for (const CollectiveRow& row : kCollectiveRows) {
    EXPECT_TRUE(declared(row.function)) << row.function;
    if (row.other_function != nullptr) {
      EXPECT_TRUE(declared(row.other_function)) << row.other_function;
    }
  }
  EXPECT_FALSE(declared("AllScatter")) << "the reader of declarations finds what is not there";
}

// Studies concern only the collectives of the papers. The executor of training steps, the compressed all-reduce and the
// bindings call the public functions as a program does.
bool is_study_or_client(const std::string& path) {
  return std::ranges::any_of(std::vector<std::string>{"src/study/", "src/cli/", "src/sim/", "src/gradient/executor/",
                                                      "src/compress/exchange/", "src/bindings/"},
                             [&](const std::string& folder) { return path.starts_with(folder); });
}

// Does not use <regex>, which takes seconds for all sources.
bool has_word(const std::string& line, const std::string& word) {
  const auto in_word = [&](size_t at) {
    return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 || line[at] == '_');
  };
  for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const bool begins = at == 0 || !in_word(at - 1);
    if (begins && !in_word(at + word.size())) return true;
  }
  return false;
}

// Files that name a collective, its number in the C API, or its C function. A member that holds any collective needs an
// initial one, so that does not count.
std::set<std::string> files_that_name(const std::string& name, const std::string& function) {
  const auto names_it = [&](const std::string& line) {
    if (line.find("Collective collective = Collective::k") != std::string::npos) return false;
    return has_word(line, "Collective::k" + name) || has_word(line, "trestleColl" + name) ||
           line.find("trestle" + function + "(") != std::string::npos;
  };
  std::set<std::string> found;
  for (const char* place : {"src", "include"}) {
    for (const SourceFile& file : sources(place)) {
      if (!is_study_or_client(file.path) && std::ranges::any_of(file.code, names_it)) found.insert(file.path);
    }
  }
  return found;
}

TEST(PublicCollectives, AreNamedInFewFiles) {
  for (const auto& [number, name] : public_names()) {
    ASSERT_LT(number, kCollectives);
    const std::set<std::string> files = files_that_name(name, kCollectiveRows[number].function);
    EXPECT_TRUE(files.contains("src/base/collective.h")) << "the reader of sources finds nothing any more";
    EXPECT_TRUE(files.contains("include/trestle/trestle.h"));
    std::string list;
    for (const std::string& file : files) list += " " + file;
    EXPECT_LE(files.size(), kMostFilesPerCollective)
        << "what these look up about " << name << " belongs in its row:" << list;
  }
}

}  // namespace
}  // namespace trestle
