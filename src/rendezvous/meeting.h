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
#include "rendezvous/host_rails.h"
#include "rendezvous/message.h"
#include "rendezvous/server/hold.h"
#include "transport/socket/socket.h"

namespace trestle {

struct Meeting {
  JobId job{};
  std::vector<std::byte> secret;
  std::vector<RailListener> listeners;  // of this rank, for the ranks rank - 2^k; one on each rail
  // The meeting_text() of the ranks rank + 2^k, then of the ranks rank - 2^k.
  std::vector<std::string> addresses;
  std::string store;                     // directory to remove when all are connected; "": none
  int64_t deadline_ns = kNoDeadline;     // the earliest deadline of all ranks, where it is known
  std::shared_ptr<UniqueFd> held;        // this rank's file in the store, locked while its process lives
  std::shared_ptr<RendezvousHold> hold;  // of the rendezvous in this process, if it goes on watching
  // All three may be empty. failure: returns another rank's failure (called while connecting). report: takes the result
  // of connecting this rank, once. name_of: "rank 3 (host a, pid 12)" of a neighbour, as far as it is known.
  std::function<Status()> failure;
  std::function<void(const JoinReport&)> report;
  std::function<std::string(int32_t rank)> name_of;

  std::string name(int32_t rank) const {
    const std::string known = name_of ? name_of(rank) : "";
    return known.empty() ? "rank " + std::to_string(rank) : known;
  }
};

class RootLookup;

// The address of the root, and how the ranks recognise it.
struct Root {
  std::string name;   // as the user gave it
  std::string place;  // for error messages: "the rendezvous at host:29500 (MASTER_ADDR, MASTER_PORT)"
  std::vector<SocketAddress> candidates;
  JobId job{};
  std::vector<std::byte> secret;
  bool own_port = false;  // made for this communicator: a refusal there is final
  bool is_local = false;  // its address is given as one of loopback, so all ranks are on this host
  std::string job_name;   // of the launcher or TRESTLE_JOB; "": the job has none
  // Of the rendezvous in this process, if rank 0 has one at a named place.
  std::shared_ptr<RendezvousHold> hold;
  // Rank 0's connection with the rendezvous of its job that another process holds, after the handshake; nullptr: there
  // is none. It can be taken out once.
  std::shared_ptr<UniqueFd> guest;

  std::shared_ptr<RootLookup> lookup;  // of its name, while nobody is reached; nullptr: it stays where it is

  // The process that holds the rendezvous, for error messages.
  const char* holder() const {
    return own_port ? "the process that made the unique id (as a rule that of rank 0)" : "rank 0";
  }
};

// Checks that the variables about the meeting point can be parsed, whether they are needed or not.
Status check_place(const BootstrapConfig& config);
// The root comes from, in this order: the explicit id; TRESTLE_COMM_ID; MASTER_ADDR; the address that the launcher's
// processes exchange; the launcher's variables. In all cases but the first, rank 0 starts the server here.
Result<Root> find_root(const BootstrapConfig& config, const WaitLimit& limit);
// Finds the root, again if it ends before it has answered a rank 0 that is its guest.
Result<Meeting> meet_at_root(const BootstrapConfig& config, const WaitLimit& limit);

// The PATH in TRESTLE_STORE=file:PATH.
Result<std::string> store_path(const std::string& store);
Result<Meeting> meet_in_store(const BootstrapConfig& config, const WaitLimit& limit);
void clean_store(const std::string& directory, const JobId& job);

// What the ranks of a job have in common at a named place: its port, as the user gave it, and the name of the job ("":
// none). The host may be spelled differently.
JobId job_at(uint16_t port, const std::string& job_name);

// Listens on each rail of this host that TRESTLE_SOCKET_IFNAME and the family allow, on a port of the configured range.
// At least one. left_out: gets what speaks against each of the other interfaces.
Result<std::vector<Listener>> listen_on_each_rail(const BootstrapConfig& config, std::string& left_out);
// Listening sockets for this rank: at the interfaces that TRESTLE_SOCKET_IFNAME names, else at `ip`; and on this host's
// other rails. `ip`: an address at which all other ranks reach this one; empty: none is known, so on the rails alone.
// The ports are of the configured range; that of `ip` does not count. The error when no port is free names the range.
Result<std::vector<RailListener>> listen_for_neighbours(const BootstrapConfig& config, const SocketAddress& ip);
// In their order, but those first that are in the network of one of this host's interfaces.
std::vector<SocketAddress> nearest_first(std::vector<SocketAddress> addresses);
// kInvalidUsage: the id is of another host, and has only addresses of loopback. `what` begins the sentence.
Status check_reach(const UniqueId& id, const std::string& what);
// What this rank says of itself at the meeting point. is_local: Root::is_local.
JoinRequest own_request(const BootstrapConfig& config, const std::vector<RailListener>& listeners, bool is_local);

}  // namespace trestle
