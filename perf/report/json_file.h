// The file of -J. It gets a free name before the run. It is a complete document from the first write on, so that it can
// be read when a signal ends the run between two rows.
//
// Owned by main of the process that prints. Any of its threads may append to the document, one at a time.
#pragma once

#include <cstddef>
#include <string>

namespace trestle::perf {

class JsonFile {
 public:
  // Creates PATH, or PATH.0, PATH.1, ... if that exists: nothing is overwritten. Returns the error message, or "".
  std::string create(const std::string& path);
  // Creates the file and removes it again, to see whether create would succeed. For a process that only starts others.
  static std::string probe(const std::string& path);

  bool is_open() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  // Appends `text`, which stays, and then `tail`, which completes the document and is replaced by the next call.
  // Returns "", or the error message; then the document is as before.
  std::string append(const std::string& text, const std::string& tail);

 private:
  std::string path_;
  size_t kept_ = 0;   // bytes of the appended texts
  size_t end_ = 0;    // bytes of the file
  std::string tail_;  // what follows the texts
};

}  // namespace trestle::perf
