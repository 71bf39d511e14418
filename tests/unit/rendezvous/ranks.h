// Threads as ranks that join over loopback, for the tests of the rendezvous.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "rendezvous/bootstrap.h"
#include "transport/socket/socket.h"

namespace trestle {

inline BootstrapConfig loopback_config(int32_t nranks, int32_t rank, const UniqueIdBytes& id) {
  BootstrapConfig config;
  config.nranks = nranks;
  config.rank = rank;
  config.id = id;
  config.deadline_ns = monotonic_clock().now_ns() + 120 * kSecond;  // more than a slow machine needs
  config.interfaces = "lo";
  return config;
}

inline UniqueIdBytes loopback_id() {
  Result<UniqueIdBytes> id = make_unique_id(loopback_config(1, 0, {}), 0);
  EXPECT_TRUE(id.ok()) << id.error().message;
  return id.value();
}

using Joined = Result<std::unique_ptr<Bootstrap>>;

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Joins all at once, each in its own thread. Results by index.
inline std::vector<Joined> join_all(const std::vector<BootstrapConfig>& configs) {
  std::vector<Joined> results;
  for (size_t i = 0; i < configs.size(); ++i) results.emplace_back(Error{Code::kInternalError, "did not run"});
  std::vector<std::thread> threads;
  for (size_t i = 0; i < configs.size(); ++i)
    threads.emplace_back([&, i] { results[i] = Bootstrap::join(configs[i]); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

// A job that fails at its deadline. A busy machine may be too slow for what must happen before: then it is tried again
// with twice the time, until all ranks say `sentence` or 16 s were not enough.
inline std::vector<Joined> join_until_told(
    const std::string& sentence, const std::function<std::vector<BootstrapConfig>(int64_t deadline_ns)>& job) {
  for (int64_t wait_ns = kSecond / 4;; wait_ns *= 2) {
    std::vector<Joined> results = join_all(job(monotonic_clock().now_ns() + wait_ns));
    const bool told = std::all_of(results.begin(), results.end(), [&](const Joined& joined) {
      return !joined.ok() && contains(joined.error().message, sentence);
    });
    if (told || wait_ns >= 16 * kSecond) return results;
  }
}

inline std::vector<BootstrapConfig> configs_for(int32_t nranks, const UniqueIdBytes& id) {
  std::vector<BootstrapConfig> configs;
  for (int32_t r = 0; r < nranks; ++r) configs.push_back(loopback_config(nranks, r, id));
  return configs;
}

inline void on_each_rank(std::vector<std::unique_ptr<Bootstrap>>& ranks, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (auto& rank : ranks) threads.emplace_back([&] { body(*rank); });
  for (std::thread& thread : threads) thread.join();
}

inline std::vector<std::unique_ptr<Bootstrap>> all_of(std::vector<Joined> results) {
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  for (Joined& result : results) {
    EXPECT_TRUE(result.ok()) << result.error().message;
    if (result.ok()) ranks.push_back(std::move(result).value());
  }
  return ranks;
}

// A port of the loopback address that stays taken as long as the result lives. backlog: how many connections may wait
// there, less one.
inline Listener taken_port(int backlog = 512) {
  SocketAddress any = parse_address("127.0.0.1:1").value();
  any.set_port(0);
  return listen_tcp_at(any, backlog).value();
}

// Whether this process may have so many connections of which it holds both ends, and whether a listening queue holds
// them before anybody accepts them.
inline bool can_open(rlim_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 2 * connections + 100;
}
inline bool can_queue(size_t connections) {
  size_t most = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> most;
  return most >= connections;
}

}  // namespace trestle
