// ControlMesh: the connections of a rank to the ranks r + 2^k and r - 2^k that stay open for the life of a
// communicator. They carry what must arrive when data no longer flows: heartbeats, errors, aborts, goodbyes; and small
// all-gathers and barriers outside the data path.
//
// Owned by the communicator. Any thread may call any function: state is under one mutex that is never held while a
// listener is called or anything waits. Nothing blocks but close(). Whoever drives the rank's progress calls poll()
// when event_fd() is readable or next_due_ns() has come.
//
// What a rank learns. The first ERROR or ABORT that a rank sees, its own included, is passed on once to all its
// neighbours and is the only one that its listener hears: everybody knows within ceil(log2 N) hops. A neighbour whose
// connection ends without a goodbye has died; a neighbour that was silent for the heartbeat time and whose kernel
// acknowledged nothing for as long is a lost host (a stopped process on a living host is logged once and left to the
// deadlines). Sentences name the rank that failed and not the one that noticed, so that all ranks tell the same story.
//
// All-gather: dissemination, ceil(log2 N) steps; in step k a rank sends all that it holds to r + 2^k (Bruck et al.,
// "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997, section 4,
// mirrored).
//
// Letters: short messages to any rank, passed on from neighbour to neighbour in at most ceil(log2 N) hops. Each goes
// both ways around the ring of ranks, so that one rank that stands still holds up one copy and not the other: expect
// each twice, once, or (when several ranks stand still) not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

// Called by poll() and by nothing else, without a lock, on the thread that polls. Each at most once, if not said
// (on_bye: once per rank).
class ControlListener {
 public:
  virtual ~ControlListener() = default;
  virtual void on_error(const Error& error,
                        int32_t origin_rank) = 0;  // a rank reported a failure, or died (origin: the one who noticed)
  virtual void on_abort(int32_t rank) = 0;         // that rank called abort
  // That rank left in order; by_exit: its process exited without destroying the communicator.
  virtual void on_bye(int32_t rank, bool by_exit) = 0;
  // That rank sent a letter; as often as letters come.
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
  // Whether the kernel at the other end of a connection acknowledged anything in the last `within_ns`. nullptr:
  // TCP_INFO is asked.
  bool (*host_answers)(int fd, int64_t within_ns) = nullptr;
};

// One authenticated, connected, nonblocking stream socket to `peer`.
struct ControlConnection {
  int32_t peer = 0;
  UniqueFd socket;
};

class ControlMesh {
 public:
  // out[k] leads to rank + 2^k, in[k] to rank - 2^k (modulo ranks), k < ceil(log2 ranks).
  static Result<std::unique_ptr<ControlMesh>> create(const ControlSettings& settings,
                                                     std::vector<ControlConnection> out,
                                                     std::vector<ControlConnection> in);
  ~ControlMesh();  // close(0)
  ControlMesh(const ControlMesh&) = delete;
  ControlMesh& operator=(const ControlMesh&) = delete;

  // Begins heartbeats (peers watch this rank from its first one on) and hands over what happened so far at the next
  // poll(). The listener must live until close() has returned and no poll() runs.
  void start(ControlListener* listener);
  // "rank 3 (host a, pid 12)" for sentences; one per rank.
  void set_names(std::vector<std::string> names);

  int event_fd() const;         // an epoll descriptor: readable when poll() has something to do
  void poll(int64_t now_ns);    // reads, writes, sends due heartbeats, looks for silent peers, calls the listener
  int64_t next_due_ns() const;  // when poll() must run though event_fd() is quiet; INT64_MAX: never

  // Tells all ranks; at most one of both has an effect, and none after an error or abort from elsewhere. The own
  // listener is not called.
  void flood_error(const Error& error, int32_t failed_rank);
  void flood_abort();

  // To a rank other than this one; at most kMostLetterBytes. Nobody hears letters after a failure.
  void send_letter(int32_t to, const std::string& text);
  // Those of a kind that came before start(), each once: for whoever polls without a listener, which hears the others.
  std::vector<ControlLetter> take_letters(bool (*of_kind)(const std::string& text));

  // Collectives with a number: each rank calls them in the same order, each seq is used once; several may be open.
  // Barriers and all-gathers have numbers of their own. Done results are kept until asked for, then forgotten.
  void start_all_gather(uint64_t seq, std::string mine);
  // kInProgress is never returned: an empty vector means not yet; otherwise ranks() blobs. Errors: a rank died or left,
  // the mesh failed.
  Result<std::vector<std::string>> all_gather_result(uint64_t seq);
  void start_barrier(uint64_t seq);
  Result<bool> barrier_done(uint64_t seq);
  // The rank whose message an all-gather or barrier that was started here waits for; that one may itself be waiting for
  // another rank. -1: none, it is done or was not started.
  int32_t awaited(uint64_t seq, bool barrier) const;
  // Whether the rank's kernel acknowledged anything in the last `within_ns`. Nothing: this rank is not connected with
  // it.
  std::optional<bool> host_answers(int32_t rank, int64_t within_ns) const;

  // The first error or abort known here (kAborted), or success.
  Status status() const;
  // Says goodbye (once; by_exit: see on_bye), waits at most linger_ms until it has left this machine, ends the
  // connections. Idempotent; never calls the listener.
  void close(int linger_ms, bool by_exit = false);

 private:
  class Impl;
  explicit ControlMesh(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trestle
