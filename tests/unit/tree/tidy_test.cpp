// Rules of the sources that no compiler checks: allowed includes, sizes, and forbidden constructs. Messages name file
// and line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace tidy_test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLinesPerFile = 500;
constexpr size_t kMostLinesPerFunction = 70;
constexpr size_t kMostFilesPerFolder = 40;

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// Reports every line of code that matches. Comments and literals do not count.
void expect_absent(const std::vector<SourceFile>& files, const char* pattern, const char* why) {
  const std::regex banned(pattern);
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.code.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.code[i], banned)) << file.path << ":" << i + 1 << ": " << why;
    }
  }
}

// The folder of a file or an included path, as named in the table below.
std::string folder_of_file(const std::string& path) {
  if (starts_with(path, "perf/device/")) return "device_perf";
  if (starts_with(path, "perf/gpu/")) return "perf_gpu";
  if (starts_with(path, "perf/kernel/")) return "kernel_perf";
  if (starts_with(path, "perf/launch/")) return "perf_launch";
  if (starts_with(path, "perf/train_step/")) return "train_step_perf";
  const size_t begin = starts_with(path, "src/") ? 4 : 0;
  return path.substr(begin, path.find('/', begin) - begin);
}

// docs/architecture.md, "Folders and what may include what", plus the includes of those folders' own headers. Every
// folder may include itself and base.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"base", {}},
      {"kernels", {}},
      {"topology", {}},
      {"plan", {}},
      {"algorithms", {"plan"}},
      {"sched", {"algorithms", "plan", "topology"}},
      {"study", {"sched", "algorithms", "plan", "topology", "gradient"}},
      {"memory", {}},
      {"device", {"kernels"}},
      {"transport", {"kernels", "memory"}},
      {"machine", {"transport"}},
      {"express", {"sched", "transport", "memory", "kernels"}},
      {"engine", {"plan", "algorithms", "sched", "topology", "express", "transport", "memory", "device", "kernels"}},
      {"control_mesh", {"transport"}},
      {"rendezvous", {"control_mesh", "topology", "transport", "trestle"}},
      {"comm",
       {"rendezvous", "control_mesh", "engine", "express", "sched", "algorithms", "plan", "topology", "transport",
        "kernels", "memory", "device", "machine", "trestle"}},
      // gradient and compress are clients of the C API that are part of it: it makes their objects and checks
      // arguments.
      {"api", {"comm", "memory", "gradient", "compress", "trestle"}},
      {"bindings", {"trestle"}},  // and not base, of which libtrestle.so has the only copy
      {"sim", {"engine", "sched", "topology", "transport"}},
      {"cli", {"study", "sched", "topology", "machine", "sim", "gradient", "compress", "trestle"}},
      {"gradient", {"compress", "kernels", "trestle"}},
      {"compress", {"kernels", "trestle"}},
      {"perf", {"perf_gpu", "perf_launch", "trestle"}},
      {"perf_gpu", {"device", "perf"}},
      {"perf_launch", {"cli", "perf"}},
      {"kernel_perf", {"kernels", "compress", "perf"}},  // selection is made of several loops in compress
      {"device_perf", {"device", "kernels"}},
      {"train_step_perf", {"cli", "gradient", "perf_launch", "perf", "trestle"}},
      {"include", {"trestle"}},
  };
  return table;
}

// The second part of the rule for other projects' headers: each is wrapped once.
const std::map<std::string, std::string>& third_party_homes() {
  static const std::map<std::string, std::string> homes = {
      {"nlohmann", "src/base/text/json.h"},
      {"sodium", "src/transport/auth/"},
      {"sodium.h", "src/transport/auth/"},
      {"CLI", "src/cli/"},
      {"hwloc.h", "src/machine/hwloc/"},
      {"pmix.h", "src/rendezvous/pmi/"},
      {"hwy", "kernels/"},
      {"cuda.h", "src/device/"},
  };
  return homes;
}

// The repository's file that an #include names, searched in the include roots; "": none.
std::string included_file(const std::string& target) {
  for (const char* place : {"src", "include", ""}) {
    const fs::path path = fs::path(place) / target;
    if (fs::is_regular_file(root() / path)) return path.generic_string();
  }
  return "";
}

