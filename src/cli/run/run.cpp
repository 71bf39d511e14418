#include "cli/run/run.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "cli/run/local_job.h"

namespace trestle {
namespace {

Error system_error(const char* call) {
  return Error{Code::kSystemError, std::string(call) + ": " + std::strerror(errno)};
}

Result<std::string> fresh_secret() {
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return system_error("getrandom");
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// A port that is free now. Rank 0 takes one of the next free ones if another program is faster.
Result<int> free_port() {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!probe || bind(probe.get(), generic, length) != 0 || getsockname(probe.get(), generic, &length) != 0)
    return system_error("a free port");
  return ntohs(address.sin_port);
}

// Opens missing standard descriptors, so that no pipe becomes the ranks' standard input or output.
Status fill_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return system_error("/dev/null");
  }
  return {};
}

Result<Environment> rank_environment(const RunOptions& options, Environment environment) {
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options.ranks());
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(TRY(free_port()));
  std::string& secret = environment["TRESTLE_SECRET"];
  if (secret.empty()) secret = TRY(fresh_secret());
  return environment;
}

}  // namespace

Result<int> run_ranks(const RunOptions& options, const Environment& environment) {
  TRY(fill_standard_descriptors());
  auto ranks = TRY(rank_environment(options, environment));
  auto prepared = TRY(LocalJob::prepare(options));
  LocalJob job(options, std::move(ranks), std::move(prepared));
  return job.run();
}

}  // namespace trestle
