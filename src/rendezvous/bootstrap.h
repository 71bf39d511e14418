// Bootstrap: how the ranks of a communicator find each other, and the small exchanges that they do before any transport
// exists.
//
// 1. Meeting point. One of: the root server of a unique id (a thread of the process that made the id); the root server
//    of TRESTLE_COMM_ID, of MASTER_ADDR:MASTER_PORT or of an address that the launcher passes on (a thread of rank 0's
//    process); a file store. Each rank tells it its listening addresses once, and gets those of the ranks r + 2^k and
//    r - 2^k.
// 2. Each rank connects to the ranks r + 2^k and accepts the ranks r - 2^k. Both sides of every connection prove that
//    they know the secret.
// 3. These connections are the ControlMesh; all_gather and barrier run over them in ceil(log2 N) steps. If a rail is
//    lost, its connections move to another rail that their two ranks have in common (neighbours.h, MeshRails).
//
// join(), all_gather() and barrier() block, with a deadline and an abort flag that another thread may set; one caller
// at a time per object. Owned by the code that creates a communicator; take_mesh() ends it. Root servers belong to a
// registry of the process. They end when all ranks have reported, when their time is over, or with the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/agree/agree.h"
#include "base/config/config.h"
#include "base/rank_names.h"
#include "base/result.h"
#include "control_mesh/control_mesh.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/unique_id.h"
#include "transport/socket/socket.h"

namespace trestle {

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

struct BootstrapConfig {
  int32_t nranks = 0;
  int32_t rank = 0;
  // Zero: communicator_id, store or launcher give the meeting point, in this order; see join.
  UniqueIdBytes id{};
  int64_t deadline_ns = kNoDeadline;  // of monotonic_clock(); for join()
  int64_t timeout_ns = 0;             // the timeout behind deadline_ns, for error messages; 0: none
  // Set by another thread: join and exchanges return kAborted within 50 ms.
  const std::atomic<bool>* abort = nullptr;
  int64_t heartbeat_ns = 0;
  int64_t rail_timeout_ns = 3'000'000'000;  // TRESTLE_RAIL_TIMEOUT, for connections of the mesh that can move
  std::string interfaces;                   // TRESTLE_SOCKET_IFNAME
  std::string family = "auto";              // TRESTLE_SOCKET_FAMILY
  std::string rails;                        // over which ranks meet, in the grammar of TRESTLE_RAILS
  PortRange port_range;                     // TRESTLE_PORT_RANGE
  std::string secret;                       // TRESTLE_SECRET; not used with an id, which has its own secret
  std::string job;                          // TRESTLE_JOB
  std::string communicator_id;              // TRESTLE_COMM_ID
  std::string store;                        // TRESTLE_STORE
  Launcher launcher;
  int64_t handshake_timeout_ns = 5'000'000'000;  // how long a stranger may keep a connection half open

