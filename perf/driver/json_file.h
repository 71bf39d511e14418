// The file of -J: found a free name for before the run, written once at its end.
//
// Owned by main of the process that prints; write() may come from any of its threads, once.
#pragma once

#include <string>

namespace trestle::perf {

class JsonFile {
 public:
  // Creates PATH, or PATH.0, PATH.1, ... where that exists: nothing is overwritten. The sentence of what is wrong, or
  // "".
  std::string create(const std::string& path);
  // Creates and removes it again: whether create would succeed. For a process that only starts others.
  static std::string probe(const std::string& path);

  bool is_open() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // The whole text; "" or the sentence of what is wrong.
  std::string write(const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace trestle::perf
