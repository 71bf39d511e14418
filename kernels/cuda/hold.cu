// A kernel that keeps one multiprocessor busy until the host says that it may end: for measurements only
// (perf/device/stream_hold.cpp). The library never launches it.

// word: in pinned memory. limit_ns: it ends then in any case, so that a host that has died leaves no busy GPU behind.
extern "C" __global__ void spin_until(const volatile unsigned* word, unsigned value, unsigned long long limit_ns) {
  unsigned long long begin = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<int>(*word - value) < 0 && now - begin < limit_ns);
}
