// RendezvousServer: the loop behind start_rendezvous(). Private to server.cpp, server_client.cpp and registry.cpp.
//
// Owned by the registry. run() has a thread of its own; any other thread may call the other public functions. All else
// is private to that thread.
#pragma once

#include <atomic>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor_room.h"
#include "base/log.h"
#include "base/mutex.h"
#include "rendezvous/board.h"
#include "rendezvous/server.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"

namespace trestle {

class RendezvousServer {
 public:
  RendezvousServer(Listener listener, const RendezvousOptions& options);
  bool opened() const;  // without a wake descriptor stop() would not be noticed

  void run();
  void stop();
  // A rank of this process has failed before it came here: the others must not wait for it.
  void give_up(int32_t rank, const Error& error);
  const JobId& job() const { return options_.credentials.job; }
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
    bool own = false;   // a rank of the process that holds the rendezvous
    bool last = false;  // nothing follows the bytes in `out`
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
  void answer_all(int64_t now);
  bool others_are_coming() const;
  void drop_late(int64_t now);
  void shut_down();
  void take_given_up();
  int timeout_ms(int64_t now) const;
  int64_t stay_ns() const;
  bool finished(int64_t now) const;
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
  void no_longer_waits(int32_t rank);

  Listener listener_;
  const RendezvousOptions options_;
  mutable Mutex wake_mutex_;
  UniqueFd wake_ TRESTLE_GUARDED_BY(wake_mutex_);  // until run() ends
  std::optional<std::pair<int32_t, Error>> given_up_ TRESTLE_GUARDED_BY(wake_mutex_);
  std::atomic<bool> stopped_{false};
  std::atomic<bool> failed_{false};
  std::list<Client> clients_;
  Admission admission_;
  DescriptorRoom room_;
  std::string accept_failure_;  // the last one; "": none
  RendezvousBoard board_;
  OncePerKey refused_once_;
  size_t refused_ = 0;
  std::string last_refusal_;
  size_t secret_refusals_ = 0;
  std::vector<std::string> secret_refused_;  // hosts and claimed ranks, each once
  int64_t ranks_deadline_ns_ = kNever;       // when the first waiting rank gives up
  int64_t patience_ns_ = 0;                  // the longest time to its deadline that any rank had when it came
  int64_t failed_at_ns_ = kNever;
  std::vector<int32_t> answered_;  // answered or gone: these ranks do not wait any more
};

}  // namespace trestle
