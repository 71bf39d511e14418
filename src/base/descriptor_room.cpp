#include "base/descriptor_room.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/files/listing.h"
#include "base/fork.h"
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

size_t open_descriptors() {
  const auto all = entries_of("/proc/self/fd");
  return all.ok() ? all.value().size() : 0;
}

// Whether so many descriptors fit, with those that are open already. Some of these may belong to rooms: then the limit
// becomes higher than it need be.
std::string make_room(size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return "";
  const rlim_t wanted = count + open_descriptors();
  if (limit.rlim_cur < wanted) {
    const rlimit raised{std::max(limit.rlim_cur, std::min(wanted, limit.rlim_max)), limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  if (count <= limit.rlim_max) return "";
  return std::to_string(count) + " open files may be needed, and the hard limit is " + std::to_string(limit.rlim_max) +
         " (ulimit -Hn)";
}

}  // namespace

DescriptorRoom::DescriptorRoom(size_t count) {
  const MutexLock lock(rooms().mutex);
  const size_t all = rooms().count + count;
  if (all > kFew) shortage_ = make_room(all);
  rooms().count = all;
  count_ = count;
}

DescriptorRoom::~DescriptorRoom() {
  if (count_ == 0) return;
  const MutexLock lock(rooms().mutex);
  rooms().count -= std::min(rooms().count, count_);
}

}  // namespace trestle
