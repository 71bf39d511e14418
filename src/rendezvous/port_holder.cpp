#include "rendezvous/port_holder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/files/kernel_file.h"
#include "base/files/listing.h"

namespace trestle {
namespace {

// The inodes of sockets that listen at that port, of one of the kernel's tables. Its lines: "sl local_address
// rem_address st ...", with the port in hexadecimal digits behind the colon; the tenth word is the inode.
void add_listeners(const char* table, uint16_t port, std::set<std::string>& sockets) {
  constexpr unsigned kListens = 0x0a;
  const OpenFile file = open_to_read(table);
  char line[512];
  while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned at = 0;
    unsigned state = 0;
    unsigned long inode = 0;
    const int read =
        std::sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*u %lu", &at, &state, &inode);
    if (read == 3 && state == kListens && at == port) sockets.insert("socket:[" + std::to_string(inode) + "]");
  }
}

bool holds_one(const std::string& process, const std::set<std::string>& sockets) {
  const auto fds = entries_of(process + "/fd");
  return fds.ok() && std::ranges::any_of(fds.value(), [&](const std::string& fd) {
           std::error_code gone;
           return sockets.contains(std::filesystem::read_symlink(process + "/fd/" + fd, gone).string());
         });
}

}  // namespace

std::string port_holder(uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_listeners(table, port, sockets);
  const auto processes = entries_of("/proc");
  if (sockets.empty() || !processes.ok()) return "";
  for (const std::string& pid : processes.value()) {
    if (!std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (!holds_one("/proc/" + pid, sockets)) continue;
    const auto name = first_line("/proc/" + pid + "/comm");
    return (name.ok() ? name.value() : "a program") + " (pid " + pid + ")";
  }
  return "";
}

}  // namespace trestle
