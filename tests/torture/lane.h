// One thread of one rank: makes its communicators, runs its program and checks all promises. Uses only the public
// header. Any error ends the process with a text on the board.
#pragma once

#include <trestle/trestle.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "torture/board.h"
#include "torture/execution.h"
#include "torture/job.h"
#include "torture/program.h"

namespace torture {

class Lane {
 public:
  // world: the communicator if it already exists, else nullptr.
  Lane(const JobPlan& plan, int rank, int thread, Board& board, trestleComm_t world);
  ~Lane();
  void run();

 private:
  struct Pending {
    std::unique_ptr<Execution> execution;
    int comm;
    int stream;     // 0: the communicator's own
    uint64_t turn;  // counts all calls of this thread
  };
  // The work that an event stands for: the calls of a stream up to a turn.
  struct Mark {
    int stream = 0;
    uint64_t turn = 0;
  };
  // The work that the calls of a stream after turn `from` wait for.
  struct Awaited {
    Mark mark;
    uint64_t from;
  };
  enum class Way { kDestroy, kAbort };

  // Whether to continue. False: the communicator failed, which is allowed in a job with a fault. In other jobs it ends
  // the process.
  bool good(trestleResult_t result, const char* what);
  void require(trestleResult_t result, const char* what);
  [[noreturn]] void wrong(const std::string& what);
  void note_failures(trestleResult_t result, const char* what);
  void record_failure(int comm, trestleResult_t result, const std::string& sentence);
  bool ask_failed(int comm);
  void expect_sticky(int comm);

  void join();
  void await_strangers();
  trestleConfig_t config();
  bool poll_until_made(trestleComm_t comm, const char* what);
  void work();
  bool strike(int index);
  bool perform(const Action& action);
  void leave(Way way);

  // lane_calls.cpp
  int stream_of(const Call& call) const;
  trestleStream_t handle_of(int stream) const {
    return stream == 0 ? nullptr : streams_[static_cast<size_t>(stream - 1)];
  }
  bool is_mine(const Call& call) const;
  std::unique_ptr<Execution> prepare(const Call& call, const Execution* first = nullptr);
  bool enqueue(const Call& call, const Execution* first = nullptr, bool keep_operator = false);
  void remember(std::unique_ptr<Execution> execution, int comm, int stream);
  void verify(Execution& execution);
  bool do_call(const Call& call);
  bool do_group(const Action& action);
  bool do_chain(const Action& action);
  bool do_persistent(const Action& action);
  bool do_decomposed(const Action& action);
  bool await(trestleRequest_t request, bool by_test);
  bool halves(const Action& action, Execution& execution);

  // lane_order.cpp
  bool make_room(const std::vector<Call>& calls);
  bool settle(const std::function<bool(const Pending&)>& is_done);
  bool settle_stream(int stream, uint64_t turn);
  bool settle_comm(int comm);
  bool settle_all();
  bool do_record(const Action& action);
  bool do_sync_event(const Action& action);
  bool do_sync_stream(const Action& action);
  bool do_barrier(const Action& action);
  bool do_refused(const Action& action);
  bool do_questions(const Action& action);

  // lane_comms.cpp
  bool do_split(const Action& action);
  bool finish_split(const Action& action, int made, trestleComm_t comm, trestleResult_t result);
  bool do_drop(const Action& action);
  bool finalize(trestleComm_t comm);
  bool end();

  const JobPlan& plan_;
  const Program program_;
  const int rank_;
  const int thread_;
  Board& board_;
  LaneBoard& lane_;
  std::vector<trestleComm_t> comms_;
  std::vector<bool> failed_;
  std::vector<trestleStream_t> streams_;
  std::vector<trestleEvent_t> events_;
  std::vector<Mark> marks_;                    // by event, as events_
  std::vector<std::vector<Awaited>> awaited_;  // by stream
  Arenas arenas_;
  std::vector<void*> registered_;
  std::vector<Pending> pending_;
  int index_ = -1;  // the present action
  uint64_t turn_ = 0;
  bool over_ = false;  // the world's communicator has failed
};

}  // namespace torture
