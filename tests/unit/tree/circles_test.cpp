// Includes go around in no circle: neither from a file back to itself, nor from a folder to one beside it and back.
// What a folder may include of the folders beside it is then one order, in which it can be read.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/tree/tidy_source.h"

namespace trestle {
namespace {

using Edges = std::map<std::string, std::map<std::string, std::string>>;  // from, to: "path:line" of an include

// The includes among these files.
Edges includes_of(const std::vector<SourceFile>& files) {
  static const std::regex include("^\\s*#\\s*include\\s+[\"<]([^\">]+)[\">]");
  std::set<std::string> paths;
  for (const SourceFile& file : files) paths.insert(file.path);
  Edges edges;
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, include)) continue;
      for (const char* root : {"src/", "include/", ""}) {
        const std::string path = root + match[1].str();
        if (paths.count(path) != 0) edges[file.path].emplace(path, file.path + ":" + std::to_string(i + 1));
      }
    }
  }
  return edges;
}

// A shortest way from the node back to itself, as text; "": there is none. members: the nodes on it.
std::string circle_through(const Edges& edges, const std::string& node, std::set<std::string>& members) {
  std::map<std::string, std::string> before;
  std::deque<std::string> reached = {node};
  while (!reached.empty() && before.count(node) == 0) {
    const std::string from = reached.front();
    reached.pop_front();
    if (const auto found = edges.find(from); found != edges.end()) {
      for (const auto& [to, where] : found->second) {
        if (before.emplace(to, from).second) reached.push_back(to);
      }
    }
  }
  if (before.count(node) == 0) return "";
  std::string text;
  for (std::string to = node; text.empty() || to != node; to = before.at(to)) {
    members.insert(to);
    text = "\n  " + edges.at(before.at(to)).at(to) + ": " + before.at(to) + " -> " + to + text;
  }
  return text;
}

// The circles through these nodes, each once.
std::vector<std::string> circles(const Edges& edges, const std::set<std::string>& nodes) {
  std::vector<std::string> found;
  std::set<std::set<std::string>> known;
  for (const std::string& node : nodes) {
    std::set<std::string> members;
    const std::string text = circle_through(edges, node, members);
    if (!text.empty() && known.insert(members).second) found.push_back(text);
  }
  return found;
}

std::vector<std::string> circles_of_files(const std::vector<SourceFile>& files) {
  const Edges edges = includes_of(files);
  std::set<std::string> nodes;
  for (const auto& [from, to] : edges) nodes.insert(from);
  return circles(edges, nodes);
}

// The circles through subfolders of a folder. The folder's own files count one by one, each header with its source.
std::vector<std::string> circles_of_subfolders(const std::vector<SourceFile>& files) {
  const Edges includes = includes_of(files);
  std::map<std::string, Edges> folders;
  std::map<std::string, std::set<std::string>> subfolders;
  for (const auto& [from, targets] : includes) {
    for (const auto& [to, where] : targets) {
      for (size_t end = from.find('/'); end != std::string::npos; end = from.find('/', end + 1)) {
        if (to.compare(0, end + 1, from, 0, end + 1) != 0) break;
        const auto node = [end](const std::string& path) {
          return path.substr(end + 1, path.find_first_of("/.", end + 1) - end - 1);
        };
        if (node(from) == node(to)) continue;
        const std::string folder = from.substr(0, end);
        folders[folder][node(from)].emplace(node(to), where);
        for (const std::string& path : {from, to}) {
          if (path.find('/', end + 1) != std::string::npos) subfolders[folder].insert(node(path));
        }
      }
    }
  }
  std::vector<std::string> found;
  for (const auto& [folder, edges] : folders) {
    for (const std::string& circle : circles(edges, subfolders[folder])) found.push_back(folder + ":" + circle);
  }
  return found;
}

TEST(Circles, OfIncludesDoNotExist) {
  const std::vector<SourceFile> files = code_of({"src", "kernels"});
  EXPECT_GT(includes_of(files).size(), 500u) << "the reader of includes finds nothing any more";
  for (const std::string& circle : circles_of_files(files)) ADD_FAILURE() << "files include each other:" << circle;
  for (const std::string& circle : circles_of_subfolders(files)) {
    ADD_FAILURE() << "folders include each other: move what is common to the lower one. In " << circle;
  }
}

TEST(Circles, OfFilesAreFound) {
  const SourceFile one = source_from_text("src/a/one.h", "#pragma once\n#include \"a/two.h\"\n");
  const SourceFile two = source_from_text("src/a/two.h", "#include \"b/three.h\"\n");
  const SourceFile three = source_from_text("src/b/three.h", "#include <a/one.h>\n");
  const SourceFile end = source_from_text("src/b/three.h", "#include <vector>\n");
  EXPECT_EQ(circles_of_files({one, two, end}), std::vector<std::string>());
  EXPECT_EQ(circles_of_files({one, two, three}),
            std::vector<std::string>{"\n  src/a/one.h:2: src/a/one.h -> src/a/two.h"
                                     "\n  src/a/two.h:1: src/a/two.h -> src/b/three.h"
                                     "\n  src/b/three.h:1: src/b/three.h -> src/a/one.h"});
}

TEST(Circles, OfSubfoldersAreFound) {
  const SourceFile up = source_from_text("src/a/x/up.cpp", "#include \"a/y/above.h\"\n");
  const SourceFile above = source_from_text("src/a/y/above.h", "");
  const SourceFile down = source_from_text("src/a/y/deep/down.h", "\n#include \"a/x/below.h\"\n");
  const SourceFile below = source_from_text("src/a/x/below.h", "");
  EXPECT_EQ(circles_of_subfolders({up, above, below}), std::vector<std::string>());
  EXPECT_EQ(circles_of_subfolders({up, above, down, below}),
            std::vector<std::string>{"src/a:\n  src/a/x/up.cpp:1: x -> y\n  src/a/y/deep/down.h:2: y -> x"});
  // A header and its source are one, so this goes around through a file beside the folder.
  const SourceFile source = source_from_text("src/a/own.cpp", "#include \"a/x/below.h\"\n");
  const SourceFile header = source_from_text("src/a/own.h", "");
  const SourceFile user = source_from_text("src/a/x/user.h", "#include \"a/own.h\"\n");
  EXPECT_EQ(circles_of_subfolders({source, header, user, below}),
            std::vector<std::string>{"src/a:\n  src/a/x/user.h:1: x -> own\n  src/a/own.cpp:1: own -> x"});
  // One file of a folder may be below its subfolders, and another one above them.
  const SourceFile other = source_from_text("src/a/other.cpp", "#include \"a/x/user.h\"\n");
  EXPECT_EQ(circles_of_subfolders({other, header, user}), std::vector<std::string>());
}

}  // namespace
}  // namespace trestle
