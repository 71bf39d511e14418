// ControlMesh::Impl: state of a control mesh. Private to control_mesh*.cpp; every function but the constructor needs
// the mutex held, if not said.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap/control_link.h"
#include "comm/bootstrap/control_mesh.h"
#include "comm/bootstrap/dissemination.h"

namespace trestle {

class ControlMesh::Impl {
 public:
  explicit Impl(const ControlSettings& settings);
  Status add_links(std::vector<ControlConnection> out, std::vector<ControlConnection> in);

  // The first failure that this rank knows of; there is no second.
  struct Story {
    bool abort = false;
    int32_t origin = 0;
    Error error;
  };
  struct Event {
    enum class Kind : uint8_t { kStory, kBye } kind;
    int32_t rank;  // of a goodbye
  };
  using GatherKey = std::pair<bool, uint64_t>;  // barrier?, seq

  void begin(ControlListener* listener);
  void poll_links(int64_t now_ns);
  void beat(int64_t now_ns);
  int64_t next_due_ns() const;

  void tell(Story story, bool own_call);
  void start_gather(const GatherKey& key, std::string mine);
  Result<Dissemination*> gather_if_done(const GatherKey& key);
  void say_bye();
  bool drained();
  void end_links();
  std::string name(int32_t rank) const;

  const ControlSettings settings_;
  Clock& clock_;
  mutable std::mutex mutex_;
  UniqueFd epoll_;
  ControlListener* listener_ = nullptr;
  std::optional<Story> story_;
  std::deque<Event> events_;  // for the listener
  std::map<GatherKey, Dissemination> gathers_;
  std::vector<std::string> names_;
  bool closed_ = false;

 private:
  Status add_link(ControlConnection connection, std::vector<size_t>& side);
  void watch_writable(size_t link);
  void send(size_t link, const ControlFrame& frame);
  void send_all(const ControlFrame& frame);
  void read_link(size_t link, int64_t now_ns);
  void take_frame(size_t link, ControlFrame& frame);
  void take_gather(size_t link, ControlFrame& frame);
  void take_story(ControlFrame& frame, bool abort);
  void take_bye(ControlFrame& frame);
  void link_ended(size_t link, const std::string& reason);
  void look_for_silence(ControlLink& link, int64_t now_ns);
  void advance(const GatherKey& key, Dissemination& gather);
  void nonsense(int32_t peer);
  int64_t beat_interval_ns() const { return settings_.heartbeat_ns / 3; }

  std::vector<ControlLink> links_;
  std::vector<size_t> out_;  // out_[k], in_[k]: index into links_
  std::vector<size_t> in_;
  std::set<int32_t> left_;  // said goodbye
  int64_t next_beat_ns_ = 0;
  int64_t last_poll_ns_ = 0;
};

}  // namespace trestle