  // Names for error messages, by rank, if they are known already. And where to write the rank that this one waits for
  // at the moment (-1: none). Both may be empty.
  std::vector<std::string> names;
  std::atomic<int32_t>* awaited = nullptr;
  // Returns the error to end with. Called when the deadline passes while this rank waits for rank `awaited` (-1: no
  // rank can be named), on the waiting thread; it may take some time. Empty: the inquiry asks the ranks over the
  // connections made so far.
  std::function<Error(int32_t awaited, const Error& own)> on_overdue;
  // Another rank's failure that is known from elsewhere; it ends the exchanges here, too. Empty: there is none.
  std::function<Status()> failure;
  // The error that the other ranks get when this one gives up because of `abort`. Empty: it aborted, or its process
  // exits.
  std::function<Error()> on_abort;
};

// The values of the configuration. The caller may change rank, nranks, id and deadline (now + timeout).
BootstrapConfig bootstrap_config(const Config& config, int32_t nranks, int32_t rank, const UniqueIdBytes& id);

// Makes an id and starts its root server in this process, for at most `timeout_ns` (0: a day). Uses only interfaces,
// family, port_range and handshake_timeout_ns of the configuration.
Result<UniqueIdBytes> make_unique_id(const BootstrapConfig& config, int64_t timeout_ns);

struct Meeting;
class RendezvousHold;

// How the ranks of a host reach each other over sockets that they share.
struct HostMeeting {
  std::unique_ptr<HostStreams> streams;
  std::vector<std::string> addresses;  // by rank
};

class Bootstrap {
 public:
  // Returns when this rank is connected to its neighbours. All ranks that reached the meeting point get the same
  // errors: duplicate ranks, ranks out of range, different numbers of ranks or versions, ranks that did not come
  // (kTimeout, with their numbers). A single rank without an id has no meeting point, whatever the configuration says.
  static Result<std::unique_ptr<Bootstrap>> join(const BootstrapConfig& config);
  // As join(), for ranks that already know each other's listening addresses.
  static Result<std::unique_ptr<Bootstrap>> join_at(const BootstrapConfig& config, Meeting meeting);
  // For ranks of one host that share sockets, which are connected or connect meanwhile: nothing listens. Uses the
  // configuration's names, which are those of all ranks. local_ip: of this host, for local_ip().
  static Result<std::unique_ptr<Bootstrap>> join_on_host(const BootstrapConfig& config, const JobId& job,
                                                         const std::vector<std::byte>& secret,
                                                         const HostAddress& local_ip, HostMeeting meeting);
  // All ranks inside this process, connected by socket pairs: nothing listens, and no other process can join. Index =
  // rank. Ignores the configuration's rank, id and meeting point.
  static Result<std::vector<std::unique_ptr<Bootstrap>>> join_in_process(const BootstrapConfig& config);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // The earliest deadline of all ranks, as far as it is known.
  int64_t deadline_ns() const;
  int32_t rank() const;
  int32_t nranks() const;
  const JobId& job() const;                      // equal on all ranks, different for every communicator
  const std::vector<std::byte>& secret() const;  // the job's key for further connections; empty: there is none
  // The address at which this rank's neighbours reach it; none in process. A good default address for transports.
  const HostAddress& local_ip() const;
  // Whether it still listens on its rails, where the connections of the mesh may move.
  bool listens() const;

  // For later exchanges, as BootstrapConfig::abort; nullptr: none.
  void set_abort(const std::atomic<bool>* abort);

  // The blobs of all ranks, by rank. Blobs may have different lengths, at most 1 MiB each. May be called any number of
  // times, in the same order on all ranks.
  Result<std::vector<std::string>> all_gather(const std::string& mine, int64_t deadline_ns);
  // As trestle::agree, with the ranks' names.
  Status agree(std::string_view function, const Facts& facts, const Status& own, int64_t deadline_ns);
  Status barrier(int64_t deadline_ns);
  // "rank 3 (host a, pid 12)", used in error messages from now on; one per rank.
  void set_names(const RankNames& names);
  // The failure of the communicator that is known here so far; success: none. For waits that are not an exchange.
  // event_fd() becomes readable when this may have changed.
  Status heard();
  // Sets the rank that such a wait is for; -1: none. Inquiries of other ranks get it as the answer.
  void waits_for(int32_t rank);
  int event_fd() const;
  // Returns the cause that other ranks report, if one arrives within a second, else `own`. A rank that fails because of
  // another one closes its connections before the reason has arrived here. Without this wait it would be blamed.
  Error cause_of(const Error& own);
  // The deadline has passed while this rank waited for `awaited`. Finds out which rank is to blame, in at most a few
  // seconds, and tells all ranks.
  Error blame(int32_t awaited, const Error& own);
  // Tells the other ranks why this one gives up, so that they do not wait for it.
  void fail(const Error& error);

  // The connections, for the life of the communicator. Afterwards only the plain getters may be used.
  std::unique_ptr<ControlMesh> take_mesh();
  // The hold of the rendezvous in this process, for the life of the communicator; nullptr: there is none to keep.
  std::shared_ptr<RendezvousHold> take_hold();

 private:
  class Impl;
  explicit Bootstrap(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<Bootstrap>> alone(const BootstrapConfig& config);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trestle