struct Include {
  bool edge = false;  // from one folder of the repository to another one
  std::string wrong;  // the violation, or ""
};

Include read_include(const std::string& path, const std::string& line) {
  static const std::regex include("^\\s*#\\s*include\\s+([\"<])([^\">]+)[\">]");
  std::smatch match;
  if (!std::regex_search(line, match, include)) return {};
  const std::string from = folder_of_file(path);
  const std::string target = match[2];
  if (const auto home = third_party_homes().find(target.substr(0, target.find('/')));
      home != third_party_homes().end()) {
    if (starts_with(path, home->second)) return {};
    return {false, target + " is wrapped in " + home->second};
  }
  const std::string file = included_file(target);
  if (file.empty() && starts_with(target, "cuda") && !starts_with(path, "src/device/")) {
    return {false, target + " is wrapped in src/device/"};
  }
  if (file.empty()) return {false, match[1] == "<" ? "" : target + " is below no include root"};
  const std::string to = starts_with(file, "include/") ? "trestle" : folder_of_file(file);
  const std::set<std::string> without_base = {"include", "bindings"};
  if (to == from || (to == "base" && without_base.count(from) == 0)) return {};
  const auto& table = allowed_includes();
  const auto row = table.find(from);
  if (row == table.end()) return {true, "folder '" + from + "' has no row in the table of this test"};
  return {true, row->second.count(to) != 0 ? "" : from + " may not include " + target};
}

TEST(Includes, GoOnlyWhereTheArchitectureAllows) {
  size_t edges = 0;
  for (const SourceFile& file : code_of({"src", "kernels", "perf", "include"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const Include include = read_include(file.path, file.lines[i]);
      edges += include.edge;
      EXPECT_EQ(include.wrong, "") << file.path << ":" << i + 1;
    }
  }
  EXPECT_GT(edges, 100u) << "the reader of includes finds nothing any more";
}

TEST(Includes, OfWhatIsAboveAreFound) {
  const auto wrong = [](const char* path, const char* line) { return read_include(path, line).wrong; };
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include \"api/handles.h\""), "") << "a file of no folder";
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include <api/handles.h>"), "");
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include \"comm/communicator/group.h\""), "");
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include \"stream.h\""), "") << "from its own folder";
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include \"tests/support/ranks.h\""), "");
  EXPECT_NE(wrong("src/engine/run/engine.cpp", "#include <trestle/trestle.h>"), "");
  EXPECT_NE(wrong("perf/driver/driver.cpp", "#include \"comm/calls/group.h\""), "");
  EXPECT_NE(wrong("src/bindings/nccl/groups.cpp", "#include \"base/mutex.h\""), "");
  EXPECT_NE(wrong("src/comm/setup/settings.cpp", "#include <nlohmann/json.hpp>"), "");
  EXPECT_NE(wrong("kernels/cuda/reduce.cu", "#include <cuda.h>"), "") << "CUDA's headers are for src/device only";
  EXPECT_NE(wrong("src/engine/work/work.cpp", "#include <cuda_runtime.h>"), "");
  EXPECT_NE(wrong("src/engine/work/work.cpp", "#include <cuda/std/bit>"), "");
  EXPECT_EQ(wrong("src/device/driver.h", "#include <cuda.h>"), "");
  EXPECT_EQ(wrong("src/engine/run/engine.cpp", "#include \"transport/agreement.h\""), "");
  EXPECT_EQ(wrong("src/engine/run/engine.cpp", "#include <vector>"), "");
  EXPECT_EQ(wrong("src/api/communicators.cpp", "#include \"api/handles.h\""), "");
}

TEST(Includes, HaveNoWayUp) {
  const std::regex include("^\\s*#\\s*include\\s+[\"<](\\.\\./|/|src/)");
  for (const SourceFile& file : code_of({"src", "kernels", "perf", "tests"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], include))
          << file.path << ":" << i + 1 << ": include from an include root";
    }
  }
}

TEST(Headers, BeginWithWhatTheyAreAndAreIncludedOnce) {
  for (const SourceFile& file : read_sources(root(), {"src", "kernels", "perf", "tests"}, {".h", ".cuh"})) {
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_TRUE(starts_with(file.lines[0], "//")) << file.path << ":1: a header starts with what it is";
    const bool once = std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
    const bool many_times = file.path.find("-inl.h") != std::string::npos;  // Highway's per-target headers
    EXPECT_TRUE(once || many_times) << file.path << ": no #pragma once";
  }
}

