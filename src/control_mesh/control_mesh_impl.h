// ControlMesh::Impl: the state of a control mesh. Private to control_mesh*.cpp. Every function except the constructor
// needs the mutex, unless its comment says otherwise.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "control_mesh/control_link.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/dissemination.h"
#include "control_mesh/link_moves.h"

namespace trestle {

class ControlMesh::Impl : private LinkMoves::Links {
 public:
  Impl(const ControlSettings& settings, bool over_streams);
  Status add_links(std::vector<ControlConnection> out, std::vector<ControlConnection> in) TRESTLE_REQUIRES(mutex_);

  Status add_streams(std::unique_ptr<HostStreams> streams, const std::vector<std::string>& addresses,
                     const std::vector<std::string>& names) TRESTLE_REQUIRES(mutex_);

  // The first failure that this rank learns of. Later ones are ignored.
  struct Failure {
    bool abort = false;
    int32_t origin = 0;
    Error error;
  };
  struct Event {
    enum class Kind : uint8_t { kFailure, kBye, kLetter } kind;
    int32_t rank = 0;       // the sender of the goodbye or letter
    std::string text = {};  // of a letter
    bool by_exit = false;   // of a goodbye
  };
  using GatherKey = std::pair<bool, uint64_t>;  // barrier?, seq

  void begin_beats() TRESTLE_REQUIRES(mutex_);
  Status use_rails(std::unique_ptr<ControlRails> rails, int64_t silence_ns) TRESTLE_REQUIRES(mutex_);
  void poll_links(int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void beat(int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  int64_t next_due_ns() const TRESTLE_REQUIRES(mutex_);

  void report(Failure failure, bool own_call) TRESTLE_REQUIRES(mutex_);
  void start_gather(const GatherKey& key, std::string mine) TRESTLE_REQUIRES(mutex_);
  Result<Dissemination*> gather_if_done(const GatherKey& key) TRESTLE_REQUIRES(mutex_);
  int32_t awaited(const GatherKey& key) const TRESTLE_REQUIRES(mutex_);
  std::optional<bool> host_answers(int32_t rank, int64_t within_ns) const TRESTLE_REQUIRES(mutex_);
  void say_bye(bool by_exit) TRESTLE_REQUIRES(mutex_);
  void send_letter(int32_t to, const std::string& text) TRESTLE_REQUIRES(mutex_);
  bool drained() TRESTLE_REQUIRES(mutex_);
  void end_links() TRESTLE_REQUIRES(mutex_);
  std::string name(int32_t rank) const TRESTLE_REQUIRES(mutex_);

  const ControlSettings settings_;
  Clock& clock_;
  mutable Mutex mutex_;
  const UniqueFd epoll_;                                             // invalid over streams
  std::unique_ptr<HostStreams> streams_ TRESTLE_GUARDED_BY(mutex_);  // nullptr: each link has a connection
  ControlListener* listener_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
  std::optional<Failure> failure_ TRESTLE_GUARDED_BY(mutex_);
  std::deque<Event> events_ TRESTLE_GUARDED_BY(mutex_);  // for the listener
  std::map<GatherKey, Dissemination> gathers_ TRESTLE_GUARDED_BY(mutex_);
  RankNames names_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<ControlLink> links_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<size_t> in_ TRESTLE_GUARDED_BY(mutex_);  // in_[k]: index into links_
  bool closed_ TRESTLE_GUARDED_BY(mutex_) = false;
  bool met_ TRESTLE_GUARDED_BY(mutex_) = false;                  // every link has had a connection
  std::unique_ptr<LinkMoves> moves_ TRESTLE_GUARDED_BY(mutex_);  // nullptr: connections stay where they are

 private:
  Status add_link(ControlConnection connection, std::vector<size_t>& side) TRESTLE_REQUIRES(mutex_);
  void poll_streams(int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void watch_writable(size_t link) TRESTLE_REQUIRES(mutex_);
  void send(size_t link, const ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void send_all(const ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void read_link(size_t link, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void take_frame(size_t link, ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void take_gather(size_t link, ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void take_failure(ControlFrame& frame, bool abort) TRESTLE_REQUIRES(mutex_);
  void take_bye(size_t link, ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void take_letter(size_t link, ControlFrame& frame) TRESTLE_REQUIRES(mutex_);
  void pass_on(int32_t to, const ControlFrame& letter) TRESTLE_REQUIRES(mutex_);
  void link_ended(size_t link, const std::string& reason, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void link_lost(size_t link, const std::string& reason, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void end_for(size_t link, const std::string& what) TRESTLE_REQUIRES(mutex_);
  void end_link(size_t link) TRESTLE_REQUIRES(mutex_);
  void look_for_silence(size_t link, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void tell_silence(ControlLink& link, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  bool link_drained(size_t link, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void advance(const GatherKey& key, Dissemination& gather) TRESTLE_REQUIRES(mutex_);
  void malformed(int32_t peer) TRESTLE_REQUIRES(mutex_);
  bool beats() const TRESTLE_REQUIRES(mutex_);
  bool answers(const ControlLink& link, int64_t within_ns) const;
  int64_t silence_ns(size_t link) const TRESTLE_REQUIRES(mutex_);
  int64_t shortest_silence_ns() const TRESTLE_REQUIRES(mutex_);

  // control_mesh_moves.cpp
  bool can_move(size_t link) const TRESTLE_REQUIRES(mutex_);
  void meet() TRESTLE_REQUIRES(mutex_);
  void move(size_t link, const std::string& why, int64_t heard_ns, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  void tend_moves(bool wanted, int64_t now_ns) TRESTLE_REQUIRES(mutex_);
  uint64_t part(size_t link) override TRESTLE_REQUIRES(mutex_);
  bool resume(size_t link, UniqueFd socket, uint64_t came, const LinkMoves::Move& move) override
      TRESTLE_REQUIRES(mutex_);
  void give_up(size_t link, const std::string& what, Code code) override TRESTLE_REQUIRES(mutex_);

  std::vector<size_t> out_ TRESTLE_GUARDED_BY(mutex_);  // out_[k]: index into links_
  std::set<int32_t> left_ TRESTLE_GUARDED_BY(mutex_);   // said goodbye
  int64_t next_beat_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t last_poll_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t rail_silence_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;
  int64_t closing_ns_ TRESTLE_GUARDED_BY(mutex_) = 0;  // when drained() was called first
};

}  // namespace trestle
