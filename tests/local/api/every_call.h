// Every function of the public header as a call with good arguments, for tests of what is refused wherever it is asked.
#pragma once

#include <trestle/trestle.h>

#include <functional>
#include <string>
#include <vector>

namespace every_call {

// What a process has made, for the calls to be made on.
struct Things {
  trestleComm_t comm = nullptr;
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
  trestleRequest_t request = nullptr;  // persistent, of an all-reduce
  void* memory = nullptr;              // of trestleMemAlloc
  void* mapped = nullptr;              // a page that may be registered
  void* registration = nullptr;        // of another page
  trestleRedOp_t op = trestleSum;
};
// Makes one of everything; failures are gtest's.
Things make_things(trestleComm_t comm);
// Frees everything but the communicator.
void free_things(const Things& things);

struct NamedCall {
  std::string name;  // of the function, without "trestle"
  std::function<trestleResult_t()> call;
};
// Those that take a handle or memory of the library. None may be called where it is not refused: Destroy is among them.
std::vector<NamedCall> calls_on(const Things& things);
// All others, but for those that are allowed everywhere.
std::vector<NamedCall> other_calls();
// What the header allows everywhere.
std::vector<std::string> queries();
// The names of all functions that the header has.
std::vector<std::string> functions_of_the_header();

}  // namespace every_call
