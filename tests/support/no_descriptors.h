// For tests of what happens when this process may open no more descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"

namespace trestle {

// Takes all descriptors that this process may open, until it ends.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 1024);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (UniqueFd fd = UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC); })) taken_.push_back(std::move(fd));
    EXPECT_FALSE(taken_.empty());
  }
  ~NoDescriptorsLeft() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
  void leave_one() { taken_.pop_back(); }
  void leave_all() { taken_.clear(); }

 private:
  rlimit before_{};
  std::vector<UniqueFd> taken_;
};

// What this process logs at WARN while it exists. Reading it needs no descriptor.
class Warnings {
 public:
  Warnings() : path_(testing::TempDir() + "trestle_descriptors_" + std::to_string(getpid())) {
    EXPECT_TRUE(configure_log({LogLevel::kWarn, 0, path_}).ok());
    file_ = UniqueFd::open([this] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC); });
    EXPECT_TRUE(file_);
  }
  ~Warnings() {
    EXPECT_TRUE(configure_log({LogLevel::kNone, 0, ""}).ok());
    std::remove(path_.c_str());
  }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  size_t count(const std::string& part) const {
    const std::string all = text();
    size_t found = 0;
    for (size_t at = all.find(part); at != std::string::npos; at = all.find(part, at + 1)) ++found;
    return found;
  }
  void wait_for(const std::string& part) const {
    while (count(part) == 0) std::this_thread::yield();
  }

 private:
  std::string text() const {
    std::string all(64 * 1024, '\0');
    const ssize_t got = ::pread(file_.get(), all.data(), all.size(), 0);
    all.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return all;
  }

  const std::string path_;
  UniqueFd file_;
};

}  // namespace trestle
