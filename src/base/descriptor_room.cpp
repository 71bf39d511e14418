#include "base/descriptor_room.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>

#include "base/files/listing.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"

namespace trestle {

namespace {

struct Rooms {
  Mutex mutex;
  size_t count TRESTLE_GUARDED_BY(mutex) = 0;  // of all rooms together
};

// The objects that a forked child inherits open nothing.
Rooms& rooms() {
  static constinit PerProcess<Rooms> process;
  return process.get();
}

rlimit limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {RLIM_INFINITY, RLIM_INFINITY};
  return limit;
}

size_t open_descriptors() {
  const auto all = entries_of("/proc/self/fd");
  if (all.ok()) return all.value().size() - 1;  // without that of the listing
  // None is left for the listing, or there is no /proc.
  constexpr rlim_t kMostAsked = 1 << 16;
  const auto numbers = static_cast<int>(std::min(limits().rlim_cur, kMostAsked));
  size_t count = 0;
  for (int fd = 0; fd < numbers; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

// Raises the soft limit to `wanted` where the hard one allows, at least to twice what it was: each time is said.
void raise_to(rlim_t wanted) {
  const rlimit limit = limits();
  if (limit.rlim_cur >= std::min(wanted, limit.rlim_max)) return;
  const rlimit raised{std::min(std::max(wanted, 2 * limit.rlim_cur), limit.rlim_max), limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0) return;
  LOG(kInfo, kInit, "the limit of open files (ulimit -n) is raised from %" PRIu64 " to %" PRIu64,
      uint64_t{limit.rlim_cur}, uint64_t{raised.rlim_cur});
}

std::string limits_text(const rlimit& limit) {
  return "ulimit -n is " + std::to_string(limit.rlim_cur) + ", its hard limit " + std::to_string(limit.rlim_max);
}

// Less than a quarter of the limit leaves the rest of the program enough. Some of the open ones may belong to rooms:
// then the limit becomes higher than it need be.
std::string make_room(size_t count) {
  if (4 * count < limits().rlim_cur) return "";
  raise_to(count + open_descriptors());
  const rlimit limit = limits();
  if (count <= limit.rlim_cur) return "";
  return std::to_string(count) + " open files may be needed, and " + limits_text(limit);
}

}  // namespace

Status make_descriptor_room(const std::string& what, size_t count) {
  const MutexLock lock(rooms().mutex);
  const size_t open = open_descriptors();
  raise_to(open + count + rooms().count);
  const rlimit limit = limits();
  if (open + count <= limit.rlim_cur) return {};
  return Error{Code::kSystemError, what + " needs " + std::to_string(count) + " more open files, and " +
                                       std::to_string(open) + " are open: " + limits_text(limit)};
}

DescriptorRoom::DescriptorRoom(size_t count) {
  const MutexLock lock(rooms().mutex);
  rooms().count += count;
  shortage_ = make_room(rooms().count);
  count_ = count;
}

DescriptorRoom::~DescriptorRoom() {
  if (count_ == 0) return;
  const MutexLock lock(rooms().mutex);
  rooms().count -= std::min(rooms().count, count_);
}

}  // namespace trestle
