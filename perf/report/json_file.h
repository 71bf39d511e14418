// The file of -J: found a free name for before the run, and a whole document from the first word on, so that it can be
// read when a signal ends the run between two rows.
//
// Owned by main of the process that prints; the document may grow from any of its threads, one at a time.
#pragma once

#include <cstddef>
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

  // Behind what was appended so far now stand `text`, which stays, and `tail`, which closes what is open and stands
  // until the next call. "", or the sentence of what is wrong; then the document is as it was.
  std::string append(const std::string& text, const std::string& tail);

 private:
  std::string path_;
  size_t kept_ = 0;   // bytes of the texts
  size_t end_ = 0;    // of the file
  std::string tail_;  // what stands behind them
};

}  // namespace trestle::perf