TEST(Sizes, OfFiles) {
  for (const SourceFile& file : code_of({"src", "kernels", "perf", "include"})) {
    EXPECT_LE(file.lines.size(), kMostLinesPerFile) << file.path << " is too long: one file, one concern";
  }
}

TEST(Sizes, OfFolders) {
  std::map<fs::path, size_t> files;
  for (const char* place : {"src", "kernels", "perf", "include", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root() / place)) {
      if (entry.is_regular_file()) ++files[entry.path().parent_path()];
    }
  }
  EXPECT_GT(files.size(), 40u) << "the walk over the folders finds nothing any more";
  for (const auto& [folder, count] : files) {
    if (folder.string().find("/corpus/") != std::string::npos) continue;  // inputs of the fuzzers, not code
    EXPECT_LE(count, kMostFilesPerFolder) << fs::relative(folder, root()) << " holds too many: make folders of it";
  }
}

TEST(Sizes, OfFunctions) {
  size_t functions = 0;
  for (const SourceFile& file : code_of({"src", "kernels", "perf"})) {
    for (const FunctionSpan& function : functions_of(file)) {
      ++functions;
      EXPECT_LE(function.lines, kMostLinesPerFunction)
          << file.path << ":" << function.first_line << ": the function is too long";
    }
  }
  EXPECT_GT(functions, 500u) << "the reader of functions finds nothing any more";
}

// A new transport must not need changes in the code that routes, chooses and predicts.
TEST(TransportKinds, AreNamedInTheirTableOnly) {
  std::vector<SourceFile> files = code_of({"src"});
  const auto table = std::remove_if(files.begin(), files.end(),
                                    [](const SourceFile& file) { return file.path == "src/base/transport_kinds.cpp"; });
  EXPECT_EQ(files.end() - table, 1);
  files.erase(table, files.end());
  expect_absent(files, "\\bTransportKind::k(?!Auto\\b)", "what a kind can do is a column of base/transport_kinds.h");
}

TEST(Environment, IsReadInBaseOnly) {
  std::vector<SourceFile> files = code_of({"src", "kernels"});
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const SourceFile& file) { return starts_with(file.path, "src/base/"); }),
              files.end());
  expect_absent(files, "\\b(secure_)?getenv\\b|\\benviron\\b|\\b(un|put|set)env\\b",
                "variables are rows of base/config/config_table.h");
}

// Only two parts need conditions: Highway compiles a file of the kernels once per instruction set, and only one
// compiler knows annotations of locks.
TEST(Preprocessor, DecidesNothing) {
  const std::regex condition("^\\s*#\\s*(if|ifdef|ifndef|elif|else|endif)\\b");
  for (const SourceFile& file : code_of({"src", "perf"})) {
    if (file.path == "src/base/thread_annotations.h") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], condition))
          << file.path << ":" << i + 1 << ": CMake chooses files, the preprocessor decides nothing";
    }
  }
}

// What C and C++ open by themselves may get the number of a standard stream. The command is a process of its own.
TEST(Descriptors, HaveOwnersThatKeepOffTheStandardStreams) {
  std::vector<SourceFile> files = code_of({"src"});
  std::erase_if(files, [](const SourceFile& file) {
    const std::string folder = folder_of_file(file.path);
    return folder == "cli" || folder == "machine" || folder == "study";
  });
  expect_absent(files, "\\b(fopen|opendir|popen|[io]?fstream|directory_iterator)\\b",
                "base/files/listing.h, or base/unique_fd.h");
}

TEST(Waiting, IsForEventsNotForTime) {
  const std::vector<SourceFile> files = code_of({"src", "kernels", "perf", "tests"});
  expect_absent(files,
                "\\b(this_thread::sleep_\\w+|sleep_for|usleep|nanosleep|clock_nanosleep)\\b|(^|[^\\w])::sleep\\s*\\(",
                "nothing sleeps for a time: wait for the event");
}

