// What ranks do in the tests of `trestle run`: the test program itself, told by its first argument.
#pragma once

#include <string>
#include <vector>

#include "local/command.h"

namespace parts {

// The arguments of `trestle` for so many ranks with this part. `more` are the part's own.
std::vector<std::string> run(int ranks, const std::string& part, const std::vector<std::string>& options = {},
                             const std::vector<std::string>& more = {});
// This program with a part, as behind a ':'.
std::vector<std::string> program(const std::string& part, const std::vector<std::string>& more = {});

// The value behind `label`, up to the end of its word, in each line that begins with it: "[3] pid " finds pids.
std::vector<std::string> values(const Command& command, const std::string& label);
pid_t pid_of(const Command& command, int rank);  // of a rank that has said "pid N"

// From /proc: 'R', 'S', 'T' (stopped), 'Z', ...; 0: there is no such process.
char state_of(pid_t pid);

// argv of a rank's process: 0 where it is none.
bool is_part(int argc, char** argv);
int main_of_part(int argc, char** argv);

}  // namespace parts
