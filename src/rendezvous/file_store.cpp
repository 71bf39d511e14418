// A rendezvous in a directory that all ranks can reach (TRESTLE_STORE=file:PATH). It holds one file per rank. Each file
// appears complete, by a link or rename.
//
// The directory is PATH/trestle-JOB if PATH is a directory, else PATH.trestle-JOB, with mode 0700. JOB follows from
// PATH and the job's name. It holds a file `lock`, and one directory per communicator in the making: 0, 1, ... Files
// there: rank-R; secret (random, made by the first rank that comes: the communicator's number follows from it, and its
// secret, if TRESTLE_SECRET is not set); error (the first failure, which is every rank's answer). A rank comes to the
// first of them that lacks it and has not failed, else begins the next one. So ranks meet however often some of them
// have tried before. Rank 0 removes the files when every rank is connected.
//
// A killed job leaves its files. So a rank's process holds a lock on its file until the rank is connected. The lock
// ends with the process, and so tells a leftover file from one in use, even if another process has the same process
// number now. A rank removes the directories in which no rank lives; the lock on `lock` makes it the only one there. A
// leftover file among files of living ranks is replaced. Locks are trusted within one host only: a leftover file of
// another host is an error that names the directory.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/files/file_size.h"
#include "base/files/listing.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/text/byte_text.h"
#include "base/text/value_text.h"
#include "base/unique_fd.h"
#include "base/wait_marks.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/meeting.h"
#include "rendezvous/server/board.h"
#include "transport/auth/handshake.h"

namespace trestle {
namespace {

constexpr int64_t kLookNs = 20'000'000;
constexpr int64_t kEnterNs = 2'000'000;
constexpr int64_t kWithdrawNs = 1'000'000'000;
constexpr size_t kMaxFile = 64 * 1024;
constexpr const char* kLock = "lock";

Error system_error(const std::string& what) {
  return Error{Code::kSystemError, "TRESTLE_STORE: " + what + ": " + std::strerror(errno)};
}

// A rank's file: its request, and which process wrote it.
struct Card {
  JoinRequest request;
  std::string host;
  int32_t pid = 0;
  bool locked = false;  // by its process; not every file system supports locks
  bool first = false;   // its process has made no communicator here before
};

std::string encode_card(const Card& card) {
  ByteWriter out;
  out.text(encode(card.request)).text(card.host).integer(card.pid).integer(static_cast<uint8_t>(card.locked));
  out.integer(static_cast<uint8_t>(card.first));
  return out.take();
}

Result<Card> decode_card(const std::string& bytes, const std::string& path) {
  ByteReader in(bytes);
  const std::string_view request = in.text(kMaxFile);
  Card card;
  card.host = in.text(kMaxFile);
  card.pid = in.integer<int32_t>();
  card.locked = in.integer<uint8_t>() != 0;
  card.first = in.integer<uint8_t>() != 0;
  const Result<JoinRequest> decoded = decode_join_request(request);
  if (!in.at_end() || !decoded.ok())
    return Error{Code::kInvalidUsage, "TRESTLE_STORE: " + path + " was not written by a rank of this job"};
  card.request = decoded.value();
  return card;
}

std::string card_name(int32_t rank) {
  return "rank-" + std::to_string(rank);
}

bool no_locks_here() {
  return errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL;
}

class Store {
 public:
  Store(std::string directory, int32_t rank) : directory_(std::move(directory)), rank_(rank) {}

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  // Makes the directory, if there is none. Waits until this process has it for itself, as long as the result lives.
  // Empty: files cannot be locked here, so the process may not be the only one.
  Result<UniqueFd> enter(const WaitLimit& limit) const {
    while (true) {
      TRY(make_directory());
      UniqueFd lock = UniqueFd::open([&] { return ::open(path(kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); });
      if (!lock && errno != ENOENT) return system_error(path(kLock));
      if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
        struct stat info {};
        if (fstat(lock.get(), &info) == 0 && info.st_nlink != 0) return lock;
      } else if (lock && no_locks_here()) {
        return UniqueFd();
      }
      // Another rank is here, or the last one has just removed the directory.
      TRY(pause_before(kEnterNs, limit));
    }
  }

