// The variables of the perf binaries: nccl-tests' names NCCL_TESTS_X, overridden by TRESTLE_TESTS_X.
//
// main reads them before other threads exist and before the first call into the library.
#pragma once

#include <string>

namespace trestle::perf {

// Copies every TRESTLE_TESTS_X to NCCL_TESTS_X and removes it. The library warns about TRESTLE_ variables that it does
// not know, and processes that this one starts inherit the others. Called first.
void adopt_test_variables();

// The text of NCCL_TESTS_<name>; "": not set.
std::string test_variable(const std::string& name);

}  // namespace trestle::perf
