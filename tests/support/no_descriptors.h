// For tests of what happens when this process may open no more descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"

namespace trestle {

// This process may open no descriptors, until it ends.
//
// It lowers the limit of open files instead of using all up: another thread may close some at any time, for example a
// server of an earlier test that ends late. Below this limit are only the standard streams, which no UniqueFd takes.
// poll() fails for more entries than the limit.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{kStandardStreams, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_FALSE(open());
  }
  ~NoDescriptorsLeft() { leave_all(); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
  void leave_all() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  static constexpr int kStandardStreams = 3;
  static UniqueFd open() {
    return UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC); });
  }

  rlimit before_{};
};

// A stream socket that connects when no descriptors are left. It is made before.
class EarlySocket {
 public:
  explicit EarlySocket(int family)
      : socket_(UniqueFd::open([family] { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); })) {
    EXPECT_TRUE(socket_);
  }
  // Returns it connected and nonblocking. The listener is on this host and has room in its queue.
  UniqueFd connect(const sockaddr* to, socklen_t length) {
    EXPECT_EQ(::connect(socket_.get(), to, length), 0);
    EXPECT_EQ(::fcntl(socket_.get(), F_SETFL, O_NONBLOCK), 0);
    return std::move(socket_);
  }

 private:
  UniqueFd socket_;
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
