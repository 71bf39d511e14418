// RendezvousServer: the loop behind start_rendezvous(). Private to server.cpp, server_client.cpp and registry.cpp.
//
// Owned by the registry. run() has a thread of its own; any other thread may call the other public functions. All else
// is private to that thread.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor_room.h"
#include "base/log.h"
#include "base/mutex.h"
#include "rendezvous/server/gatherings.h"
#include "rendezvous/server/server.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"

namespace trestle {

class RendezvousServer {
 public:
  RendezvousServer(std::vector<Listener> listeners, const RendezvousOptions& options);
  bool opened() const { return bell_->opened(); }  // without its descriptor stop() would not be noticed

  void run();
  void stop();
  // A rank of this process has failed before it asked here: the others must not wait for it.
  void give_up(int32_t rank, const Error& error);
  // nullptr: it is about to end.
  RendezvousHeld hold() { return gatherings_.hold(); }
  bool is_of(const Credentials& credentials) const;
  const JobId& job() const { return options_.credentials.job; }
  uint16_t port() const { return port_; }
  bool failed() const { return failed_.load(); }  // the server stays only for late ranks

 private:
  // kHandshake -> kRequest -> kWaiting (for the other ranks) -> kConnecting (with its neighbours) -> kClosing ->
  // kClosed
  enum class Stage : uint8_t { kHandshake, kRequest, kWaiting, kConnecting, kClosing, kClosed };
  struct Client {
    Client(UniqueFd fd, const Credentials& credentials, int64_t now)
        : socket(std::move(fd)), exchange(Role::kAcceptor, Purpose::kRendezvous, credentials), since_ns(now) {}
    UniqueFd socket;
    HandshakeExchange exchange;
    Stage stage = Stage::kHandshake;
    int64_t since_ns;    // of the stage
    SocketAddress from;  // as read while it was connected
    std::string in;      // bytes of the request, then of the report
    std::string out;
    size_t out_at = 0;
    int32_t rank = -1;
    Gathering* at = nullptr;  // not nullptr if rank >= 0
    bool own = false;         // a rank of the process that holds the rendezvous
    bool last = false;        // nothing follows the bytes in `out`
    bool has_output() const { return out_at < out.size(); }
    bool is(Stage at) const { return stage == at; }
  };

  // server.cpp
  void turn(int timeout_ms);
  void accept_clients(int64_t now);
  void admit(UniqueFd socket, int64_t now);
  size_t most_half_open() const;
  void make_room_for(int32_t ranks);
  void decide(int64_t now);
  void decide(Gathering& gathering, int64_t now);
  void answer_all(Gathering& gathering, int64_t now);
  void tell_progress(Gathering& gathering, int64_t now);
  bool others_are_coming() const;
  bool anybody_asks() const;
  void drop_late(int64_t now);
  void shut_down();
  void take_given_up();
  int timeout_ms(int64_t now) const;
  std::string refusals() const;
  static short events_of(const Client& client);
  StrangerClaim claim_of_client(const Client& client) const;

  // server_client.cpp
  void serve(Client& client, short events, int64_t now);
  void step_handshake(Client& client, int64_t now);
  void read_request(Client& client, int64_t now);
  Result<bool> read_message(Client& client);
  void watch_waiting(Client& client);
  void read_report(Client& client, int64_t now);
  void send_answer(Client& client, const JoinAnswer& answer, bool last, int64_t now);
  void write(Client& client);
  void refuse(Client& client, const std::string& reason);
  void connection_lost(Client& client);

  std::vector<Listener> listeners_;
  const uint16_t port_;  // of the first
  const RendezvousOptions options_;
  const std::shared_ptr<RendezvousBell> bell_ = std::make_shared<RendezvousBell>();  // open until run() ends
  mutable Mutex mutex_;
  std::vector<std::pair<int32_t, Error>> given_up_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<bool> stopped_{false};
  std::atomic<bool> failed_{false};
  std::list<Client> clients_;
  Admission admission_;
  bool more_wait_ = false;  // at a listener
  DescriptorRoom room_;
  std::string accept_failure_;  // the last one; "": none
  Gatherings gatherings_;
  OncePerKey refused_once_;
  size_t refused_ = 0;
  std::string last_refusal_;
  size_t secret_refusals_ = 0;
  std::vector<std::string> secret_refused_;  // hosts and claimed ranks, each once
};

}  // namespace trestle
