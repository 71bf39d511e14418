// Bootstrap: how the ranks of a communicator find each other, and the small exchanges they do before any transport
// exists.
//
// 1. Meeting point: the root server of a unique id (a thread of the process that made the id), of TRESTLE_COMM_ID, of
//    MASTER_ADDR:MASTER_PORT or of an address that the launcher passes on (a thread of rank 0's process), or a file
//    store. Each rank tells it its listening address once and gets those of the ranks r + 2^k.
// 2. Each rank connects to the ranks r + 2^k and accepts the ranks r - 2^k; every connection proves the secret on both
// sides.
// 3. These connections are the ControlMesh; all_gather and barrier run over them in ceil(log2 N) steps.
//
// join(), all_gather() and barrier() block, with a deadline and an abort flag that another thread may set; one caller
// at a time per object. Owned by who makes a communicator; take_mesh() ends it. Root servers belong to a registry of
// the process and end when all ranks were answered, when their time is over, or with the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/result.h"
#include "control_mesh/control_mesh.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/unique_id.h"

namespace trestle {

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

struct BootstrapConfig {
  int32_t nranks = 0;
  int32_t rank = 0;
  UniqueIdBytes id{};                        // zero: as communicator_id, store or launcher say, in this order; see join
  int64_t deadline_ns = kNoDeadline;         // of monotonic_clock(); for join()
  int64_t timeout_ns = 0;                    // what deadline_ns was made of, for sentences; 0: none
  const std::atomic<bool>* abort = nullptr;  // set from elsewhere: join and exchanges return kAborted within 50 ms
  int64_t heartbeat_ns = 0;
  std::string interfaces;       // TRESTLE_SOCKET_IFNAME
  std::string family = "auto";  // TRESTLE_SOCKET_FAMILY
  PortRange port_range;         // TRESTLE_PORT_RANGE
  std::string secret;           // TRESTLE_SECRET; not used with an id, which has its own
  std::string communicator_id;  // TRESTLE_COMM_ID
  std::string store;            // TRESTLE_STORE
  Launcher launcher;
  int64_t handshake_timeout_ns = 5'000'000'000;  // how long a stranger may keep a connection half open

  // Of ranks that are known from elsewhere already; all may be empty. Their names, by rank, for sentences. Where the
  // rank is written that this one waits for at the moment; -1: none.
  std::vector<std::string> names;
  std::atomic<int32_t>* awaited = nullptr;
  // Called when the deadline passes while this rank waits for that one (-1: nobody can be named), on the thread that
  // waits, which may take its time: the error to end with. Empty: the ranks are asked over the connections that are
  // made.
  std::function<Error(int32_t awaited, const Error& own)> on_overdue;
  // What the other ranks hear when this one gives up because of `abort`. Empty: that it aborted, or that it exits.
  std::function<Error()> on_abort;
};

// The values of the configuration; rank, nranks, id and deadline (now + timeout) are the caller's to change.
BootstrapConfig bootstrap_config(const Config& config, int32_t nranks, int32_t rank, const UniqueIdBytes& id);

// Makes an id and starts its root server in this process, for `timeout_ns` at most (0: a day). Uses interfaces, family
// and port_range only.
Result<UniqueIdBytes> make_unique_id(const BootstrapConfig& config, int64_t timeout_ns);

struct Meeting;

class Bootstrap {
 public:
  // Returns when this rank is connected to its neighbours. Errors are the same on all ranks that reached the meeting
  // point: duplicate ranks, ranks out of range, different numbers of ranks or versions, ranks that did not come
  // (kTimeout, with their numbers). One rank without an id has nobody to meet, whatever the configuration names.
  static Result<std::unique_ptr<Bootstrap>> join(const BootstrapConfig& config);
  // The same where the ranks have told each other already where they listen.
  static Result<std::unique_ptr<Bootstrap>> join_at(const BootstrapConfig& config, Meeting meeting);
  // All ranks inside this process, connected by socket pairs: nothing listens, nobody else can come in. Index = rank.
  // Of the configuration nranks, abort, id and heartbeat_ns are used.
  static Result<std::vector<std::unique_ptr<Bootstrap>>> join_in_process(const BootstrapConfig& config);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Until when the ranks have time: the earliest deadline of them all, as far as it is known.
  int64_t deadline_ns() const;
  int32_t rank() const;
  int32_t nranks() const;
  const JobId& job() const;                      // equal on all ranks, different for every communicator
  const std::vector<std::byte>& secret() const;  // key of the job for further connections; empty: there is none
  // The address that this rank's neighbours reach it at (numeric); "" in process. A good default for the addresses of
  // transports.
  const std::string& local_ip() const;

  // For the exchanges to come, as BootstrapConfig::abort; nullptr: none.
  void set_abort(const std::atomic<bool>* abort);

  // Everybody's blob, by rank. Blobs may have different lengths, at most 1 MiB each. Usable any number of times, in the
  // same order on all ranks.
  Result<std::vector<std::string>> all_gather(const std::string& mine, int64_t deadline_ns);
  Status barrier(int64_t deadline_ns);
  // "rank 3 (host a, pid 12)" for sentences from here on; one per rank.
  void set_names(std::vector<std::string> names);
  // What this rank has heard of a failure of the communicator so far; success: nothing. For waits that are not an
  // exchange. event_fd() is readable when asking may bring news.
  Status heard();
  // The rank that such a wait is for, told to whoever asks; -1: none.
  void waits_for(int32_t rank);
  int event_fd() const;
  // The story that others tell, if one comes within a second, else `own`: who fails because of another rank closes its
  // connections before the reason has travelled, and would be blamed.
  Error cause_of(const Error& own);
  // The deadline has passed in a wait for that rank: finds out who is to blame, in a few seconds at most, and tells
  // all.
  Error blame(int32_t awaited, const Error& own);
  // Tells the other ranks why this one does not go on, so that they do not wait for it.
  void fail(const Error& error);

  // The connections, for the life of the communicator. Afterwards only the plain getters may be used.
  std::unique_ptr<ControlMesh> take_mesh();

 private:
  class Impl;
  explicit Bootstrap(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<Bootstrap>> alone(const BootstrapConfig& config);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trestle
