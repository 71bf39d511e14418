// SourceFile: a text file of the repository for the tidiness tests: its lines, and the same lines with code only. Value
// type, read-only after load().
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace trestle {

struct SourceFile {
  std::string path;                // relative to the repository
  std::vector<std::string> lines;  // unchanged
  std::vector<std::string> code;   // C and C++: comments, preprocessor lines and the contents of literals are blanks
};

struct FunctionSpan {
  size_t first_line = 0;  // from 1, of the signature
  size_t lines = 0;       // to the closing brace
};

SourceFile read_source(const std::filesystem::path& root, const std::filesystem::path& path);
// Made from a text, for the tests of the reader itself.
SourceFile source_from_text(std::string path, const std::string& text);

// Functions that are defined at namespace or class level. Counts braces. The text before a brace tells what it opens: a
// namespace, a type, a table (with '=' outside parentheses) or, with parentheses, a function.
std::vector<FunctionSpan> functions_of(const SourceFile& file);

// Of the repository.
const std::filesystem::path& root();
// All sources in C and C++ below these folders of the repository.
std::vector<SourceFile> code_of(const std::vector<std::string>& places);

// All files below the folders (or the files themselves) with one of these extensions ("": any), sorted by path. Leaves
// out build folders and hidden files.
std::vector<SourceFile> read_sources(const std::filesystem::path& root, const std::vector<std::string>& places,
                                     const std::vector<std::string>& extensions);

}  // namespace trestle
