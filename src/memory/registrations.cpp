#include "memory/registrations.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "memory/mem_alloc.h"

namespace trestle {

namespace {

constexpr const char* kUseInstead = ": use trestleMemAlloc, or memfd_create and mmap with MAP_SHARED";

std::string text_of(const void* begin, size_t bytes) {
  std::array<char, 80> text;
  std::snprintf(text.data(), text.size(), "the memory at %p (%zu bytes)", begin, bytes);
  return text.data();
}

bool starts_with(const std::string& text, const char* start) {
  return text.rfind(start, 0) == 0;
}

// Checks that the mapping is one of a memfd that peers can map too.
Status check_kind(const std::string& what, const Mapping& mapping) {
  if (mapping.path.empty() || mapping.path[0] == '[') {
    return invalid_argument(what + " is anonymous (of malloc, new, a stack), and no other process can map it" +
                            kUseInstead);
  }
  if (starts_with(mapping.path, "/dev/zero") || starts_with(mapping.path, "/SYSV")) {
    return invalid_argument(what + " is shared memory without a descriptor (" + mapping.path + ")" + kUseInstead);
  }
  if (!starts_with(mapping.path, "/memfd:")) {
    return invalid_argument(what + " is of the file " + mapping.path + ", which can be truncated while peers read it" +
                            kUseInstead);
  }
  if (!mapping.shared) {
    return invalid_argument(
        what +
        " is a private mapping of a memfd (MAP_PRIVATE): what is written there, peers would not see: map "
        "it with MAP_SHARED");
  }
  if (!mapping.writable)
    return invalid_argument(what + " is mapped for reading only: map it with PROT_READ | PROT_WRITE");
  return {};
}

}  // namespace

Status MemRegistrations::check_free(uintptr_t begin, size_t bytes) {
  for (const Registration& other : all_) {
    if (other.begin >= begin + bytes || begin >= other.end) continue;
    return Error{Code::kInvalidUsage,
                 text_of(reinterpret_cast<const void*>(begin), bytes) + " overlaps with " +
                     text_of(reinterpret_cast<const void*>(other.begin), other.end - other.begin) +
                     ", which is registered with this communicator: one registration serves every call in it; "
                     "deregister it first to change it"};
  }
  return {};
}

Result<uint64_t> MemRegistrations::add(const void* pointer, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  const std::string what = text_of(pointer, bytes);
  if (bytes == 0) return invalid_argument("0 bytes cannot be registered");
  if (bytes > UINTPTR_MAX - begin) return invalid_argument(what + " reaches beyond the end of the addresses");
  if (mem_overlaps(pointer, bytes)) {
    return Error{Code::kInvalidUsage,
                 what + " is of trestleMemAlloc, which peers can map as it is: leave it unregistered"};
  }
  const std::optional<Mapping> mapping = TRY(mapping_named(pointer));
  if (!mapping) return invalid_argument("nothing is mapped at " + what + ": was it unmapped, or freed?");
  TRY(check_kind(what, *mapping));
  if (begin + bytes > mapping->end) {
    const std::string whole = std::to_string(mapping->end - begin);
    return invalid_argument(what + " reaches beyond the end of its mapping, after " + whole +
                            " bytes: register each mapping by itself");
  }
  Registration made{
      mem_new_id(), begin, begin + bytes, mapping->offset + (begin - mapping->begin), mapping->device, mapping->inode,
      {},           0,     false};
  made.fd = TRY(sealed_descriptor(what, mapping->device, mapping->inode));
  struct stat info {};
  if (fstat(made.fd.get(), &info) != 0) return invalid_argument(what + ": " + std::strerror(errno));
  made.file_bytes = static_cast<size_t>(info.st_size);
  if (made.offset + bytes > made.file_bytes) {
    return invalid_argument(what + " reaches beyond the end of its memfd, which has " +
                            std::to_string(made.file_bytes) + " bytes: make it longer with ftruncate first");
  }
  const MutexLock lock(mutex_);
  TRY(check_free(begin, bytes));
  const uint64_t id = made.id;
  const auto place = std::upper_bound(all_.begin(), all_.end(), begin,
                                      [](uintptr_t at, const Registration& other) { return at < other.begin; });
  // Whatever needs memory comes before the first change.
  const auto index = static_cast<std::ptrdiff_t>(place - all_.begin());
  std::vector<MemIndex::Entry> entries = entries_but([](const Registration&) { return false; });
  const auto entry =
      std::find_if(entries.begin(), entries.end(), [&](const auto& other) { return begin < other.begin; });
  entries.insert(entry, {made.begin, made.end, id, made.offset});
  all_.reserve(all_.size() + 1);
  all_.insert(all_.begin() + index, std::move(made));
  index_.replace(entries);
  meter_.add(bytes);
  return id;
}

// For the index, with room for one more: of the registrations that can be found, except some.
template <class F>
std::vector<MemIndex::Entry> MemRegistrations::entries_but(F&& gone) {
  std::vector<MemIndex::Entry> entries;
  entries.reserve(all_.size() + 1);
  for (const Registration& one : all_) {
    if (!one.dropped && !gone(one)) entries.push_back({one.begin, one.end, one.id, one.offset});
  }
  index_.reserve(all_.size() + 1);
  return entries;
}

Status MemRegistrations::remove(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [id](const Registration& one) { return one.id == id; });
  if (found == all_.end()) {
    return invalid_argument(
        "the handle is of no registration with this communicator: it was deregistered before, or it is another "
        "communicator's");
  }
  const auto entries = entries_but([id](const Registration& one) { return one.id == id; });
  meter_.subtract(found->end - found->begin);
  all_.erase(found);
  index_.replace(entries);
  removals_.fetch_add(1, std::memory_order_release);
  return {};
}

