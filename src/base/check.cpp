#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace trestle {

void check_failed(const char* file, int line, const char* condition, const char* sentence) {
  // Plain stdio, not the log: the log may be the broken part, or switched off.
  std::fprintf(stderr, "%s:%d: trestle check failed: %s: %s\n", file, line, condition, sentence);
  std::fflush(stderr);
  std::abort();
}

}  // namespace trestle
