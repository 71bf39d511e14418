#include "base/host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace trestle {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string boot_id() {
  const UniqueFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 64> text{};
  const ssize_t length = read(file.get(), text.data(), text.size());
  if (length <= 0) return {};
  std::string id(text.data(), static_cast<size_t>(length));
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

uint64_t network_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/net", &info) == 0 ? static_cast<uint64_t>(info.st_ino) : 0;
}

std::string host_identity() {
  return host_name() + "/" + boot_id() + "/" + std::to_string(network_namespace());
}

int usable_cpus() {
  // The fixed cpu_set_t holds 1024 CPUs; on larger machines the kernel answers EINVAL until the mask is large enough.
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const size_t mask_bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, mask_bytes, mask.data()) == 0) {
      const int count = CPU_COUNT_S(mask_bytes, mask.data());
      return count > 0 ? count : 1;
    }
    if (errno != EINVAL) break;
  }
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

}  // namespace trestle
