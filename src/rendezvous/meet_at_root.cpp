// The rank's side of a rendezvous with a root server.
#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/byte_text.h"
#include "base/wait_marks.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/line.h"
#include "rendezvous/meeting.h"
#include "rendezvous/message.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/root_lookup.h"
#include "rendezvous/server/server.h"
#include "rendezvous/try_root.h"

namespace trestle {
namespace {

// The root decides at the deadline which ranks are missing. Its answer must still arrive after that.
constexpr int64_t kAnswerGraceNs = 2'000 * kMs;
// The limit of rounds in which the root knows another secret, or speaks another version of the protocol, and no other
// root answers. Such a root does not become the right one later.
constexpr int kMostWrongRoots = 20;
// The limit of rounds for a port that was made for this communicator. Its server is there before the id is, so nothing
// comes there later.
constexpr int kMostRefusals = 30;

// What a rank has seen of the root in the last round over the addresses.
struct Seen {
  Error error{Code::kTimeout, "no connection was tried"};  // at the user's address, or at one that answered
  bool silent = false;
  bool lost = false;       // in any round
  bool other_job = false;  // somebody at the place belongs to another job
};

Error not_reached(const Root& root, const Seen& seen, bool for_the_secret) {
  std::string text = root.holder();
  if (seen.silent) {
    text += " is frozen or very slow, or another program listens there: " + root.place +
            " accepts connections but does not answer";
  } else if (seen.lost) {
    text += " accepts connections at " + root.place + " and closes them: it may have no room, or no descriptors left";
  } else {
    text += (root.own_port ? " was not reached at " : " did not come to ") + root.place + " in time";
  }
  text += " (" + seen.error.message;
  const size_t others = root.candidates.size() - 1;
  if (others > 0 && !seen.silent) text += "; the same at " + std::to_string(others) + " more addresses or ports";
  if (seen.other_job)
    text += "; this rank's job " + (root.job_name.empty() ? "has no name" : "is named '" + root.job_name + "'") +
            ": TRESTLE_JOB, or the launcher's name of the job, must be the same on all ranks";
  return Error{Code::kTimeout, text + (for_the_secret ? "; is TRESTLE_SECRET the same on all ranks?)" : ")")};
}

Error another_version(const Root& root, const Error& error) {
  return {Code::kRemoteError, "the rendezvous at " + root.name + " is of another version of Trestle: " + error.message +
                                  "; all ranks need the same version"};
}

// An error of this system says nothing about the other side.
Error nobody_there(const Root& root, const Error& error) {
  const std::string holder = root.holder();
  if (error.code == Code::kSystemError) return {error.code, holder + " cannot be reached: " + error.message};
  return {error.code, holder + " ended, or all ranks have come to " + root.place +
                          " already, or its deadline (TRESTLE_TIMEOUT) has passed: " + error.message};
}

Result<UniqueFd> reach_root(const BootstrapConfig& config, Root root, const WaitLimit& limit) {
  if (root.guest != nullptr) return std::move(*root.guest);
  Seen seen;
  int secret_refusals = 0;
  int other_versions = 0;
  int64_t pause = 5 * kMs;
  WaitMarks marks(monotonic_clock().now_ns());
  // Where several ports are possible, one may belong to a program that accepts the connection and stays silent. So the
  // first rounds wait briefly.
  int64_t patience = root.own_port || root.candidates.size() == 1 ? config.handshake_timeout_ns : kFirstLookNs;
  for (int round = 0;; ++round, pause = std::min(pause * 2, 100 * kMs),
           patience = std::min(patience * 2, config.handshake_timeout_ns)) {
    bool refused_secret = false;
    bool other_version = false;
    bool answered = false;
    bool silent = false;
    size_t gone = 0;  // at how many of the addresses
    Error why_gone;
    if (root.lookup != nullptr) root.lookup->follow(root.candidates);
    for (const SocketAddress& candidate : root.candidates) {
      RootAttempt made = try_root(candidate, config, root, patience, limit);
      if (made.socket) return std::move(made.socket);
      if (made.error.code == Code::kAborted || made.error.code == Code::kInvalidUsage) return made.error;
      if (root.own_port && made.other_version) return another_version(root, made.error);
      if (made.refused || (round >= kMostRefusals && !made.silent && !made.lost)) {
        why_gone = gone == 0 ? made.error : why_gone;
        ++gone;
      }
      const bool wrong = made.refused_secret || made.other_version;
      const bool first = &candidate == &root.candidates.front();
      seen.lost = seen.lost || made.lost;
      seen.other_job = seen.other_job || made.other_job;
      if (first || (!answered && (wrong || made.silent)))
        seen.error = {made.error.code, format_address(candidate) + ": " + made.error.message};
      answered = answered || wrong || made.silent;
      silent = silent || made.silent;
      refused_secret = refused_secret || made.refused_secret;
      other_version = other_version || made.other_version;
    }
    if (root.own_port && gone == root.candidates.size()) return nobody_there(root, why_gone);
    if (other_version && ++other_versions >= kMostWrongRoots) return another_version(root, seen.error);
    if (refused_secret && ++secret_refusals >= kMostWrongRoots)
      return Error{Code::kRemoteError, "the rendezvous at " + root.name +
                                           " has another secret: TRESTLE_SECRET differs, or another job uses this "
                                           "address (" +
                                           seen.error.message + ")"};
    if (const int64_t seconds = marks.passed(monotonic_clock().now_ns()); seconds > 0)
      LOG(kWarn, kBootstrap, "%s has waited %d s for %s at %s (%s)", own_rank_name(config.rank).c_str(),
          static_cast<int>(seconds), root.holder(), root.place.c_str(), seen.error.message.c_str());
    const Status paused = pause_before(pause, limit);
    if (!paused.ok()) {
      if (paused.error().code == Code::kAborted) return paused.error();
      seen.silent = silent;
      return not_reached(root, seen, secret_refusals > 0);
    }
  }
}

// Reaches a root again that has ended the connection before it answered. Without a secret nothing distinguishes a rank
// from a stranger before it has asked, so the root may have made room for the next one. `gone`: the error where no root
// is there any more. The root has one address.
Result<UniqueFd> reach_again(const BootstrapConfig& config, const Root& root, const Error& gone,
                             const WaitLimit& limit) {
  for (int64_t pause = 5 * kMs;; pause = std::min(pause * 2, 100 * kMs)) {
    RootAttempt made = try_root(root.candidates.front(), config, root, config.handshake_timeout_ns, limit);
    if (made.socket) return std::move(made.socket);
    if (made.silent) return not_reached(root, {made.error, true}, false);
    if (!made.lost) return made.error.code == Code::kAborted ? made.error : gone;
    const Status paused = pause_before(pause, limit);
    if (!paused.ok() && paused.error().code == Code::kAborted) return paused.error();
    if (!paused.ok()) return not_reached(root, {made.error, false, true}, false);
  }
}

struct Asked {
  Result<JoinAnswer> answer;
  bool unheard = false;  // the connection ended before the root had answered
};

Asked ask(int fd, const JoinRequest& request, const Root& root, const WaitLimit& limit) {
  const std::string message = framed(encode(request));
  WaitLimit answer_limit = limit;
  if (limit.deadline_ns != kNever) answer_limit.deadline_ns += kAnswerGraceNs;
  const auto explain = [&](const Error& error) {
    const std::string who = root.holder();
    if (error.code == Code::kAborted) {
      const std::string report = framed(encode(JoinReport{giving_up(request.name)}));
      (void)send_bytes(fd, std::as_bytes(std::span(report)));
    }
    if (error.code == Code::kRemoteError)
      return Error{error.code, who + " ended or is lost: it held " + root.place +
                                   ", where this rank waited for others (" + error.message + ")"};
    if (error.code == Code::kTimeout)
      return Error{error.code, who + " is frozen or very slow: it holds " + root.place +
                                   ", where this rank waited for others, and does not answer any more"};
    return Error{error.code, "waiting for the other ranks at " + root.place + ": " + error.message};
  };
  Status status = send_all_before(fd, std::as_bytes(std::span(message)), answer_limit);
  while (status.ok()) {
    std::string header(4, '\0');
    status = receive_all_before(fd, std::as_writable_bytes(std::span(header)), answer_limit);
    if (!status.ok()) break;
    const auto length = ByteReader(header).integer<uint32_t>();
    if (length > kMaxJoinBytes) return {explain({Code::kRemoteError, "the answer is too long"})};
    std::string body(length, '\0');
    if (length > 0) status = receive_all_before(fd, std::as_writable_bytes(std::span(body)), answer_limit);
    if (!status.ok()) return {explain(status.error())};
    Result<JoinAnswer> answer = decode_join_answer(body);
    if (!answer.ok() || answer.value().progress.empty()) return {std::move(answer)};
    LOG(kWarn, kBootstrap, "%s waits at %s: %s", request.name.c_str(), root.place.c_str(),
        answer.value().progress.c_str());
  }
  return {explain(status.error()), status.error().code == Code::kRemoteError};
}

// How far a rank has come with the root. What has asked is known to it, and its connection tells the rest.
struct Progress {
  bool asked = false;
  bool answered = false;
  bool lost_host = false;  // a guest's connection ended before it was answered
};

// Asks to join. The root may drop this rank as a stranger. Then this rank connects again, as after a handshake that the
// root ends. But a guest may find another root.
Result<JoinAnswer> ask_until_heard(UniqueFd& socket, const BootstrapConfig& config, JoinRequest request,
                                   const Root& root, const WaitLimit& limit, Progress& at) {
  Root reached = root;
  reached.candidates = {peer_address(socket.get())};
  for (int64_t pause = 5 * kMs;; pause = std::min(pause * 2, 100 * kMs)) {
    if (limit.deadline_ns != kNever)
      request.time_left_ns = std::max<int64_t>(limit.deadline_ns - monotonic_clock().now_ns(), 1);
    Asked asked = ask(socket.get(), request, root, limit);
    at.lost_host = asked.unheard && root.guest != nullptr;
    if (!asked.unheard || !root.secret.empty() || at.lost_host) return std::move(asked.answer);
    (void)pause_before(pause, limit);
    socket = TRY(reach_again(config, reached, asked.answer.error(), limit));
  }
}

// Keeps the rendezvous's connection, whose first answer has been read, for the rest of join().
void keep_line(Meeting& meeting, UniqueFd socket, const JoinAnswer& answer, const BootstrapConfig& config,
               const Root& root) {
  const std::string holder = answer.holder.empty() ? "a process that is not a rank" : answer.holder;
  const Error lost{Code::kRemoteError,
                   holder + " ended while the communicator was being made; it held the rendezvous " + root.name};
  const auto line = std::make_shared<RendezvousLine>(std::move(socket), lost);
  meeting.failure = [line] { return line->look(); };
  meeting.report = [line](const JoinReport& report) { line->report(report); };
  std::map<int32_t, std::string> names;
  const std::vector<int32_t> neighbours = mesh_neighbours(config.rank, config.nranks);
  for (size_t i = 0; i < std::min(neighbours.size(), answer.names.size()); ++i) names[neighbours[i]] = answer.names[i];
  meeting.name_of = [names](int32_t rank) {
    const auto found = names.find(rank);
    return found == names.end() ? std::string() : found->second;
  };
}

// Other ranks can reach this rank at the address by which it reaches the root. But a rank on the root's host may reach
// it over loopback, because its own host's name means that to a host (127.0.1.1 in /etc/hosts).
SocketAddress reached_at(int fd, const Root& root) {
  const SocketAddress address = local_address(fd);
  return address.is_loopback() && !root.is_local ? SocketAddress{} : address;
}

Result<Meeting> come_to_root(const BootstrapConfig& config, const Root& root, const WaitLimit& limit, Progress& at) {
  UniqueFd socket = TRY(reach_root(config, root, limit));
  Meeting meeting;
  meeting.secret = root.secret;
  meeting.listeners = TRY(listen_for_neighbours(config, reached_at(socket.get(), root)));
  at.asked = true;
  JoinAnswer answer =
      TRY(ask_until_heard(socket, config, own_request(config, meeting.listeners, root.is_local), root, limit, at));
  at.answered = true;
  if (answer.error.code != Code::kSuccess) return answer.error;
  if (answer.addresses.size() != mesh_neighbours(config.rank, config.nranks).size())
    return Error{Code::kRemoteError, "the rendezvous " + root.name + " gave a wrong number of addresses"};
  meeting.job = answer.job;
  meeting.hold = root.hold;
  if (meeting.hold != nullptr) meeting.hold->made(meeting.job);
  if (answer.time_left_ns > 0) meeting.deadline_ns = monotonic_clock().now_ns() + answer.time_left_ns;
  keep_line(meeting, std::move(socket), answer, config, root);
  meeting.addresses = std::move(answer.addresses);
  return meeting;
}

Result<Meeting> meet_at(const Root& root, const BootstrapConfig& config, const WaitLimit& limit, Progress& at) {
  Result<Meeting> met = come_to_root(config, root, limit, at);
  if (met.ok() || at.answered) return met;
  const bool aborted = met.error().code == Code::kAborted;
  // A rank that was refused may not belong to this communicator. Rank 0 belongs to the one that its process serves.
  const bool belongs =
      root.own_port ? aborted || met.error().code == Code::kTimeout : root.hold != nullptr && !at.asked;
  if (!belongs) return met;
  const std::string who = own_rank_name(config.rank);
  give_up_rendezvous(root.job, config.rank,
                     aborted ? giving_up(who) : Error{met.error().code, who + " gave up: " + met.error().message});
  return met;
}

}  // namespace

Result<Meeting> meet_at_root(const BootstrapConfig& config, const WaitLimit& limit) {
  while (true) {
    Progress at;
    Result<Meeting> met = meet_at(TRY(find_root(config, limit)), config, limit, at);
    if (!at.lost_host || !pause_before(5 * kMs, limit).ok()) return met;
    LOG(kInfo, kBootstrap, "%s looks for the rendezvous again: %s", own_rank_name(config.rank).c_str(),
        met.error().message.c_str());
  }
}

}  // namespace trestle
