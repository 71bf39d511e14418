#include "torture/flood.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "torture/random.h"

namespace torture {
namespace {

constexpr size_t kMostHeld = 400;

struct Target {
  int family = AF_UNIX;
  int type = SOCK_STREAM;
  std::string name;  // of an abstract socket, without its first byte
  uint16_t port = 0;
};

std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code failed;
  // The process may end meanwhile.
  std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    std::error_code closed;
    const std::string is = std::filesystem::read_symlink(at->path(), closed).string();
    if (is.rfind("socket:[", 0) == 0) inodes.insert(is.substr(8, is.size() - 9));
  }
  return inodes;
}

void add_unix(const std::set<std::string>& inodes, std::vector<Target>& targets) {
  std::ifstream table("/proc/self/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, inode, path;
    words >> number >> references >> protocol >> flags >> type >> state >> inode >> path;
    if (flags != "00010000" || path.size() < 2 || path[0] != '@' || inodes.count(inode) == 0) continue;
    targets.push_back({AF_UNIX, type == "0005" ? SOCK_SEQPACKET : SOCK_STREAM, path.substr(1), 0});
  }
}

void add_tcp(const char* file, int family, const std::set<std::string>& inodes, std::vector<Target>& targets) {
  std::ifstream table(file);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmit, uid, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmit >> uid >> timeout >> inode;
    if (state != "0A" || inodes.count(inode) == 0) continue;
    const auto port = static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16));
    targets.push_back({family, SOCK_STREAM, "", port});
  }
}

int connect_to(const Target& target) {
  const int fd = socket(target.family, target.type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_storage address{};
  socklen_t length = 0;
  if (target.family == AF_UNIX) {
    auto& to = reinterpret_cast<sockaddr_un&>(address);
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path + 1, target.name.data(), std::min(target.name.size(), sizeof to.sun_path - 1));
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + target.name.size());
  } else if (target.family == AF_INET) {
    auto& to = reinterpret_cast<sockaddr_in&>(address);
    to.sin_family = AF_INET;
    to.sin_port = htons(target.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    length = sizeof to;
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(address);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(target.port);
    to.sin6_addr = in6addr_loopback;
    length = sizeof to;
  }
  (void)connect(fd, reinterpret_cast<sockaddr*>(&address), length);
  return fd;
}

void send_garbage(int fd, Random& random) {
  uint8_t bytes[3000];
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  (void)send(fd, bytes, 1 + random.below(sizeof bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void visit(const Target& target, Random& random, std::vector<int>& held) {
  for (int i = random.of({1, 3, 10, 60}); i > 0; --i) {
    const int fd = connect_to(target);
    if (fd < 0) return;
    const int way = random.from_to(0, 3);
    if (way == 1 || way == 2) {
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, 1);
      send_garbage(fd, random);
    }
    if (way >= 2) {
      close(fd);
    } else {
      held.push_back(fd);
    }
  }
  while (held.size() > kMostHeld) {
    const size_t at = random.below(held.size());
    close(held[at]);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

void flood(const std::vector<pid_t>& processes, uint64_t seed, Board& board) {
  Random random(seed);
  std::vector<int> held;
  for (;;) {
    std::set<std::string> inodes;
    for (const pid_t pid : processes) inodes.merge(sockets_of(pid));
    std::vector<Target> targets;
    add_unix(inodes, targets);
    add_tcp("/proc/self/net/tcp", AF_INET, inodes, targets);
    add_tcp("/proc/self/net/tcp6", AF_INET6, inodes, targets);
    for (const Target& target : targets) visit(target, random, held);
    board.strangers.fetch_add(static_cast<int>(targets.size()));
    board.floods.fetch_add(1);
    wake_all(board.floods);
    poll(nullptr, 0, 2);  // gives the job time
  }
}

}  // namespace torture
