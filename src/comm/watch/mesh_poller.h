// MeshPoller: lets the watch thread poll the control mesh of one communicator, and passes on what it hears to the
// communicator's CallWatch. After a deadline has passed it asks other ranks which rank is to blame, and answers their
// questions.
//
// Shared by the communicator and the process's list of pollables. The communicator ends it (leave) before it is
// destroyed.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/rank_names.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/inquiry.h"
#include "engine/run/progress.h"

namespace trestle {

class CallWatch;

class MeshPoller : public Pollable, public ControlListener {
 public:
  MeshPoller(std::unique_ptr<ControlMesh> mesh, int32_t rank, const RankNames& names)
      : rank_(rank),
        ranks_(static_cast<int32_t>(names.size())),
        mesh_(std::move(mesh)),
        operations_(rank, names),
        calls_(rank, names, kFirstIdOfCalls) {}

  ControlMesh& mesh() { return *mesh_; }
  // From now on it may be polled. The watch must live until leave().
  void start(CallWatch& watch);
  // No callback runs afterwards.
  void leave(int linger_ms, bool by_exit);
  // Starts an inquiry; its result goes to CallWatch::end_inquiry(). False: there is no rank to ask, or an inquiry about
  // another call runs: try again. (The latter never happens for operations past their deadlines, of which an engine
  // reports one at a time.)
  bool inquire(const Overdue& overdue);

  int event_fd() const override { return mesh_->event_fd(); }
  void poll(int64_t now_ns) override;
  int64_t next_due_ns() const override;
  void on_error(const Error& error, int32_t origin_rank) override;
  void on_abort(int32_t rank) override;
  void on_bye(int32_t rank, bool by_exit) override;
  void on_letter(int32_t from, const std::string& text) override;

 private:
  static constexpr uint32_t kFirstIdOfCalls = 1u << 31;
  void go_on(Inquiry& inquiry, int32_t from, const Answer& answer);
  std::optional<Answer> answer_to(const Question& question);
  void take_verdict(Inquiry& inquiry, int64_t now_ns);

  const int32_t rank_;
  const int32_t ranks_;
  std::unique_ptr<ControlMesh> mesh_;
  // Never taken under an engine's progress lock: a holder of this mutex waits for that lock, or borrows it.
  Mutex mutex_;
  CallWatch* watch_ TRESTLE_GUARDED_BY(mutex_) = nullptr;  // nullptr: not started, or this rank has left
  Inquiry operations_;
  Inquiry calls_;  // about calls that wait over this mesh
};

}  // namespace trestle
