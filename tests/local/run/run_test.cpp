// The tests of `trestle run` and, in other processes, the ranks that they start.
#include <gtest/gtest.h>

#include "local/run/parts.h"

int main(int argc, char** argv) {
  if (parts::is_part(argc, argv)) return parts::main_of_part(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