// Exceptions may be caught by the guard of the C functions, by the command line for its parser's errors, where a lack
// of memory ends the process or a round of an engine, and where elements are selected, which may take much memory.
TEST(Exceptions, AreCaughtAtTheCBoundaryOnly) {
  std::vector<SourceFile> files = code_of({"src", "kernels"});
  expect_absent(files, "\\bthrow\\b", "errors are results");
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const SourceFile& file) {
                               return folder_of_file(file.path) == "api" || file.path == "src/cli/main.cpp" ||
                                      file.path == "src/base/thread.cpp" || file.path == "src/engine/run/engine.cpp" ||
                                      file.path == "src/compress/selection.h";
                             }),
              files.end());
  expect_absent(files, "\\b(catch|try)\\b", "the only catch is the guard of the C functions");
}

// Locks that guard nothing according to the file, as "path:line: name". A guarded member names its lock in the same
// scope. A lock that gives calls one order says which lock comes behind it.
std::vector<std::string> guardless_locks(const SourceFile& file) {
  static const std::regex lock("\\b(Mutex|ProgressLock)\\s+(\\w+)\\s*(;|\\{|TRESTLE_)");
  std::vector<std::string> found;
  for (size_t i = 0; i < file.code.size(); ++i) {
    std::smatch match;
    const bool named = std::regex_search(file.code[i], match, lock);
    // No annotation can say that it guards anything.
    const bool made = file.code[i].find("new Mutex") != std::string::npos;
    const std::string where = file.path + ":" + std::to_string(i + 1) + ": ";
    if (made) found.push_back(where + "new Mutex");
    if (!named) continue;
    const std::string name = match[2];
    const std::regex guarded("TRESTLE_(PT_)?GUARDED_BY\\(([\\w.]|->|::)*\\b" + name + "\\)");
    std::string rest = match.suffix().str();
    int depth = 0;
    bool guards = file.code[i].find("TRESTLE_ACQUIRED_BEFORE(") != std::string::npos;
    for (size_t k = i; depth >= 0 && !guards && k < file.code.size(); ++k) {
      if (k != i) rest = file.code[k];
      guards = std::regex_search(rest, guarded);
      for (const char c : rest) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
    if (!guards) found.push_back(where + name);
  }
  return found;
}

TEST(Locks, AreOnesThatTheAnalysisKnows) {
  std::vector<SourceFile> files = code_of({"src", "kernels", "perf"});
  // libstdc++'s locks cannot be annotated. Each of those of the perf binaries is taken once in a function and held to
  // its end.
  const std::set<std::string> except = {"src/base/mutex.h", "perf/report/json_report.h", "perf/report/json_report.cpp",
                                        "perf/driver/ending.cpp"};
  std::erase_if(files, [&](const SourceFile& file) { return except.count(file.path) != 0; });
  expect_absent(files, "\\bstd::(\\w*mutex|lock_guard|unique_lock|scoped_lock|condition_variable\\w*)\\b",
                "base/mutex.h, with what it guards annotated");
  size_t locks = 0;
  for (const SourceFile& file : files) {
    for (const std::string& line : file.code) locks += line.find(" Mutex ") != std::string::npos;
    for (const std::string& one : guardless_locks(file)) ADD_FAILURE() << one << " guards nothing: TRESTLE_GUARDED_BY";
  }
  EXPECT_GT(locks, 20u) << "the reader of locks finds nothing any more";
}

TEST(Locks, ThatGuardNothingAreFound) {
  const SourceFile file =
      source_from_text("a.h",
                       "struct A {\n"
                       "  Mutex mutex_;\n"  // 2
                       "  int a TRESTLE_GUARDED_BY(other_mutex_);\n"
                       "  struct B { Mutex own; int* b TRESTLE_PT_GUARDED_BY(own); };\n"
                       "};\n"
                       "int c TRESTLE_GUARDED_BY(mutex_);\n"
                       "auto* d = new Mutex;\n"  // 7
                       "void f(Mutex& mutex);  // Mutex mutex;\n"
                       "struct G { mutable trestle::Mutex m; int g TRESTLE_GUARDED_BY(this->m); };\n");
  EXPECT_EQ(guardless_locks(file), (std::vector<std::string>{"a.h:2: mutex_", "a.h:7: new Mutex"}));
}

// All texts that people read, of any kind.
std::vector<SourceFile> all_texts() {
  std::vector<SourceFile> files = read_sources(
      root(), {"src", "kernels", "perf", "include", "docs", "scripts", "cmake", "tests", "README.md", "CMakeLists.txt"},
      {""});
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const SourceFile& file) { return file.path.find("/corpus/") != std::string::npos; }),
              files.end());
  return files;
}

