// Finds things that a process or a job must not leave behind.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace torture {

// The kinds of this process's open descriptors.
std::vector<std::string> open_descriptors();
// Sockets, shared memory and files that were not open before, and mappings of the library's shared memory. "": none.
std::string left_behind(const std::vector<std::string>& open_before);
// Names in a folder.
std::set<std::string> names_in(const std::string& folder);

}  // namespace torture
