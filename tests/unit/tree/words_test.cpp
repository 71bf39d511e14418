// docs/words.md and the types agree: those that the page names exist, and nouns with several meanings are in no type's
// name that the page does not list under one of these.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

using Names = std::set<std::string>;

const char* const kPage = "docs/words.md";

// Of all scopes: a nested type is a meaning of its name, too.
Names types_of(const std::vector<SourceFile>& files) {
  static const std::regex defines(
      R"(^ *(?:template <[^>]*> )?(?:struct|class|enum class|enum)(?: \w+\([^)]*\))? (\w+)(?: final)?(?: :[^:;].*)? ?\{)");
  Names types;
  for (const SourceFile& file : files) {
    for (const std::string& line : file.code) {
      std::smatch found;
      if (std::regex_search(line, found, defines)) types.insert(found[1]);
    }
  }
  return types;
}

Names quoted_in(const std::string& text) {
  static const std::regex quoted("`([A-Z]\\w*)`");
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

struct Page {
  Names named;                         // in the second column of any table
  std::map<std::string, Names> nouns;  // by heading "### Link": the types under it
};

Page read_page(const SourceFile& file) {
  static const std::regex heading("^### (\\w+)$"), row("^\\|[^|]*\\|([^|]*)\\|.*");
  Page page;
  std::string noun;
  std::smatch found;
  for (const std::string& line : file.lines) {
    if (std::regex_match(line, found, heading)) noun = found[1];
    if (!std::regex_match(line, found, row)) continue;
    const Names types = quoted_in(found[1]);
    page.named.insert(types.begin(), types.end());
    if (!noun.empty()) page.nouns[noun].insert(types.begin(), types.end());
  }
  return page;
}

// What the page says and the types do not bear out, or the other way round; one a line.
std::string differences(const Page& page, const Names& types) {
  std::string wrong;
  for (const std::string& name : page.named) {
    if (!types.contains(name)) wrong += name + " is on the page, and no type\n";
  }
  for (const auto& [noun, listed] : page.nouns) {
    const std::regex with_noun(noun + "s?(?![a-z])");
    for (const std::string& type : types) {
      if (std::regex_search(type, with_noun) && !listed.contains(type))
        wrong += type + " has no meaning of " + noun + "\n";
    }
  }
  return wrong;
}

TEST(Vocabulary, OfThePageAreThoseOfTheTypes) {
  const Page page = read_page(read_source(TRESTLE_SOURCE_DIR, std::string(TRESTLE_SOURCE_DIR) + "/" + kPage));
  ASSERT_GE(page.nouns.size(), 4U);
  ASSERT_GE(page.named.size(), 50U);
  const Names types = types_of(read_sources(TRESTLE_SOURCE_DIR, {"src", "kernels"}, {".h", ".cpp", ".cu", ".cuh"}));
  EXPECT_EQ(differences(page, types), "") << "of " << kPage;
}

TEST(Vocabulary, ThatDifferAreFound) {
  const Page page = read_page(source_from_text("words.md",
                                               "| step | `Step`, `Gone` | a `Word` |\n"
                                               "### Link\n"
                                               "| wire | `SimLink` |\n"));
  const Names types = types_of({source_from_text("a.h",
                                                 "struct Step {\nclass SimLink final : public Wire {\n"
                                                 "  enum class Links : uint8_t { kA };\nstruct Linked {\nclass Link;\n"
                                                 "};\n")});
  EXPECT_EQ(differences(page, types), "Gone is on the page, and no type\nLinks has no meaning of Link\n");
}

}  // namespace
}  // namespace trestle
