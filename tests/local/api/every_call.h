// Every function of the public header as a call with valid arguments, for tests of calls that are refused.
#pragma once

#include <trestle/trestle.h>

#include <functional>
#include <string>
#include <vector>

namespace every_call {

// The objects of a process that the calls use.
struct Things {
  trestleComm_t comm = nullptr;
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
  trestleRequest_t request = nullptr;  // persistent, of an all-reduce
  void* memory = nullptr;              // of trestleMemAlloc
  void* mapped = nullptr;              // a page that can be registered
  void* registration = nullptr;        // of another page
  trestleRedOp_t op = trestleSum;
};
// Makes one object of each kind. Failures are gtest's.
Things make_things(trestleComm_t comm);
// Frees everything except the communicator.
void free_things(const Things& things);

struct NamedCall {
  std::string name;  // of the function, without "trestle"
  std::function<trestleResult_t()> call;
};
// The calls that take a handle or memory of the library. Call them only where they are refused: Destroy is among them.
std::vector<NamedCall> calls_on(const Things& things);
// All other calls, except those that are allowed everywhere.
std::vector<NamedCall> other_calls();
// The functions that the header allows everywhere.
std::vector<std::string> queries();
// The names of all functions in the header.
std::vector<std::string> functions_of_the_header();

}  // namespace every_call
