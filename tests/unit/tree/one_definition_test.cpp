// Types of namespace trestle have one definition each. Where two headers define different types of one name, no
// compiler and no linker says so: a program gets one of the two destructors for both.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

using Definitions = std::map<std::string, std::set<std::string>>;  // files, by the type's name

// Those at the level of the namespace itself, which begin at the left margin. Types without a name for others, in a
// nameless namespace, are each file's own.
void find_types(const SourceFile& file, Definitions& types) {
  static const std::regex opens(R"(^namespace( [\w:]+)? \{)");
  static const std::regex defines(
      R"(^(?:struct|class|enum class|enum)(?: \w+\([^)]*\))? (\w+)(?: final)?(?: :[^:;].*)? ?\{)");
  std::vector<bool> ours;
  for (const std::string& line : file.code) {
    std::smatch found;
    if (std::regex_search(line, found, opens)) {
      ours.push_back(found[1] == " trestle");
    } else if (!line.empty() && line[0] == '}' && line.find(';') == std::string::npos && !ours.empty() &&
               line.find_first_not_of("} ") == std::string::npos) {
      // Functions close at the margin, too: only a brace that the sources mark as a namespace's counts.
      const std::string& whole = file.lines[static_cast<size_t>(&line - file.code.data())];
      if (whole.find("// namespace") != std::string::npos) ours.pop_back();
    } else if (ours.size() == 1 && ours[0] && std::regex_search(line, found, defines)) {
      types[found[1]].insert(file.path);
    }
  }
}

std::string defined_twice(const std::vector<SourceFile>& files) {
  Definitions types;
  for (const SourceFile& file : files) find_types(file, types);
  std::string twice;
  for (const auto& [name, places] : types) {
    if (places.size() < 2) continue;
    twice += name + ":";
    for (const std::string& place : places) twice += " " + place;
    twice += "\n";
  }
  return twice;
}

TEST(Types, HaveOneDefinition) {
  EXPECT_EQ(defined_twice(read_sources(TRESTLE_SOURCE_DIR, {"src", "kernels"}, {".h", ".cpp"})), "");
}

TEST(Types, OfOneNameAreFound) {
  const SourceFile a = source_from_text("a.h", "namespace trestle {\nstruct Same {\n};\n}  // namespace trestle\n");
  const SourceFile b = source_from_text(
      "b.h", "namespace trestle {\nstruct Same;\nclass Same final : public Base {\n};\n}  // namespace trestle\n");
  const SourceFile c = source_from_text(
      "c.cpp", "namespace trestle {\nnamespace {\nstruct Same {\n};\n}  // namespace\n}  // namespace trestle\n");
  const SourceFile d = source_from_text("d.h", "namespace trestle::inner {\nstruct Same {\n};\n}  // namespace\n");
  EXPECT_EQ(defined_twice({a, b, c, d}), "Same: a.h b.h\n");
  EXPECT_EQ(defined_twice({a, c, d}), "");
}

}  // namespace
}  // namespace trestle
