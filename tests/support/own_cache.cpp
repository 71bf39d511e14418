// In every test program: what it keeps for later jobs, such as calibrations, goes into the build folder. It neither
// reads nor changes the cache of the user, also when it is started by hand.
#include <stdlib.h>

namespace {

[[gnu::constructor]] void use_own_cache() {
  setenv("XDG_CACHE_HOME", TRESTLE_TEST_CACHE, 1);
}

}  // namespace