struct BannedWord {
  std::string text;
  bool whole = false;  // not as the beginning of a longer word
};

bool has_banned(const std::string& line, const BannedWord& word) {
  const auto in_word = [&](size_t at) {
    return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 || line[at] == '_');
  };
  for (size_t at = line.find(word.text); at != std::string::npos; at = line.find(word.text, at + 1)) {
    const bool begins = at == 0 || !in_word(at - 1);
    if (begins && !(word.whole && in_word(at + word.text.size()))) return true;
  }
  return false;
}

TEST(Words, NothingIsLeftForLaterAndNoMachineIsNamed) {
  // In halves, so that this file does not hold them.
  const std::vector<BannedWord> banned = {{"TO"
                                           "DO",
                                           true},
                                          {"FIX"
                                           "ME",
                                           true},
                                          {"XX"
                                           "X",
                                           true},
                                          {"for n"
                                           "ow",
                                           true},
                                          {"place"
                                           "holder"},
                                          {"/wo"
                                           "rk/"},
                                          {"/ho"
                                           "me/"},
                                          {"fa"
                                           "rm-"},
                                          {"hel"
                                           "per-"}};
  for (const SourceFile& file : all_texts()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const BannedWord& word : banned) {
        EXPECT_FALSE(has_banned(file.lines[i], word)) << file.path << ":" << i + 1 << ": has " << word.text;
      }
    }
  }
  EXPECT_TRUE(
      has_banned("// TO"
                 "DO: more",
                 banned[0]));
  EXPECT_FALSE(
      has_banned("trestle-XX"
                 "XXXX",
                 banned[2]));
}

TEST(Names, OfFilesSayWhatIsInThem) {
  const std::regex vague("(^|_)(utils?|common|misc|helpers?|managers?)(_|\\.|$)");
  for (const SourceFile& file : code_of({"src", "kernels", "perf", "tests"})) {
    const std::string name = fs::path(file.path).filename().string();
    EXPECT_FALSE(std::regex_search(name, vague)) << file.path << ": the name says nothing";
    EXPECT_TRUE(std::regex_match(name, std::regex("[a-z0-9_]+(-inl)?\\.(h|cpp|cu|cuh)")))
        << file.path << ": snake_case";
  }
}

// CMake files of the folder `directory`. At the top of the repository also those of cmake/, at the top of the tests
// also those of all labels.
std::vector<fs::path> cmake_files(const fs::path& directory) {
  std::vector<fs::path> places = {directory};
  if (directory == root()) places.push_back(root() / "cmake");
  if (directory == root() / "tests") {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_directory()) places.push_back(entry.path());
    }
  }
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
      const fs::path path = entry.path();
      if (path.filename() == "CMakeLists.txt" || path.extension() == ".cmake") files.push_back(path);
    }
  }
  return files;
}

// Whether a CMake file contains this word.
bool has_word(const fs::path& cmake, const std::string& word) {
  const std::string around = " ()/";
  for (const std::string& line : read_source(root(), cmake).lines) {
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool begins = at == 0 || around.find(line[at - 1]) != std::string::npos;
      const bool ends = end == line.size() || around.find(line[end]) != std::string::npos;
      if (begins && ends) return true;
    }
  }
  return false;
}

// Whether a CMake file in the source's folder or above lists the source by its path from there (perf binaries: by
// name).
bool is_listed(const std::string& source) {
  const fs::path path = root() / source;
  for (fs::path directory = path.parent_path();; directory = directory.parent_path()) {
    const fs::path listed = path.lexically_relative(directory);
    for (const fs::path& cmake : cmake_files(directory)) {
      if (has_word(cmake, listed.generic_string())) return true;
      if (directory == root() / "perf" && has_word(cmake, listed.stem().generic_string())) return true;
    }
    if (directory == root()) return false;
  }
}

