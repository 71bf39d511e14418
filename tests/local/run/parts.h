// The ranks in the tests of `trestle run` are the test program itself. Its first argument selects their part.
#pragma once

#include <string>
#include <vector>

#include "local/command.h"

namespace parts {

// The arguments of `trestle` for so many ranks with this part. `more`: the part's own arguments.
std::vector<std::string> run(int ranks, const std::string& part, const std::vector<std::string>& options = {},
                             const std::vector<std::string>& more = {});
// This program with a part, for use after a ':'.
std::vector<std::string> program(const std::string& part, const std::vector<std::string>& more = {});

// The value after `label`, up to the end of its word, in each line that begins with the label. "[3] pid " finds pids.
std::vector<std::string> values(const Command& command, const std::string& label);
pid_t pid_of(const Command& command, int rank);  // the rank must have printed "pid N"

// The state in /proc: 'R', 'S', 'T' (stopped), 'Z', ...; 0: there is no such process.
char state_of(pid_t pid);

// Whether these are the arguments of a rank's process.
bool is_part(int argc, char** argv);
int main_of_part(int argc, char** argv);

}  // namespace parts
