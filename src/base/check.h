// CHECK: our own bugs stop the process with a sentence. Always on, any thread.
// The name of the file without its folder: where somebody built is nothing that the library should carry.
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
