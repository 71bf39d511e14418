// SourceFile: a text file of the repository as the tidiness tests look at it: its lines, and the same lines as code
// alone. Value type, read-only after load().
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace trestle {

struct SourceFile {
  std::string path;                // relative to the repository
  std::vector<std::string> lines;  // as they are
  std::vector<std::string> code;   // C and C++: comments, preprocessor lines and the contents of literals are blanks
};

struct FunctionSpan {
  size_t first_line = 0;  // from 1, of the signature
  size_t lines = 0;       // to the closing brace
};

SourceFile read_source(const std::filesystem::path& root, const std::filesystem::path& path);
// From text, for the tests of the reader itself.
SourceFile source_from_text(std::string path, const std::string& text);

// Functions that are defined at namespace or class level. Braces are counted; what opens one is told by the text before
// it: a namespace, a type, a table (with '=' outside parentheses) or, with parentheses, a function.
std::vector<FunctionSpan> functions_of(const SourceFile& file);

// All files below the folders (or the files themselves) whose extension is one of these ("": any), sorted by path.
// Build folders and hidden files are left out.
std::vector<SourceFile> read_sources(const std::filesystem::path& root, const std::vector<std::string>& places,
                                     const std::vector<std::string>& extensions);

}  // namespace trestle
