// Small files as the kernel writes them, and what is read where there is none.
#include "base/files/kernel_file.h"

#include <gtest/gtest.h>

#include "support/node_files.h"

namespace trestle {
namespace {

TEST(KernelFiles, HaveALineOrANumber) {
  const NodeFiles files({});
  const std::string path = files.path() + "/file";
  struct Case {
    const char* text;
    const char* line;
    int64_t number;
  };
  for (const Case& c : {Case{"12\n", "12", 12},
                        {"-1", "-1", -1},
                        {"16.0 GT/s PCIe\nmore\n", "16.0 GT/s PCIe", 7},
                        {"", "", 7},
                        {"\n3\n", "", 7}}) {
    files.write("file", c.text);
    EXPECT_EQ(first_line(path).value(), c.line);
    EXPECT_EQ(number_in(path, 7), c.number) << c.text;
  }
}

TEST(KernelFiles, ThatAreMissingAreSaid) {
  const NodeFiles files({});
  const std::string path = files.path() + "/none";
  ASSERT_FALSE(first_line(path).ok());
  EXPECT_EQ(first_line(path).error().message, path + " cannot be read");
  EXPECT_EQ(number_in(path, -5), -5);
  EXPECT_FALSE(first_line(files.path()).ok()) << "a folder has no lines";
}

}  // namespace
}  // namespace trestle