  // Whether the process of that file has ended, as far as that can be known.
  bool is_leftover(const std::string& name, const Card& card) const {
    if (card.host != host_identity()) return false;
    if (!card.locked) return ::kill(card.pid, 0) != 0 && errno == ESRCH;
    const UniqueFd file = UniqueFd::open([&] { return ::open(path(name).c_str(), O_RDONLY | O_CLOEXEC); });
    return !file || flock(file.get(), LOCK_SH | LOCK_NB) == 0;
  }

  // Whether any rank's file belongs to a living process.
  bool anybody_lives() const {
    for (const std::string& name : names()) {
      if (!name.starts_with("rank-")) continue;
      const Result<Card> card = decode_card(read(name), path(name));
      if (!card.ok() || !is_leftover(name, card.value())) return true;
    }
    return false;
  }

  // The card of a rank that lives, if any.
  std::optional<Card> living(int32_t rank) const {
    const std::string name = card_name(rank);
    Result<Card> card = decode_card(read(name), path(name));
    if (!card.ok() || is_leftover(name, card.value())) return std::nullopt;
    return std::move(card).value();
  }

  // The communicators in the making here, by number.
  std::vector<int64_t> numbers() const {
    std::vector<int64_t> all;
    for (const std::string& name : names()) {
      const Result<int64_t> number = parse_integer(name);
      if (number.ok()) all.push_back(number.value());
    }
    std::ranges::sort(all);
    return all;
  }

  // Removes the directory with its files.
  void remove() const {
    for (const std::string& name : names()) unlink(path(name).c_str());
    rmdir(directory_.c_str());
  }

  // The last rank that leaves may remove it at any moment.
  Status make_directory() const {
    constexpr int kMostRemovals = 100;
    Status made;
    for (int i = 0; i < kMostRemovals; ++i) {
      made = try_make_directory();
      if (made.ok() || errno != ENOENT) break;
    }
    return made;
  }

