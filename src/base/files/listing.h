// Opens files and folders for functions of C that keep the descriptor to themselves. Theirs, too, never has a number of
// a standard stream (base/unique_fd.h). Any thread.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

// The file to read from its beginning; nullptr: it cannot be opened, and errno says why.
OpenFile open_to_read(const std::string& path);

// The names in a folder, without "." and "..", in no order. Error (kSystemError): "/x cannot be read: ...".
Result<std::vector<std::string>> entries_of(const std::string& folder);

}  // namespace trestle
