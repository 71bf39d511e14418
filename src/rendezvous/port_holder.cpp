#include "rendezvous/port_holder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

namespace trestle {
namespace {

// The inodes of sockets that listen at that port, of one of the kernel's tables. Its lines: "sl local_address
// rem_address st ...", with the port in hexadecimal digits behind the colon; the tenth word is the inode.
void add_listeners(const char* table, uint16_t port, std::set<std::string>& sockets) {
  constexpr const char* kListens = "0A";
  constexpr int kInodeAt = 9;
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, word;
    words >> number >> local >> remote >> state;
    const size_t colon = local.rfind(':');
    if (state != kListens || colon == std::string::npos) continue;
    if (std::stoul("0" + local.substr(colon + 1), nullptr, 16) != port) continue;
    for (int i = 4; i <= kInodeAt; ++i) words >> word;
    sockets.insert("socket:[" + word + "]");
  }
}

bool holds_one(const std::filesystem::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  std::filesystem::directory_iterator fds(process / "fd", error);
  for (; !error && fds != std::filesystem::directory_iterator(); fds.increment(error)) {
    std::error_code gone;
    if (sockets.contains(std::filesystem::read_symlink(fds->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_listeners(table, port, sockets);
  if (sockets.empty()) return "";
  std::error_code error;
  std::filesystem::directory_iterator processes("/proc", error);
  for (; !error && processes != std::filesystem::directory_iterator(); processes.increment(error)) {
    const std::string pid = processes->path().filename();
    if (!std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (!holds_one(processes->path(), sockets)) continue;
    std::string name;
    std::getline(std::ifstream(processes->path() / "comm") >> std::ws, name);
    return name + " (pid " + pid + ")";
  }
  return "";
}

}  // namespace trestle