  Status try_make_directory() const {
    if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return system_error(directory_);
    struct stat info {};
    if (stat(directory_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return system_error(directory_);
    if (info.st_uid != geteuid())
      return Error{Code::kInvalidUsage, "TRESTLE_STORE: " + directory_ + " belongs to another user"};
    return {};
  }

  // "" when there is no such file.
  std::string read(const std::string& name) const {
    const UniqueFd file = UniqueFd::open([&] { return ::open(path(name).c_str(), O_RDONLY | O_CLOEXEC); });
    std::string text;
    std::array<char, 4096> buffer;
    while (file && text.size() < kMaxFile) {
      const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }

  // Writes the file completely or not at all. False: the file exists already (only with must_be_new). `held`: if not
  // nullptr, gets the file, locked by this process as long as it lives.
  Result<bool> write(const std::string& name, const std::string& bytes, bool must_be_new,
                     UniqueFd* held = nullptr) const {
    const std::string temporary = path("." + name + "-" + std::to_string(rank_) + "-" + std::to_string(getpid()));
    UniqueFd file =
        UniqueFd::open([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); });
    if (!file) return system_error(temporary);
    const bool written = write_all(file.get(), bytes);
    const int refused = errno;
    if (held == nullptr) {
      file.reset();
    } else if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {  // before any other process can see the file
      *held = std::move(file);
    }
    if (!written) {
      unlink(temporary.c_str());
      errno = refused;
      return system_error(temporary);
    }
    if (!must_be_new) {
      if (rename(temporary.c_str(), path(name).c_str()) != 0) return system_error(path(name));
      return true;
    }
    const int linked = link(temporary.c_str(), path(name).c_str());
    const int reason = errno;
    unlink(temporary.c_str());
    errno = reason;
    if (linked != 0 && reason != EEXIST) return system_error(path(name));
    return linked == 0;
  }

  // The first failure is the failure of all ranks.
  Error fail(const Error& error) const {
    JoinAnswer answer;
    answer.error = error;
    (void)write("error", encode(answer), true);
    const Status first = failure();
    return first.ok() ? error : first.error();
  }
  std::vector<std::string> names() const {
    Result<std::vector<std::string>> all = entries_of(directory_);
    return all.ok() ? std::move(all).value() : std::vector<std::string>();
  }

  Status failure() const {
    const std::string bytes = read("error");
    if (bytes.empty()) return {};
    Result<JoinAnswer> answer = decode_join_answer(bytes);
    if (!answer.ok() || answer.value().error.code == Code::kSuccess) return {};
    return answer.value().error;
  }

 private:
  const std::string directory_;
  const int32_t rank_;
};

Result<std::string> store_directory(const BootstrapConfig& config) {
  const std::string path = TRY(store_path(config.store));
  const std::string& job_name = config.job.empty() ? config.launcher.job : config.job;
  const JobId job = job_id("store " + path + " " + job_name);
  struct stat info {};
  const bool inside = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return path + (inside ? "/" : ".") + "trestle-" + to_hex(job).substr(0, 16);
}

// What this process has done in stores.
struct Visits {
  Mutex mutex;
  std::set<std::pair<int32_t, JobId>> seen TRESTLE_GUARDED_BY(mutex);  // ranks in communicators, made or not
  std::set<std::string> made TRESTLE_GUARDED_BY(mutex);                // directories where one was made
};
constinit PerProcess<Visits> visits;

// Reads the random file of a communicator, and makes it if there is none.
struct StoreSecret {
  std::vector<std::byte> secret;
  JobId job{};
};

JobId job_of(const std::string& secret) {
  JobId made{};
  const std::vector<std::byte> job = derive_secret(std::as_bytes(std::span(secret)), "job");
  std::copy_n(job.begin(), std::min(job.size(), made.size()), made.begin());
  return made;
}

Result<StoreSecret> store_secret(const Store& store, const std::string& variable) {
  std::string fresh(32, '\0');
  random_bytes(std::as_writable_bytes(std::span(fresh)));
  TRY(store.write("secret", fresh, true));
  const std::string first = store.read("secret");
  if (first.size() != fresh.size()) return Error{Code::kSystemError, "TRESTLE_STORE: the secret cannot be read"};
  const auto bytes = std::as_bytes(std::span(first));
  StoreSecret made;
  made.secret.assign(bytes.begin(), bytes.end());
  made.job = job_of(first);
  if (!variable.empty()) made.secret = derive_secret(std::as_bytes(std::span(variable)), "communicator");
  return made;
}

// Writes this rank's file. Returns it locked, if its card says so.
Result<UniqueFd> publish(const Store& store, const Card& card) {
  const std::string name = card_name(card.request.rank);
  UniqueFd held;
  UniqueFd* const lock = card.locked ? &held : nullptr;
  if (TRY(store.write(name, encode_card(card), true, lock))) return held;
  const Card there = TRY(decode_card(store.read(name), store.path(name)));
  if (store.is_leftover(name, there)) {
    TRY(store.write(name, encode_card(card), false, lock));
    return held;
  }
  return store.fail({Code::kInvalidArgument,
                     "two processes joined as rank " + std::to_string(card.request.rank) + ": " + store.path(name) +
                         " was written by pid " + std::to_string(there.pid) + ", and pid " + std::to_string(card.pid) +
                         " has the same rank (or a crashed job left the file: then remove the directory); give each " +
                         "job a path or a name (TRESTLE_JOB) of its own"});
}

// Whether a rank with that card belongs to the communicator in the making, or is there already. A wrong number of ranks
// is noticed where it can only be wrong. Later some ranks may make a communicator of their own.
bool belongs(const Store& store, const Card& mine) {
  if (!store.failure().ok()) return false;
  if (const auto own = store.living(mine.request.rank); own && own->request.lineage == mine.request.lineage)
    return false;
  for (int32_t rank = 0; rank < mine.request.nranks; ++rank) {
    const auto other = store.living(rank);
    if (!other) continue;
    return (mine.first && other->first) || other->request.nranks == mine.request.nranks;
  }
  return true;
}

// The directory of the communicator that this rank comes to. A late rank gets the reason of a failure, but only once.
Result<std::string> choose_meeting(const Store& place, const Card& mine) {
  std::vector<int64_t> numbers = place.numbers();
  std::erase_if(numbers, [&](int64_t number) {
    const Store store(place.path(std::to_string(number)), mine.request.rank);
    if (!mine.locked || store.anybody_lives()) return false;
    store.remove();
    return true;
  });
  for (const int64_t number : numbers) {
    if (belongs(Store(place.path(std::to_string(number)), mine.request.rank), mine))
      return place.path(std::to_string(number));
  }
  const int64_t newest = numbers.empty() ? -1 : numbers.back();
  if (newest >= 0) {
    const Store store(place.path(std::to_string(newest)), mine.request.rank);
    const Status failed = store.failure();
    const JobId job = TRY(store_secret(store, "")).job;
    Visits& visited = visits.get();
    const MutexLock lock(visited.mutex);
    if (!failed.ok() && visited.seen.emplace(mine.request.rank, job).second) return failed.error();
  }
  return place.path(std::to_string(newest + 1));
}

// Writes this rank's file into the directory of a communicator of this job; the meeting gets it locked.
Status arrive(const Store& place, Card mine, const WaitLimit& limit, const std::string& variable, Meeting& meeting) {
  const UniqueFd alone = TRY(place.enter(limit));
  mine.locked = static_cast<bool>(alone);
  meeting.store = TRY(choose_meeting(place, mine));
  const Store store(meeting.store, mine.request.rank);
  TRY(store.make_directory());
  StoreSecret made = TRY(store_secret(store, variable));
  meeting.secret = std::move(made.secret);
  meeting.job = made.job;
  Visits& visited = visits.get();
  {
    const MutexLock lock(visited.mutex);
    visited.seen.emplace(mine.request.rank, meeting.job);
  }
  meeting.held = std::make_shared<UniqueFd>(TRY(publish(store, mine)));
  return {};
}

// "" when the rank has not come yet.
Result<std::string> look_up(const Store& store, const Card& mine, int32_t rank) {
  const std::string name = card_name(rank);
  const std::string bytes = store.read(name);
  if (bytes.empty()) return std::string();
  const Card card = TRY(decode_card(bytes, store.path(name)));
  if (store.is_leftover(name, card)) return std::string();
  RendezvousBoard board;  // compares the requests as a root server does
  board.arrive(mine.request, mine.request.address);
  if (rank != mine.request.rank) board.arrive(card.request, card.request.address);
  if (board.failed()) return store.fail(board.answer_for(mine.request.rank).error);
  return card.request.address;
}

Error not_there(const Store& store, const BootstrapConfig& config, const Error& error) {
  if (error.code != Code::kTimeout) return error;
  std::vector<int32_t> missing;
  for (int32_t r = 0; r < config.nranks; ++r) {
    if (!store.living(r)) missing.push_back(r);
  }
  const std::string place = "the rendezvous " + config.store + " (TRESTLE_STORE)";
  if (missing.empty()) return Error{error.code, place + ": " + error.message};
  const size_t came = static_cast<size_t>(config.nranks) - missing.size();
  return store.fail({Code::kTimeout, rank_list(missing) + " did not come to " + place + " in time, " +
                                         std::to_string(came) + " of " + std::to_string(config.nranks) + " did"});
}

// Removes the files of a rank that gives up. The last one removes the directory too.
void withdraw(const Store& store, const std::string& directory, const JobId& job, int32_t rank) {
  unlink(store.path(card_name(rank)).c_str());
  if (!store.anybody_lives()) clean_store(directory, job);
}

Result<std::vector<std::string>> neighbours_of(const Store& store, const Card& mine, const BootstrapConfig& config,
                                               const WaitLimit& limit) {
  std::vector<std::string> addresses;
  WaitMarks marks(monotonic_clock().now_ns());
  for (const int32_t neighbour : mesh_neighbours(config.rank, config.nranks)) {
    std::string address;
    while ((address = TRY(look_up(store, mine, neighbour))).empty()) {
      TRY(store.failure());
      if (const int64_t seconds = marks.passed(monotonic_clock().now_ns()); seconds > 0)
        LOG(kWarn, kBootstrap, "%s has waited %d s for rank %d at %s", mine.request.name.c_str(),
            static_cast<int>(seconds), neighbour, config.store.c_str());
      const Status waited = pause_before(kLookNs, limit);
      if (!waited.ok()) return not_there(store, config, waited.error());
    }
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

Result<std::string> store_path(const std::string& store) {
  constexpr std::string_view kPrefix = "file:";
  if (!store.starts_with(kPrefix) || store.size() == kPrefix.size())
    return Error{Code::kInvalidArgument, "TRESTLE_STORE=" + store + ": must be file:PATH"};
  std::string path = store.substr(kPrefix.size());
  if (path.starts_with("//")) path.erase(0, 2);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<Meeting> meet_in_store(const BootstrapConfig& config, const WaitLimit& limit) {
  Meeting meeting;
  const std::string directory = TRY(store_directory(config));
  meeting.listeners = TRY(listen_for_neighbours(config, SocketAddress{}));
  Card mine;
  mine.request = own_request(config, meeting.listeners, false);
  mine.host = host_identity();
  mine.pid = getpid();
  Visits& visited = visits.get();
  {
    const MutexLock lock(visited.mutex);
    mine.first = !visited.made.contains(directory);
  }
  TRY(arrive(Store(directory, config.rank), mine, limit, config.secret, meeting));
  const Store store(meeting.store, config.rank);
  Result<std::vector<std::string>> addresses = neighbours_of(store, mine, config, limit);
  if (!addresses.ok()) {
    withdraw(store, meeting.store, meeting.job, config.rank);
    return addresses.error();
  }
  meeting.addresses = std::move(addresses).value();
  meeting.failure = [store] { return store.failure(); };
  meeting.report = [store, rank = config.rank, directory, meeting_at = meeting.store,
                    job = meeting.job](const JoinReport& report) {
    if (report.error.code == Code::kSuccess) {
      Visits& visited = visits.get();
      const MutexLock lock(visited.mutex);
      visited.made.insert(directory);
      return;
    }
    (void)store.fail(report.error);
    withdraw(store, meeting_at, job, rank);
  };
  meeting.name_of = [store](int32_t rank) {
    const std::string name = card_name(rank);
    const Result<Card> card = decode_card(store.read(name), store.path(name));
    return card.ok() ? card.value().request.name : std::string();
  };
  return meeting;
}

// The place of all its communicators goes with the last of them. Other ranks may have removed the directory before, and
// begun another one of that number.
void clean_store(const std::string& directory, const JobId& job) {
  const Store place(directory.substr(0, directory.rfind('/')), 0);
  const Result<UniqueFd> alone = place.enter({monotonic_clock().now_ns() + kWithdrawNs, nullptr});
  if (!alone.ok()) return;
  const Store store(directory, 0);
  if (job_of(store.read("secret")) == job) store.remove();
  if (place.numbers().empty()) place.remove();
}

}  // namespace trestle
