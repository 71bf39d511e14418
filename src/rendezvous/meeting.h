// Meeting: how one rank learns where its neighbours listen. Two ways: a root server (meet_at_root), a file store
// (meet_in_store).
//
// Functions of join(), on its thread; they block until the limit. A Meeting is a value of join().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/message.h"
#include "transport/socket/socket.h"

namespace trestle {

struct Meeting {
  JobId job{};
  std::vector<std::byte> secret;
  Listener listener;                   // of this rank, for the ranks rank - 2^k
  std::vector<std::string> addresses;  // of the ranks rank + 2^k
  std::string store;                   // directory to remove when all are connected; "": none
  int64_t deadline_ns = kNoDeadline;   // the earliest of all ranks, where somebody knows it
  std::shared_ptr<UniqueFd> held;      // this rank's file there, which says that its process lives
  // All three may be empty. Another rank has failed (asked while connecting); how this rank's connecting went, once;
  // "rank 3 (host a, pid 12)" of a neighbour, as far as it is known.
  std::function<Status()> failure;
  std::function<void(const JoinReport&)> report;
  std::function<std::string(int32_t rank)> name_of;

  std::string name(int32_t rank) const {
    const std::string known = name_of ? name_of(rank) : "";
    return known.empty() ? "rank " + std::to_string(rank) : known;
  }
};

// Where the root is and how it is recognised.
struct Root {
  std::string name;   // as the user gave it
  std::string place;  // likewise, for sentences: "the rendezvous at host:29500 (MASTER_ADDR, MASTER_PORT)"
  std::vector<SocketAddress> candidates;
  JobId job{};
  std::vector<std::byte> secret;
  bool own_port = false;  // made for this communicator: whoever refuses there will not change its mind

  // Whose process holds it, for sentences.
  const char* holder() const {
    return own_port ? "the process that made the unique id (as a rule that of rank 0)" : "rank 0";
  }
};

// What the variables say about the meeting point can be read, whether it is needed or not.
Status check_place(const BootstrapConfig& config);
// Explicit id; or TRESTLE_COMM_ID; or MASTER_ADDR; or the address that the launcher's processes exchange; or what can
// be concluded from the launcher's variables. But for the first of them rank 0 starts the server here.
Result<Root> find_root(const BootstrapConfig& config, const WaitLimit& limit);
Result<Meeting> meet_at_root(const BootstrapConfig& config, const Root& root, const WaitLimit& limit);

// TRESTLE_STORE=file:PATH; PATH of such a text.
Result<std::string> store_path(const std::string& store);
Result<Meeting> meet_in_store(const BootstrapConfig& config, const WaitLimit& limit);
void clean_store(const std::string& directory);

// How many communicators of so many ranks this rank has made through that rendezvous before, in this process; counts
// this one. Ranks that make communicators of different sizes in between (rank 0 one for itself) still agree on the
// number.
uint64_t next_communicator(const std::string& rendezvous, int32_t nranks, int32_t rank);
// The id of a communicator that met at `meeting_place`: there, those of different sizes have one id, so that a wrong
// number of ranks can be told.
JobId communicator_job(const JobId& meeting_place, int32_t nranks);

// Sleeps a little, unless the limit is reached.
Status pause_before(int64_t pause_ns, const WaitLimit& limit);

// A listening socket for this rank at `ip` (port 0), or at the interfaces that the configuration names. "port range is
// full" with the range.
Result<Listener> listen_for_neighbours(const BootstrapConfig& config, const SocketAddress& ip);

}  // namespace trestle
