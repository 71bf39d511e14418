// on_gpu PROGRAM ARGUMENTS...: starts the program if this host has a GPU; else says why not, and ends well. The program
// is started anew, because CUDA does not survive a fork, and the tests of the public API fork.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "device/device.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "Usage: on_gpu PROGRAM ARGUMENTS...\n");
    return 2;
  }
  {
    const auto devices = trestle::open_devices();
    if (!devices.ok()) {
      std::printf("skipped: %s\n", devices.error().message.c_str());
      return 0;
    }
  }
  execv(argv[1], argv + 1);
  std::fprintf(stderr, "on_gpu: %s: %s\n", argv[1], std::strerror(errno));
  return 1;
}
