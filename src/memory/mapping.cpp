#include "memory/mapping.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/files/listing.h"

namespace trestle {

namespace {

// Linux 6.11, include/uapi/linux/fs.h: PROCMAP_QUERY. Older headers do not have it.
struct MapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr uint64_t kVmaWritable = 0x02;
constexpr uint64_t kVmaShared = 0x08;

// "begin-end perms offset major:minor inode   path"
std::optional<Mapping> parse_line(const char* line) {
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long offset = 0;
  unsigned long inode = 0;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  std::array<char, 5> permissions{};
  int path = 0;
  const int fields = std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, permissions.data(), &offset,
                                 &major_number, &minor_number, &inode, &path);
  if (fields < 7) return std::nullopt;
  Mapping mapping{
      begin,      end, offset, makedev(major_number, minor_number), inode, permissions[1] == 'w', permissions[3] == 's',
      line + path};
  while (!mapping.path.empty() && mapping.path.back() == '\n') mapping.path.pop_back();
  return mapping;
}

bool is_of(const struct stat& info, dev_t device, ino_t inode) {
  return info.st_dev == device && info.st_ino == inode;
}

struct FreeText {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

Result<std::optional<Mapping>> mapping_named(const void* address) {
  const OpenFile maps = open_to_read("/proc/self/maps");
  if (maps == nullptr) {
    return Error{Code::kSystemError, std::string("/proc/self/maps cannot be read: ") + std::strerror(errno)};
  }
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  char* line = nullptr;
  size_t capacity = 0;
  std::optional<Mapping> found;
  while (!found && getline(&line, &capacity, maps.get()) > 0) {
    std::optional<Mapping> mapping = parse_line(line);
    if (mapping && wanted >= mapping->begin && wanted < mapping->end) found = std::move(mapping);
  }
  const std::unique_ptr<char, FreeText> freed(line);
  return found;
}

std::optional<Mapping> MappingReader::query(uintptr_t address) {
  if (!maps_) maps_ = UniqueFd(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  MapQuery query{};
  query.size = sizeof query;
  query.query_addr = address;
  if (!maps_ || ioctl(maps_.get(), kMapQuery, &query) != 0) {
    answers_ = maps_ && errno == ENOENT;  // ENOENT: nothing is mapped there
    return std::nullopt;
  }
  return Mapping{query.vma_start,
                 query.vma_end,
                 query.vma_offset,
                 makedev(query.dev_major, query.dev_minor),
                 query.inode,
                 (query.vma_flags & kVmaWritable) != 0,
                 (query.vma_flags & kVmaShared) != 0,
                 {}};
}

std::optional<Mapping> MappingReader::at(uintptr_t address) {
  if (answers_) {
    std::optional<Mapping> mapping = query(address);
    if (answers_) return mapping;
  }
  Result<std::optional<Mapping>> named = mapping_named(reinterpret_cast<const void*>(address));
  return named.ok() ? std::move(named).value() : std::nullopt;
}

Result<UniqueFd> sealed_descriptor(const std::string& what, dev_t device, ino_t inode) {
  bool open_somewhere = false;
  const std::string folder = "/proc/self/fd";
  for (const std::string& name : TRY(entries_of(folder))) {
    // Other threads open and close descriptors meanwhile. So a number is only a hint; the copy is checked.
    struct stat info {};
    const bool is_it = stat((folder + "/" + name).c_str(), &info) == 0 && is_of(info, device, inode);
    if (!is_it) continue;
    UniqueFd copy = UniqueFd::open([&] { return fcntl(std::atoi(name.c_str()), F_DUPFD_CLOEXEC, 0); });
    if (!copy && errno != EBADF) {
      return Error{Code::kSystemError, std::string("cannot duplicate a descriptor: ") + std::strerror(errno)};
    }
    if (!copy || fstat(copy.get(), &info) != 0 || !is_of(info, device, inode)) continue;
    open_somewhere = true;
    const int seals = fcntl(copy.get(), F_GET_SEALS);
    const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
    if (sealed || fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0) return copy;
  }
  if (!open_somewhere) {
    return Error{Code::kInvalidArgument, what +
                                             " is of a memfd whose descriptor was closed, and peers need it: register "
                                             "the memory first, then close it"};
  }
  return Error{Code::kInvalidArgument, what +
                                           " is of a memfd that can shrink while peers read it, and that lets nobody "
                                           "seal it: make it with memfd_create(name, MFD_ALLOW_SEALING)"};
}

}  // namespace trestle
