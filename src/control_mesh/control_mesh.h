// ControlMesh: the connections of a rank to the ranks r + 2^k and r - 2^k, which stay open for the life of a
// communicator. They carry what must arrive when data no longer flows: heartbeats, errors, aborts, goodbyes. They also
// carry small all-gathers and barriers outside the data path.
//
// Owned by the communicator. Any thread may call any function. The state is under one mutex, which is never held while
// a listener is called or anything waits. Nothing blocks except close(). The thread that drives the rank's progress
// calls poll() when event_fd() is readable or next_due_ns() has come.
//
// What a rank learns. A rank passes on the first ERROR or ABORT that it sees, its own included, once to all its
// neighbours. Its listener hears only that one. So all ranks know within ceil(log2 N) hops. A neighbour whose
// connection ends without a goodbye has died. A neighbour is a lost host if it was silent for the heartbeat time and
// its kernel acknowledged nothing for as long, or if this kernel gave up the connection before that. (A stopped process
// on a living host is logged once and left to the deadlines.) Error messages name the rank that failed, not the one
// that noticed, so that all ranks report the same failure.
//
// The first connections are made by the mesh itself, or given to it. Until all links had one, there are no heartbeats.
// But what comes over those that are there is read: a rank that waits for others hears of failures.
//
// Rails. Where two ranks have several rails in common, neither an ended connection nor a silent host is the end: the
// connection moves to another rail, and nothing is lost or comes twice (control_link.h, link_moves.h). The neighbour
// has died when its rails refuse connections, and is lost when none has answered for the heartbeat time. Ranks with one
// rail in common have none of this.
//
// All-gather: dissemination, ceil(log2 N) steps; in step k a rank sends all that it holds to r + 2^k (Bruck et al.,
// "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997, section 4,
// mirrored).
//
// Letters: short messages to any rank, passed on from neighbour to neighbour in at most ceil(log2 N) hops. Each letter
// goes both ways around the ring of ranks, so that one stalled rank holds up only one copy. A receiver may get each
// letter twice, once, or (when several ranks are stalled) not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rank_names.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control_mesh/control_rails.h"
#include "transport/shm/host_streams.h"
#include "transport/socket/socket.h"

namespace trestle {

// Called only by poll(), without a lock, on the thread that polls. Each function is called at most once unless its
// comment says otherwise (on_bye: once per rank).
class ControlListener {
 public:
  virtual ~ControlListener() = default;
  // A rank reported a failure, or died. origin_rank: the rank that noticed it.
  virtual void on_error(const Error& error, int32_t origin_rank) = 0;
  virtual void on_abort(int32_t rank) = 0;  // that rank called abort
  // That rank left in order. by_exit: its process exited without destroying the communicator.
  virtual void on_bye(int32_t rank, bool by_exit) = 0;
  // That rank sent a letter. Called for every letter that arrives.
  virtual void on_letter(int32_t from, const std::string& text) = 0;
};

inline constexpr size_t kMostLetterBytes = 4096;

struct ControlLetter {
  int32_t from = 0;
  std::string text;
};

struct ControlSettings {
  int32_t rank = 0;
  int32_t ranks = 1;
  int64_t heartbeat_ns = 0;  // 0: none are sent or expected
  Clock* clock = nullptr;    // nullptr: the monotonic clock
  // Whether the kernel at the other end of a connection acknowledged anything in the last `within_ns`. nullptr: uses
  // TCP_INFO.
  bool (*host_answers)(int fd, int64_t within_ns) = nullptr;
  // use_rails() will be called, so frames are kept until then.
  bool keeps_frames = false;
  int64_t handshake_timeout_ns = 5'000'000'000;  // how long a stranger at the listeners may prove nothing
};

// One authenticated, connected, nonblocking stream socket to `peer`. None: use_rails() makes the connection.
struct ControlConnection {
  int32_t peer = 0;
  UniqueFd socket = {};
};

class ControlMesh {
 public:
  // out[k] leads to rank + 2^k, in[k] to rank - 2^k (modulo ranks), k < ceil(log2 ranks).
  static Result<std::unique_ptr<ControlMesh>> create(const ControlSettings& settings,
                                                     std::vector<ControlConnection> out,
                                                     std::vector<ControlConnection> in);
  // Between ranks of one host, over sockets that they share with other communicators: the mesh has none of its own, and
  // its connections never move. names: by rank. addresses: by rank, at least those of mesh_neighbours().
  static Result<std::unique_ptr<ControlMesh>> create(const ControlSettings& settings,
                                                     std::unique_ptr<HostStreams> streams,
                                                     const std::vector<std::string>& addresses,
                                                     const std::vector<std::string>& names);
  ~ControlMesh();  // close(0)
  ControlMesh(const ControlMesh&) = delete;
  ControlMesh& operator=(const ControlMesh&) = delete;

