// MeshPoller: the control mesh of one communicator as the helper thread sees it, and what it hears passed on to the
// communicator.
//
// Shared by the communicator and the process's list of pollables; the communicator ends it (leave) before it dies.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "comm/bootstrap/control_mesh.h"
#include "engine/progress.h"

namespace trestle {

class Communicator;

class MeshPoller : public Pollable, public ControlListener {
 public:
  MeshPoller(std::unique_ptr<ControlMesh> mesh, Communicator* communicator)
      : mesh_(std::move(mesh)), communicator_(communicator) {}

  ControlMesh& mesh() { return *mesh_; }
  void start() { mesh_->start(this); }
  // Nobody is called back afterwards.
  void leave(int linger_ms);

  int event_fd() const override { return mesh_->event_fd(); }
  void poll(int64_t now_ns) override { mesh_->poll(now_ns); }
  int64_t next_due_ns() const override { return mesh_->next_due_ns(); }
  void on_error(const Error& error, int32_t origin_rank) override;
  void on_abort(int32_t rank) override;
  void on_bye(int32_t rank) override;

 private:
  std::unique_ptr<ControlMesh> mesh_;
  Mutex mutex_;
  Communicator* communicator_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
