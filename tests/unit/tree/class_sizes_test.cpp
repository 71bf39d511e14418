// Classes have at most 40 member functions. Those that had more when the rule came stand in class_methods.txt, one per
// line with their number, which may only shrink.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

constexpr size_t kMostMethods = 40;
constexpr const char* kList = "tests/unit/tree/class_methods.txt";

struct ClassSize {
  std::string name;  // with those of the classes around it
  std::string where;
  size_t methods = 0;
};

// A declaration without what stands in the way of reading it: access specifiers, template parameters, attributes.
std::string bare(const std::string& declaration) {
  static const std::regex noise(
      "\\b(public|private|protected)\\s*:(?!:)|\\[\\[[^\\]]*\\]\\]|\\b(TRESTLE_[A-Z_]+|alignas)\\s*\\([^()]*\\)");
  std::string text = std::regex_replace(declaration, noise, " ");
  for (size_t at = text.find("template"); at != std::string::npos; at = text.find("template")) {
    size_t end = text.find('<', at);
    for (int depth = 0; end < text.size(); ++end) {
      depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    text.erase(at, std::min(end, text.size() - 1) + 1 - at);
  }
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

// The name of the class that a brace behind this text opens: "" has none; "(" it opens something else.
std::string class_opened(const std::string& text) {
  static const std::regex head(
      "^(?:(?:typedef|static|const)\\s+)*(?:class|struct|union)\\b\\s*((?:\\w|::)*)[^:=(]*(?::[^:]|$)");
  std::smatch match;
  return std::regex_search(text, match, head) ? match[1].str() : "(";
}

// Whether a declaration at the level of a class is one of a function: its first parenthesis that is outside template
// arguments follows a name and begins no pointer.
bool declares_function(const std::string& text) {
  static const std::regex other("^(using|typedef|friend|static_assert|enum)\\b|^[,)]");
  static const std::regex pointer("^\\(\\s*(\\w+::)*\\*");
  if (std::regex_search(text, other)) return false;
  if (std::regex_search(text, std::regex("\\boperator\\b"))) return true;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '<' ? 1 : text[at] == '>' ? -1 : 0;
    if (depth == 0 && text[at] == '=') return false;
    if (depth == 0 && text[at] == '(') return at != 0 && !std::regex_search(text.substr(at), pointer);
  }
  return false;
}

std::vector<ClassSize> classes_of(const SourceFile& file) {
  constexpr size_t kNone = ~size_t{0};
  std::vector<ClassSize> classes;
  std::vector<size_t> levels;  // what each open brace has opened: a class, or kNone
  std::string declaration;
  for (size_t i = 0; i < file.code.size(); ++i) {
    for (const char c : file.code[i] + " ") {
      if (c != '{' && c != '}' && c != ';') {
        declaration += c;
        continue;
      }
      const size_t around = levels.empty() ? kNone : levels.back();
      const bool may_count = c != '}' && (around != kNone || c == '{');
      const std::string text = may_count ? bare(declaration) : "";
      const std::string name = c == '{' ? class_opened(text) : "(";
      declaration.clear();
      if (name == "(" && around != kNone && declares_function(text)) ++classes[around].methods;
      if (c == '}' && !levels.empty()) levels.pop_back();
      if (c != '{') continue;
      levels.push_back(name == "(" ? kNone : classes.size());
      if (name == "(") continue;
      const std::string outer = around == kNone ? "" : classes[around].name + "::";
      classes.push_back({outer + name, file.path + ":" + std::to_string(i + 1)});
    }
  }
  return classes;
}

using Listed = std::map<std::string, size_t>;

// What is wrong with these classes, as sentences.
std::vector<std::string> complaints(const std::vector<ClassSize>& classes, Listed listed) {
  std::vector<std::string> found;
  for (const ClassSize& one : classes) {
    const auto row = listed.find(one.name);
    const std::string count = std::to_string(one.methods);
    if (row == listed.end()) {
      if (one.methods > kMostMethods) found.push_back(one.where + ": " + one.name + " has " + count + " functions");
      continue;
    }
    if (one.methods > row->second) found.push_back(one.where + ": " + one.name + " has grown to " + count);
    if (one.methods > kMostMethods && one.methods < row->second) {
      found.push_back(one.name + " has shrunk: " + kList + " gets " + count);
    }
    if (one.methods > kMostMethods) listed.erase(row);
  }
  for (const auto& [name, count] : listed)
    found.push_back(name + " is not too large any more: take it out of " + kList);
  return found;
}

TEST(ClassSizes, OnlyShrink) {
  Listed listed;
  std::ifstream list(root() / kList);
  for (std::string name, count; list >> name >> count;) listed[name] = std::stoul(count);
  std::vector<ClassSize> classes;
  for (const SourceFile& file : code_of({"src", "kernels", "include", "perf"})) {
    for (ClassSize& one : classes_of(file)) classes.push_back(std::move(one));
  }
  EXPECT_GT(classes.size(), 1000u) << "the reader of classes finds nothing any more";
  for (const std::string& complaint : complaints(classes, listed)) ADD_FAILURE() << complaint;
}

std::string of_methods(size_t count) {
  std::string text = "class A {\n";
  for (size_t i = 0; i < count; ++i) text += "  void f" + std::to_string(i) + "();\n";
  return text + "};\n";
}

TEST(ClassSizes, ThatAreTooLargeAreFound) {
  using Sentences = std::vector<std::string>;
  const auto with = [](size_t methods, const Listed& listed) {
    return complaints(classes_of(source_from_text("a.h", of_methods(methods))), listed);
  };
  EXPECT_EQ(with(40, {}), Sentences());
  EXPECT_EQ(with(41, {}), Sentences{"a.h:1: A has 41 functions"});
  EXPECT_EQ(with(45, {{"A", 45}}), Sentences());
  EXPECT_EQ(with(46, {{"A", 45}}), Sentences{"a.h:1: A has grown to 46"});
  EXPECT_EQ(with(44, {{"A", 45}}), Sentences{std::string("A has shrunk: ") + kList + " gets 44"});
  EXPECT_EQ(with(40, {{"A", 45}}), Sentences{std::string("A is not too large any more: take it out of ") + kList});
  EXPECT_EQ(with(1, {{"B", 45}}), Sentences{std::string("B is not too large any more: take it out of ") + kList});
}

TEST(ClassSizes, CountFunctionsAndNothingElse) {
  const SourceFile file =
      source_from_text("a.h",
                       "template <class T, class = std::enable_if_t<sizeof(T) == 1>>\n"
                       "class TRESTLE_CAPABILITY(\"lock\") A final : public B<void(int)> {\n"
                       " public:\n"
                       "  explicit A(int a = f(1)) : a_{a}, b_(2), c_{3} {\n"  // 1
                       "    if (a) g();\n"
                       "  }\n"
                       "  ~A() override = default;\n"                                             // 2
                       "  [[nodiscard]] bool operator()(int) const { return h({1}, (2)); }\n"     // 3
                       "  template <class F> auto run(F&& f) -> std::vector<decltype(f())>;\n"    // 4
                       "  bool operator<(const A&) const = default;\n"                            // 5
                       "  std::function<void(int)> take(std::function<void()> = {}, int = 2);\n"  // 6
                       " private:\n"
                       "  friend bool operator==(const A&, const A&);\n"
                       "  using Function = int (*)(int);\n"
                       "  static_assert(sizeof(int) == 4);\n"
                       "  enum class Kind { kOne = f(1) };\n"
                       "  struct Inner {\n"
                       "    int x = f(1);\n"
                       "    void inner();\n"
                       "  };\n"
                       "  std::function<void(int)> function_ = [](int) { g(); };\n"
                       "  int (*pointer_)(int) = nullptr;\n"
                       "  int (A::*member_)(int);\n"
                       "  alignas(64) int a_ TRESTLE_GUARDED_BY(mutex_) = f(2);\n"
                       "  int b_{f(3)}, c_ = 4;\n"
                       "};\n"
                       "struct A<int>* make(int a) {\n"
                       "  struct Local { void local() {} };\n"
                       "  return f();\n"
                       "}\n"
                       "const struct B kTable[] = {{1, f(2)}};\n");
  std::map<std::string, size_t> counted;
  for (const ClassSize& one : classes_of(file)) counted[one.name] = one.methods;
  EXPECT_EQ(counted, (std::map<std::string, size_t>{{"A", 6}, {"A::Inner", 1}, {"Local", 1}}));
}

}  // namespace
}  // namespace trestle