TEST(Build, ListsEverySource) {
  for (const SourceFile& file : read_sources(root(), {"src", "kernels", "perf", "tests"}, {".cpp", ".cu"})) {
    EXPECT_TRUE(is_listed(file.path)) << file.path << " is in no CMakeLists.txt: it is never built";
  }
  EXPECT_FALSE(is_listed("src/base/heck.cpp")) << "part of a name is not the name";
}

// ---- the reader of sources itself

TEST(Reader, TakesCommentsAndLiteralsOut) {
  const SourceFile file = source_from_text("a.cpp",
                                           "int a = 1'000;  // getenv {\n"
                                           "/* } */ char c = '{', d = '\\'';\n"
                                           "auto s = \"} \\\" getenv\", r = R\"x({ )\" )x\";\n"
                                           "#define OPEN \\\n  {\n"
                                           "int b;\n");
  ASSERT_EQ(file.code.size(), 6u);
  for (const std::string& line : file.code) {
    EXPECT_EQ(line.find_first_of("{}"), std::string::npos) << line;
    EXPECT_EQ(line.find("getenv"), std::string::npos) << line;
  }
  EXPECT_NE(file.code[0].find("1'000;"), std::string::npos) << file.code[0];
  EXPECT_EQ(file.code[5], "int b;");
}

TEST(Reader, FindsFunctionsAndTheirLengths) {
  const SourceFile file = source_from_text("a.cpp",
                                           "namespace x {\n"                             // 1
                                           "const int kTable[] = {\n"                    // 2
                                           "    f(1),\n"                                 // 3
                                           "};\n"                                        // 4
                                           "template <typename T>\n"                     // 5
                                           "struct A {\n"                                // 6
                                           "  A(int a,\n"                                // 7
                                           "    int b = 3) : a_(a) {\n"                  // 8
                                           "    if (b) {\n"                              // 9
                                           "    }\n"                                     // 10
                                           "  }\n"                                       // 11
                                           "  bool operator==(const A&) {\n"             // 12
                                           "    return true;\n"                          // 13
                                           "  }\n"                                       // 14
                                           "};\n"                                        // 15
                                           "int one() { return [] { return 1; }(); }\n"  // 16
                                           "}\n");
  const std::vector<FunctionSpan> functions = functions_of(file);
  ASSERT_EQ(functions.size(), 3u);
  EXPECT_EQ(functions[0].first_line, 7u);
  EXPECT_EQ(functions[0].lines, 5u);
  EXPECT_EQ(functions[1].first_line, 12u);
  EXPECT_EQ(functions[1].lines, 3u);
  EXPECT_EQ(functions[2].first_line, 16u);
  EXPECT_EQ(functions[2].lines, 1u);
}

// Lines on which a comment begins with "the same": its subject is on another line, which readers must hold in mind.
std::vector<size_t> comments_without_subject(const SourceFile& file) {
  static const std::regex begins("^( *)(.*)(//|/\\*)[/*!<]* ?[Tt]he same\\b");
  std::vector<size_t> found;
  bool in_comment = false;  // the line before is a comment of its own
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    std::smatch at;
    const bool matches = line.find("he same") != std::string::npos && std::regex_search(line, at, begins);
    const bool goes_on = matches && in_comment && at[2].length() == 0 && at[3] == "//";
    if (matches && !goes_on) found.push_back(i + 1);
    in_comment = starts_with(line.substr(std::min(line.find_first_not_of(' '), line.size())), "//");
  }
  return found;
}

TEST(Comments, BeginWithTheirSubject) {
  for (const SourceFile& file : code_of({"src", "kernels", "perf", "include", "tests", "docs/examples"})) {
    for (const size_t line : comments_without_subject(file)) {
      ADD_FAILURE() << file.path << ":" << line << ": begins with \"the same\": as what?";
    }
  }
  // In halves, so that this file does not hold them.
  const std::string same =
      "he "
      "same";
  const SourceFile file = source_from_text("a.h", "// Bytes of\n// t" + same + " step.\nint a;  // t" + same +
                                                      "\n\n  // T" + same + ", later.\n/* t" + same + " */\n");
  EXPECT_EQ(comments_without_subject(file), (std::vector<size_t>{3, 5, 6}));
}

}  // namespace
}  // namespace tidy_test
}  // namespace trestle