void MemRegistrations::clear() {
  const MutexLock lock(mutex_);
  for (const Registration& one : all_) meter_.subtract(one.end - one.begin);
  removals_.fetch_add(all_.size(), std::memory_order_release);
  all_.clear();
  index_.replace({});
}

bool MemRegistrations::alive(uint64_t id) {
  const MutexLock lock(mutex_);
  return std::any_of(all_.begin(), all_.end(), [id](const Registration& one) { return one.id == id; });
}

Result<MemShare> MemRegistrations::share(uint64_t id) {
  const MutexLock lock(mutex_);
  for (const Registration& one : all_) {
    if (one.id != id) continue;
    UniqueFd fd = UniqueFd::open([&one] { return fcntl(one.fd.get(), F_DUPFD_CLOEXEC, 0); });
    if (!fd) {
      return Error{Code::kSystemError, std::string("cannot duplicate a descriptor: ") + std::strerror(errno)};
    }
    return MemShare{std::move(fd), one.file_bytes};
  }
  return invalid_argument("the memory was deregistered while it was still in use");
}

bool MemRegistrations::is_mapped(const Registration& registration) {
  for (uintptr_t at = registration.begin; at < registration.end;) {
    const std::optional<Mapping> mapping = mappings_.at(at);
    if (!mapping || !mapping->shared || mapping->inode != registration.inode ||
        mapping->device != registration.device) {
      return false;
    }
    if (mapping->offset + (at - mapping->begin) != registration.offset + (at - registration.begin)) return false;
    at = mapping->end;
  }
  return true;
}

int MemRegistrations::drop_unmapped(const void* pointer, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  const MutexLock lock(mutex_);
  const auto is_gone = [&](const Registration& one) TRESTLE_REQUIRES(mutex_) {
    return !one.dropped && one.begin < begin + bytes && begin < one.end && !is_mapped(one);
  };
  std::vector<uint64_t> gone;
  for (const Registration& one : all_) {
    if (is_gone(one)) gone.push_back(one.id);
  }
  if (gone.empty()) return 0;
  const auto is_dropped = [&](const Registration& one) {
    return std::find(gone.begin(), gone.end(), one.id) != gone.end();
  };
  const auto entries = entries_but(is_dropped);
  for (Registration& one : all_) one.dropped |= is_dropped(one);
  index_.replace(entries);
  return static_cast<int>(gone.size());
}

}  // namespace trestle