  // Starts the heartbeats; peers watch this rank from its first one on. The next poll() passes earlier events to the
  // listener. The listener must live until close() has returned and no poll() runs.
  void start(ControlListener* listener);
  // From now on another thread that takes in what event_fd() would have told of calls `ring`, under locks: then poll()
  // has something to do. Before, event_fd() tells of that, too. For a mesh over shared sockets; others need no bell.
  void on_arrival(std::function<void()> ring);
  // From now on connections are made and move between these rails; nullptr: each stays where it is. At most once,
  // before or after start(). With several rails the heartbeats start when all links have had a connection, so that a
  // silent rail is noticed. silence_ns: how long a neighbour's host may acknowledge nothing before its connection
  // moves, if that is shorter than the heartbeat time.
  Status use_rails(std::unique_ptr<ControlRails> rails, int64_t silence_ns);
  // The peers of links without a connection, each once, in ascending order.
  std::vector<int32_t> unconnected() const;
  // Why connections could not be accepted; "": all could.
  std::string accept_failure() const;
  // Whether connections may move: it listens on its rails.
  bool moves() const;
  // Where the ranks rank - 2^k have reached this one, as far as that is known.
  std::vector<HostAddress> reached_at() const;
  // "rank 3 (host a, pid 12)" for error messages; one per rank.
  void set_names(const RankNames& names);

  int event_fd() const;         // an epoll descriptor: readable when poll() has something to do
  void poll(int64_t now_ns);    // reads, writes, sends due heartbeats, looks for silent peers, calls the listener
  int64_t next_due_ns() const;  // when poll() must run even if event_fd() is quiet; INT64_MAX: never

  // Tells all ranks. Only the first of these calls has an effect, and none after an error or abort from another rank.
  // This rank's own listener is not called.
  void flood_error(const Error& error, int32_t failed_rank);
  void flood_abort();

  // To a rank other than this one; at most kMostLetterBytes. Letters are dropped after a failure.
  void send_letter(int32_t to, const std::string& text);
  // Takes the letters of one kind that came before start(), each once. For code that polls without a listener. The
  // listener gets the other letters.
  std::vector<ControlLetter> take_letters(bool (*of_kind)(const std::string& text));

  // Numbered collectives: each rank calls them in the same order and uses each seq once; several may be open. Barriers
  // and all-gathers are numbered separately. A finished result is kept until it is asked for, then dropped.
  void start_all_gather(uint64_t seq, std::string mine);
  // An empty vector: not done yet (kInProgress is never returned); otherwise one blob per rank. Errors: a rank died or
  // left, the mesh failed.
  Result<std::vector<std::string>> all_gather_result(uint64_t seq);
  void start_barrier(uint64_t seq);
  Result<bool> barrier_done(uint64_t seq);
  // The rank whose message an all-gather or barrier started here waits for. That rank may itself wait for another one.
  // -1: none; it is done or was not started.
  int32_t awaited(uint64_t seq, bool barrier) const;
  // Whether the rank's kernel acknowledged anything in the last `within_ns`. nullopt: this rank has no connection with
  // it.
  std::optional<bool> host_answers(int32_t rank, int64_t within_ns) const;

  // The first error or abort known here (kAborted), or success.
  Status status() const;
  // Says goodbye (once; by_exit: see on_bye), waits at most linger_ms until the peers' kernels have acknowledged it,
  // and ends the connections. While a failure is known here and a connection is moving, it waits at least 250 ms, so
  // that the failure still reaches that peer. Idempotent. Never calls the listener.
  void close(int linger_ms, bool by_exit = false);

 private:
  class Impl;
  explicit ControlMesh(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trestle
