// Links of the documentation: each leads to a page, or to a heading of a page, that is there. Pages are installed as
// they lie here, README.md and docs/ alone, so they may link to nothing else: what is only in the repository is named
// as `code`.
#include <gtest/gtest.h>

#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace links_test {
namespace {

namespace fs = std::filesystem;

// Blocks between ``` are left out: they hold programs, in which brackets mean something else.
std::vector<std::string> prose_of(const SourceFile& page) {
  std::vector<std::string> prose;
  bool block = false;
  for (const std::string& line : page.lines) {
    const bool fence =
        line.find_first_not_of(' ') != std::string::npos && line.compare(line.find_first_not_of(' '), 3, "```") == 0;
    if (fence) block = !block;
    if (!block && !fence) prose.push_back(line);
  }
  return prose;
}

// The name that GitHub gives a heading: small letters, blanks as hyphens, no other signs.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0 || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(byte));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const SourceFile& page) {
  static const std::regex heading("^#+ (.*)");
  std::set<std::string> anchors;
  std::smatch found;
  for (const std::string& line : prose_of(page)) {
    if (!std::regex_match(line, found, heading)) continue;
    std::string anchor = anchor_of(found[1]);
    if (anchors.contains(anchor)) anchor += "-1";
    anchors.insert(anchor);
  }
  return anchors;
}

// All that cannot be followed, one a line.
std::string dead_links(const SourceFile& page) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  static const std::regex code("`[^`]*`");
  std::string dead;
  for (const std::string& raw : prose_of(page)) {
    const std::string line = std::regex_replace(raw, code, "``");
    for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find("://") != std::string::npos) continue;
      const std::string file = target.substr(0, target.find('#'));
      const fs::path path =
          file.empty() ? fs::path(page.path) : (fs::path(page.path).parent_path() / file).lexically_normal();
      const bool installed = path == "README.md" || *path.begin() == "docs";
      bool leads = installed && (file.empty() || fs::exists(root() / path));
      if (leads && target.size() > file.size()) {
        leads = anchors_of(file.empty() ? page : read_source(root(), root() / path))
                    .contains(target.substr(file.size() + 1));
      }
      if (!leads) dead += page.path + ": " + target + (installed ? "\n" : ", which is not installed\n");
    }
  }
  return dead;
}

TEST(Links, OfPagesLeadToPages) {
  const std::vector<SourceFile> pages = read_sources(root(), {"README.md", "docs"}, {".md"});
  ASSERT_GT(pages.size(), 20U);
  for (const SourceFile& page : pages) EXPECT_EQ(dead_links(page), "");
}

TEST(Links, ThatLeadNowhereAreFound) {
  const SourceFile page =
      source_from_text("docs/page.md",
                       "# A page's `name`, first\n"
                       "[a](rails.md) [b](#a-pages-name-first) [c](architecture/engine.md#no-such-heading)\n"
                       "```\n[d](none.md)\n```\n"
                       "`[e](none.md)` [f](none.md) [g](../src/plan/checker.h) [h](https://example.com/x)\n"
                       "[i](#second) [j](../README.md)\n");
  EXPECT_EQ(dead_links(page),
            "docs/page.md: architecture/engine.md#no-such-heading\n"
            "docs/page.md: none.md\n"
            "docs/page.md: ../src/plan/checker.h, which is not installed\n"
            "docs/page.md: #second\n");
}

// Files and folders that a page names as `code` and that are not there: from the root, or in the map, below its row's.
std::string missing_files(const SourceFile& page) {
  static const std::regex row("^\\| ([a-z_]+(?:/[a-z_]+)*) \\|.*");
  static const std::regex code("`([\\w./-]+)`"), from_root("(src|kernels|perf|tests|scripts|cmake|include|docs)/.*");
  static const std::regex below("\\w+/");
  std::string missing;
  for (const std::string& line : prose_of(page)) {
    std::smatch of;
    const bool map = std::regex_match(line, of, row) && fs::is_directory(root() / of[1].str());
    for (std::sregex_iterator at(line.begin(), line.end(), code), end; at != end; ++at) {
      const std::string name = (*at)[1];
      const bool is_file = std::regex_match(name, from_root);
      if (!is_file && !(map && std::regex_match(name, below))) continue;
      const fs::path path = is_file ? root() / name : root() / of[1].str() / name;
      if (!fs::exists(path)) missing += page.path + ": " + name + "\n";
    }
  }
  return missing;
}

TEST(Links, NamedFilesAreThere) {
  for (const SourceFile& page : read_sources(root(), {"README.md", "docs"}, {".md"}))
    EXPECT_EQ(missing_files(page), "");
  const SourceFile page =
      source_from_text("a.md", "`src/base/result.h`, `src/none.h`\n| src/base | `config/`, `gone/` |\n");
  EXPECT_EQ(missing_files(page), "a.md: src/none.h\na.md: gone/\n");
}

}  // namespace
}  // namespace links_test
}  // namespace trestle
