// The variables of the perf binaries: nccl-tests' names NCCL_TESTS_X, or TRESTLE_TESTS_X, which holds where both are
// set.
//
// Read by main before other threads exist and before the first call into the library.
#pragma once

#include <string>

namespace trestle::perf {

// Gives every TRESTLE_TESTS_X to NCCL_TESTS_X and removes it: the library warns about TRESTLE_ variables that it does
// not know, and processes that this one starts inherit the rest. Called first.
void adopt_test_variables();

// NCCL_TESTS_<name>'s text; "": not set.
std::string test_variable(const std::string& name);

}  // namespace trestle::perf
