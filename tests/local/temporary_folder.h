// TemporaryFolder: a folder of a test. It is removed with its contents. One thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

class TemporaryFolder {
 public:
  TemporaryFolder() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + ("/" + name); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    EXPECT_TRUE(file.is_open()) << path(name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Makes the folders on the way. Returns the path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  char path_[32] = "/tmp/trestle_test_XXXXXX";
};
