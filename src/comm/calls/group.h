// Group: what one thread asks for between GroupStart and GroupEnd, done together at the end.
//
// One per thread, used by that thread only. An error of a call inside a group is remembered and makes the end refuse
// the whole; only communicators that were given up for destruction are destroyed all the same. Whatever happens, the
// group is empty and usable again when its end returns.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator/communicator.h"

namespace trestle {

// A call that waits for the end of its group.
struct GroupedCall {
  std::shared_ptr<Communicator> communicator;
  Call call;
  bool empty = false;  // nothing to move: it only settles
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Recording> after;  // that the stream waits for first; or nullptr
  // Called once on the thread that ends the group, holding no lock: true when the call is on its stream, false when it
  // never will be. May be empty.
  std::function<void(bool enqueued)> settled;
  std::optional<uint64_t> number = {};  // if it had to be taken before the call is enqueued
};

// A communicator to be made together with the others of the group.
struct GroupedCreation {
  std::function<Result<std::shared_ptr<Communicator>>()> create;
  std::function<void(std::shared_ptr<Communicator>)> publish;  // when all of the group were made
};

// What returns at once and goes on by itself. begin: kSuccess where it has to be done by waiting after all, kInProgress
// where it goes on, else why not; go: nothing of the group stands in the way any more; undo: because the group fails,
// before or after that. may_begin: why it cannot, if so, asked before anything of the group is done; may be empty.
struct GroupedBeginning {
  std::function<Status()> may_begin;
  std::function<Status()> begin;
  std::function<void()> go;
  std::function<void()> undo;
};

class Group {
 public:
  static Group& of_this_thread();
  Group() = default;
  ~Group();  // its thread ends: says what is lost where the group was not ended
  Group(Group&&) = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool open() const { return depth_ != 0; }
  void start() { ++depth_; }
  // Errors: the communicator is finalized in the same group.
  Status add(GroupedCall call);
  void add_creation(GroupedCreation creation) { work_.creations.push_back(std::move(creation)); }
  void add_beginning(GroupedBeginning beginning) { work_.beginnings.push_back(std::move(beginning)); }
  // What takes the numbers of a split of the communicator. Called for all before any begins, each as if it and the
  // calls before it had been made without a group; and not at all if the group is refused: the other ranks count what
  // takes place only.
  void add_numbering(std::shared_ptr<Communicator> communicator, std::function<void()> take) {
    work_.numberings.push_back({std::move(communicator), work_.calls.size(), std::move(take)});
  }
  // With `begin`: as a GroupedBeginning. Errors: it is finalized in the group already.
  Status add_finalization(std::shared_ptr<Communicator> communicator, std::function<Status()> begin = {});
  void add_destruction(std::shared_ptr<Communicator> communicator) {
    work_.destructions.push_back(std::move(communicator));
  }
  // How many calls of the group wait for its end, on one communicator or stream.
  size_t calls_on(const Communicator& communicator) const;
  size_t calls_on(const Stream& stream) const;
  // An event was recorded behind such calls, but before they are enqueued: whoever waits for it means them.
  void add_record(std::shared_ptr<Recording> recording) { work_.records.push_back(std::move(recording)); }
  bool has_record(const Recording& recording) const;
  // If a group is open. An error that there was no memory to remember is at least known by its code.
  void remember(const Error& error);
  void spoil(Code code) noexcept {
    if (open() && !work_.error && work_.spoilt == Code::kSuccess) work_.spoilt = code;
  }
  // Ends the innermost level; kInProgress: all is well and something goes on by itself. The outermost makes
  // communicators, enqueues, finalizes and destroys, in this order.
  Status end();

 private:
  struct Numbering {
    std::shared_ptr<Communicator> communicator;
    size_t calls_before;  // of the group
    std::function<void()> take;
  };
  struct Work {
    std::vector<GroupedCreation> creations;
    std::vector<GroupedBeginning> beginnings;  // of creations
    std::vector<Numbering> numberings;
    std::vector<GroupedCall> calls;
    std::vector<std::shared_ptr<Recording>> records;
    std::vector<std::shared_ptr<Communicator>> finalizations;
    std::vector<std::function<Status()>> finalization_beginnings;  // parallel; may be empty
    bool goes_on = false;
    std::vector<std::shared_ptr<Communicator>> destructions;
    std::optional<Error> error;
    Code spoilt = Code::kSuccess;

    Work() = default;
    Work(Work&&) = default;
    Work& operator=(Work&&) = default;
    ~Work();  // settles what was not enqueued
    Status run();
    Status ask_all() const;
    Status begin_all();
    void undo_beginnings(size_t count);
    void number_all();
    Status create_all();
    Status finalize_all();
    using PreparedCalls = std::vector<std::shared_ptr<const Prepared>>;  // parallel to calls; nullptr: an empty one
    Result<PreparedCalls> prepare_all() const;
    void enqueue_all(const PreparedCalls& prepared);
    bool finalizes(const std::shared_ptr<Communicator>& communicator) const;
  };

  class OfThread;

  int depth_ = 0;
  int left_open_ = 0;  // levels that were open when the process forked this one
  Work work_;
};

}  // namespace trestle
