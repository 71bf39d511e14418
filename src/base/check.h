// CHECK: a bug of our own stops the process with a sentence. Always on, any thread.
// It prints the file's name without its folder: the library must not carry the path of the build.
// Never for user input, the network or the operating system: those are Results.
#pragma once

namespace trestle {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* sentence);

}  // namespace trestle

#define CHECK(condition, sentence)                                            \
  do {                                                                        \
    if (!(condition)) [[unlikely]]                                            \
      ::trestle::check_failed(__FILE_NAME__, __LINE__, #condition, sentence); \
  } while (false)
