// Handles in processes that fork: a child starts as a new program does, and every call refuses inherited handles.
#include "api/handles.h"

#include "api/errors.h"
#include "base/check.h"

namespace trestle {

namespace {

// Runs when the library is loaded, before it owns a descriptor.
[[maybe_unused]] const bool kForksWatched = [] {
  const bool watched = watch_forks();
  CHECK(watched, "out of memory: handlers for fork() cannot be registered");
  return watched;
}();

}  // namespace

Error dead_handle(bool inherited, const char* function, const char* what, const char* ended) {
  const std::string the = std::string(function) + ": the " + what + " was ";
  if (!inherited) return invalid_usage(the + ended);
  return invalid_usage(the + "made before fork(), by the process that forked this one, and only that one uses it: a " +
                       "child makes its own");
}

}  // namespace trestle
