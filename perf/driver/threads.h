// The threads of one process of a perf binary.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

namespace trestle::perf {

// Calls run(0) .. run(count - 1), each on a thread; the first on the caller's. Returns the highest exit code.
inline int run_threads(int count, const std::function<int(int thread)>& run) {
  std::vector<int> codes(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int thread = 1; thread < count; ++thread) {
    threads.emplace_back([&run, &codes, thread] { codes[static_cast<size_t>(thread)] = run(thread); });
  }
  codes[0] = run(0);
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace trestle::perf
