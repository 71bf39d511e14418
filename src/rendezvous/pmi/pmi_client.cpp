#include "rendezvous/pmi/pmi_client.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "rendezvous/pmi/mpi_library.h"
#include "transport/socket/name_lookup.h"

namespace trestle {
namespace {

constexpr const char* kPmiKey = "trestle-meeting-place";
constexpr size_t kMostLine = 4096;
constexpr int64_t kGoodbyeNs = 1'000'000'000;

using Answer = std::map<std::string, std::string, std::less<>>;

// For error messages. A value may hold the secret of the job.
std::string without_value(const std::string& line) {
  return line.substr(0, line.find(" value="));
}

// "cmd=get_result rc=0 value=x"; a word without "=" is a key without a value.
Answer parse_answer(const std::string& line) {
  Answer answer;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, end - at);
    const size_t equals = std::min(word.find('='), word.size());
    if (!word.empty()) answer[word.substr(0, equals)] = equals < word.size() ? word.substr(equals + 1) : "";
    at = end + 1;
  }
  return answer;
}

class PmiConversation {
 public:
  static Result<PmiConversation> open(const LauncherSpace& space, const WaitLimit& limit);

  Status init(const WaitLimit& limit);
  Result<std::string> exchange(const std::string& text, const WaitLimit& limit);
  // Best effort. Waits for the answer, so that the launcher has read the command before the process ends.
  void finalize();
  bool is_private() const { return own_.operator bool(); }
  // Whether PMI_FD is still the same socket: MPI may have closed it, and its number may have been reused.
  bool is_same_socket() const;

 private:
  Status introduce(int64_t id, const WaitLimit& limit);
  Status send(const std::string& line, const WaitLimit& limit);
  Result<std::string> read_line(const WaitLimit& limit);
  Result<Answer> ask(const std::string& line, const std::string& expected, const WaitLimit& limit);
  Error said(const Error& error) const { return {error.code, name_ + ": " + error.message}; }

  std::string name_;  // "PMI of the launcher (PMI_FD=6)"
  UniqueFd own_;      // to PMI_PORT
  int fd_ = -1;       // PMI_FD or own_
  struct stat socket_ {};
  std::string in_;
};

Result<PmiConversation> PmiConversation::open(const LauncherSpace& space, const WaitLimit& limit) {
  PmiConversation made;
  if (!space.pmi_fd) {
    made.name_ = "PMI of the launcher (PMI_PORT=" + space.pmi_port + ")";
    const auto addresses = resolve_before(space.pmi_port, AddressFamily::kAny, limit);
    if (!addresses.ok()) return made.said(addresses.error());
    Result<UniqueFd> connected = connect_before(addresses.value(), limit);
    if (!connected.ok()) return made.said(connected.error());
    made.own_ = std::move(connected).value();
    made.fd_ = made.own_.get();
    TRY(made.introduce(space.rank, limit));
    return made;
  }
  made.fd_ = static_cast<int>(*space.pmi_fd);
  made.name_ = "PMI of the launcher (PMI_FD=" + std::to_string(made.fd_) + ")";
  if (fstat(made.fd_, &made.socket_) != 0 || !S_ISSOCK(made.socket_.st_mode))
    return made.said(
        {Code::kInvalidUsage,
         "this descriptor is not a connection to the launcher; a program between the launcher and this one "
         "may have closed it (Python's subprocess does), or MPI_Finalize: set MASTER_ADDR and "
         "MASTER_PORT, the same on all ranks, to meet without it"});
  return made;
}

