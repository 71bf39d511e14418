#include "base/host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fork.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace trestle {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

namespace {

std::string read_boot_id() {
  const UniqueFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 64> text{};
  const ssize_t length = read(file.get(), text.data(), text.size());
  if (length <= 0) return {};
  std::string id(text.data(), static_cast<size_t>(length));
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// Remembered: at a moment without free descriptors this process would seem to be on another host.
struct BootId {
  Mutex mutex;
  std::string known TRESTLE_GUARDED_BY(mutex);
};

}  // namespace

std::string boot_id() {
  static constinit PerProcess<BootId> process;
  BootId& id = process.get();
  const MutexLock lock(id.mutex);
  if (id.known.empty()) id.known = read_boot_id();
  return id.known;
}

uint64_t network_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/net", &info) == 0 ? static_cast<uint64_t>(info.st_ino) : 0;
}

std::string network_identity() {
  const std::string boot = boot_id();
  const uint64_t space = network_namespace();
  return boot.empty() || space == 0 ? std::string() : boot + "/" + std::to_string(space);
}

std::string host_identity() {
  return host_name() + "/" + boot_id() + "/" + std::to_string(network_namespace());
}

std::vector<uint64_t> usable_cpu_mask(pid_t thread) {
  // The fixed cpu_set_t holds 1024 CPUs; on larger machines the kernel answers EINVAL until the mask is large enough.
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const size_t mask_bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(thread, mask_bytes, mask.data()) == 0) {
      std::vector<uint64_t> words;
      for (size_t cpu = 0; cpu < mask_bytes * 8; ++cpu) {
        if (!CPU_ISSET_S(cpu, mask_bytes, mask.data())) continue;
        words.resize(cpu / 64 + 1);
        words[cpu / 64] |= uint64_t{1} << cpu % 64;
      }
      return words;
    }
    if (errno != EINVAL) break;
  }
  return {};
}

}  // namespace trestle
