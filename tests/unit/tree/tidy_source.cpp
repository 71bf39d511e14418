#include "unit/tree/tidy_source.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace trestle {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Reads C++ text and blanks everything that is not code; line ends stay.
class Blanker {
 public:
  explicit Blanker(std::string text) : text_(std::move(text)) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_until("\n", 0);
      } else if (starts("/*")) {
        blank_until("*/", 2);
      } else if (starts("R\"") && (at_ == 0 || !is_word(text_[at_ - 1]))) {
        const size_t open = text_.find('(', at_);
        blank_until(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"", open - at_);
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && (at_ == 0 || !is_word(text_[at_ - 1])))) {
        literal();
      } else if (text_[at_] == '#' && first_of_line()) {
        directive();
      } else {
        ++at_;
      }
    }
    return std::move(text_);
  }

 private:
  bool starts(const char* what) const { return text_.compare(at_, std::char_traits<char>::length(what), what) == 0; }
  void blank() {
    if (text_[at_] != '\n') text_[at_] = ' ';
    ++at_;
  }
  void blank_until(const std::string& end, size_t after) {
    const size_t found = text_.find(end, at_ + after);
    const size_t stop = found == std::string::npos ? text_.size() : found + (end == "\n" ? 0 : end.size());
    while (at_ < stop) blank();
  }
  void literal() {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\') blank();
      if (at_ < text_.size()) blank();
    }
    if (at_ < text_.size()) ++at_;
  }
  bool first_of_line() const {
    size_t i = at_;
    while (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\t')) --i;
    return i == 0 || text_[i - 1] == '\n';
  }
  void directive() {
    bool continued = false;
    while (at_ < text_.size() && (text_[at_] != '\n' || continued)) {
      continued = text_[at_] == '\\';
      blank();
    }
  }

  std::string text_;
  size_t at_ = 0;
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

enum class Opened { kScope, kFunction, kOther };

// The kind of a brace, by the text since the previous statement.
Opened classify(const std::string& head) {
  int depth = 0;
  bool parentheses = false;
  std::string word;
  std::string previous;
  for (char c : head + " ") {
    if (is_word(c)) {
      word += c;
      continue;
    }
    if (depth == 0 && !parentheses) {
      for (const char* scope : {"namespace", "struct", "class", "enum", "union", "extern"}) {
        if (word == scope) return Opened::kScope;
      }
    }
    if (!word.empty()) previous = word;
    word.clear();
    if (c == '(') parentheses = true;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == '=' && depth == 0 && previous != "operator") return Opened::kOther;
  }
  return parentheses ? Opened::kFunction : Opened::kOther;
}

}  // namespace

SourceFile source_from_text(std::string path, const std::string& text) {
  return {std::move(path), split_lines(text), split_lines(Blanker(text).run())};
}

SourceFile read_source(const std::filesystem::path& root, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return source_from_text(path.lexically_relative(root).generic_string(), text.str());
}

std::vector<FunctionSpan> functions_of(const SourceFile& file) {
  struct Level {
    Opened opened;
    size_t first_line;
  };
  std::vector<FunctionSpan> functions;
  std::vector<Level> levels;
  size_t inside = 0;  // levels that are no scopes
  std::string head;
  size_t head_line = 0;
  for (size_t i = 0; i < file.code.size(); ++i) {
    for (char c : file.code[i] + "\n") {
      if (c == '{') {
        const Opened opened = classify(head);
        levels.push_back({opened, head_line == 0 ? i + 1 : head_line});
        inside += opened != Opened::kScope;
      } else if (c == '}' && !levels.empty()) {
        const Level level = levels.back();
        levels.pop_back();
        inside -= level.opened != Opened::kScope;
        if (level.opened == Opened::kFunction && inside == 0) {
          functions.push_back({level.first_line, i + 2 - level.first_line});
        }
      }
      if (c == '{' || c == '}' || c == ';') {
        head.clear();
        head_line = 0;
      } else {
        if (head_line == 0 && c != ' ' && c != '\n') head_line = i + 1;
        if (head_line != 0) head += c;
      }
    }
  }
  return functions;
}

std::vector<SourceFile> read_sources(const std::filesystem::path& root, const std::vector<std::string>& places,
                                     const std::vector<std::string>& extensions) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  const auto wanted = [&](const fs::path& path) {
    if (path.filename().string().front() == '.') return false;
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const std::string& e) { return e.empty() || path.extension() == e; });
  };
  for (const std::string& place : places) {
    const fs::path start = root / place;
    if (fs::is_regular_file(start)) paths.push_back(start);
    if (!fs::is_directory(start)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(start)) {
      if (entry.is_regular_file() && wanted(entry.path())) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SourceFile> files;
  for (const fs::path& path : paths) files.push_back(read_source(root, path));
  return files;
}

const std::filesystem::path& root() {
  static const std::filesystem::path path = TRESTLE_SOURCE_DIR;
  return path;
}

std::vector<SourceFile> code_of(const std::vector<std::string>& places) {
  return read_sources(root(), places, {".h", ".cpp", ".cu", ".cuh"});
}

}  // namespace trestle
