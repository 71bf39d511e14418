#include "perf/driver/ending.h"

#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace trestle::perf {
namespace {

// A thread whose rank fails because another rank of this process failed must not print another line; the process ends
// meanwhile.
std::mutex first_failure;
std::function<void(const std::string&)> last_words;

}  // namespace

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void at_failure(std::function<void(const std::string&)> words) {
  last_words = std::move(words);
}

void fail(ExitCode code, const std::string& sentence, Place where) {
  first_failure.lock();  // never unlocked
  const std::string file = where.file;
  const size_t slash = file.rfind("perf/");
  std::printf(" .. %s pid %d: Test failure %s:%d: %s\n", host_name().c_str(), static_cast<int>(getpid()),
              file.substr(slash == std::string::npos ? 0 : slash).c_str(), where.line, sentence.c_str());
  if (last_words) last_words(sentence);
  std::fflush(nullptr);
  _exit(code);
}

void require(trestleResult_t result, trestleComm_t comm, Place where) {
  if (result == trestleSuccess) return;
  const std::string sentence = trestleGetLastError(comm);
  fail(result == trestleTimeout ? kExitTimeout : kExitLibrary,
       std::string(trestleGetErrorString(result)) + (sentence.empty() ? "" : ": " + sentence), where);
}

}  // namespace trestle::perf
