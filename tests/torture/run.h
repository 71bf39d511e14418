// A running job: its processes as the driver sees them.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "torture/board.h"
#include "torture/run_job.h"

namespace torture {

struct Child {
  pid_t pid = -1;
  int pidfd = -1;
  int output = -1;
  bool ended = false;
  bool stopped = false;
  int status = 0;
};

class Run {
 public:
  Run(JobPlan plan, const Watch& watch) : plan_(std::move(plan)), watch_(watch) {}
  JobResult run();

 private:
  void choose_rendezvous();
  void begin();
  void watch();
  bool look();
  void on_struck();
  void tell_no_id();
  bool others_are_done() const;
  bool is_victim(size_t process) const { return static_cast<int>(process) == plan_.process_of(plan_.fault.victim); }
  uint64_t progress() const;
  void hung();
  void end();
  void judge_processes();
  void look_for_leaks();
  void tell();

  JobPlan plan_;
  const Watch& watch_;
  Board* board_ = nullptr;
  std::vector<Child> children_;
  pid_t flooder_ = -1;
  bool resumed_ = false;
  bool killed_by_driver_ = false;
  int looks_ = 0;
  std::string store_;
  std::set<std::string> shm_before_;
  JobResult result_;
};

}  // namespace torture