bool PmiConversation::is_same_socket() const {
  struct stat now {};
  return fstat(fd_, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_dev == socket_.st_dev && now.st_ino == socket_.st_ino;
}

Status PmiConversation::send(const std::string& line, const WaitLimit& limit) {
  const Status sent = send_all_before(fd_, std::as_bytes(std::span(line)), limit);
  return sent.ok() ? Status() : said(sent.error());
}

Result<std::string> PmiConversation::read_line(const WaitLimit& limit) {
  std::array<std::byte, 512> buffer;
  while (true) {
    const size_t end = in_.find('\n');
    if (end != std::string::npos) {
      std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      return line;
    }
    if (in_.size() > kMostLine) return said({Code::kRemoteError, "the launcher sent a line without an end"});
    const Result<size_t> got = receive_bytes(fd_, buffer);
    if (!got.ok()) return said(got.error());
    if (got.value() == kEndOfStream) return said({Code::kRemoteError, "the launcher closed the connection"});
    if (got.value() > 0) {
      in_.append(reinterpret_cast<const char*>(buffer.data()), got.value());
      continue;
    }
    const Status waited = wait_before(fd_, POLLIN, limit);
    if (!waited.ok()) return said({waited.error().code, "no answer came from the launcher in time"});
  }
}

Result<Answer> PmiConversation::ask(const std::string& line, const std::string& expected, const WaitLimit& limit) {
  TRY(send(line + "\n", limit));
  const std::string text = TRY(read_line(limit));
  Answer answer = parse_answer(text);
  const auto code = answer.find("rc");
  if (answer["cmd"] != expected || (code != answer.end() && code->second != "0"))
    return said(
        {Code::kRemoteError, "the launcher answered '" + without_value(text) + "' to '" + without_value(line) + "'"});
  return answer;
}

// A new connection first tells the launcher which process it serves. The launcher then sends values that are known
// already.
Status PmiConversation::introduce(int64_t id, const WaitLimit& limit) {
  TRY(ask("cmd=initack pmiid=" + std::to_string(id), "initack", limit));
  while (true) {
    const Answer told = parse_answer(TRY(read_line(limit)));
    if (told.count("debug") != 0) return {};
  }
}

Status PmiConversation::init(const WaitLimit& limit) {
  TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", limit));
  return {};
}

Result<std::string> PmiConversation::exchange(const std::string& text, const WaitLimit& limit) {
  Answer named = TRY(ask("cmd=get_my_kvsname", "my_kvsname", limit));
  const std::string where = " kvsname=" + named["kvsname"] + " key=" + kPmiKey;
  if (!text.empty()) TRY(ask("cmd=put" + where + " value=" + text, "put_result", limit));
  const Result<Answer> met = ask("cmd=barrier_in", "barrier_out", limit);
  if (!met.ok() && met.error().code == Code::kTimeout)
    return said({Code::kTimeout,
                 "not all processes of the job came to its barrier in time, which exchanges the address of the "
                 "rendezvous: each must make a communicator of more than one rank; or set MASTER_ADDR and MASTER_PORT, "
                 "the same on all ranks, to meet without the launcher"});
  if (!met.ok()) return met.error();
  Answer got = TRY(ask("cmd=get" + where, "get_result", limit));
  return got["value"];
}

void PmiConversation::finalize() {
  const WaitLimit soon{monotonic_clock().now_ns() + kGoodbyeNs, nullptr};
  (void)ask("cmd=finalize", "finalize_ack", soon);
}

// A session that stays open for MPI_Init. It ends with the process if MPI_Init never comes.
class OpenPmiSession {
 public:
  explicit OpenPmiSession(PmiConversation conversation) : conversation_(std::move(conversation)) {}
  OpenPmiSession(const OpenPmiSession&) = delete;
  OpenPmiSession& operator=(const OpenPmiSession&) = delete;
  ~OpenPmiSession() {
    const bool forked = owner_ != getpid();
    if (!forked && conversation_.is_same_socket() && mpi_state() == MpiState::kNotStarted) conversation_.finalize();
  }

 private:
  PmiConversation conversation_;
  const pid_t owner_ = getpid();
};

void keep_open(PmiConversation conversation) {
  static const OpenPmiSession session(std::move(conversation));
}

}  // namespace

Result<std::string> exchange_over_pmi(const LauncherSpace& space, const std::string& text, const WaitLimit& limit) {
  PmiConversation conversation = TRY(PmiConversation::open(space, limit));
  const MpiState mpi = conversation.is_private() ? MpiState::kAbsent : mpi_state();
  if (mpi == MpiState::kEnded)
    return Error{Code::kInvalidUsage,
                 "MPI_Finalize has ended this process's connection to the launcher: make the communicator before it, "
                 "or set MASTER_ADDR and MASTER_PORT, the same on all ranks"};
  if (mpi != MpiState::kRunning) TRY(conversation.init(limit));
  Result<std::string> result = conversation.exchange(text, limit);
  // A process that gives up in the middle leaves the rest to the launcher, which ends the job.
  if (!result.ok()) return result;
  if (mpi == MpiState::kAbsent) conversation.finalize();
  if (mpi == MpiState::kNotStarted) keep_open(std::move(conversation));
  return result;
}

}  // namespace trestle
