// Group: collects the calls of one thread between GroupStart and GroupEnd, and makes them together at the end.
//
// One per thread, used by that thread only. An error of a call inside a group is remembered, and GroupEnd then refuses
// the whole group; only communicators given to Destroy are destroyed in any case. Whatever happens, the group is empty
// and usable again when GroupEnd returns.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/communicator/communicator.h"

namespace trestle {

// A call that waits for the end of its group.
struct GroupedCall {
  std::shared_ptr<Communicator> communicator;
  Call call;
  bool empty = false;  // no data to move: only `settled` is called
  std::shared_ptr<Stream> stream;
  // A record that the stream waits for first; or nullptr.
  std::shared_ptr<Recording> after;
  // Called once on the thread that ends the group, holding no lock: true when the call is on its stream, false when it
  // never will be. May be empty.
  std::function<void(bool enqueued)> settled;
  std::optional<uint64_t> number = {};  // if it had to be taken before the call is enqueued
};

// A communicator to be created together with the others of the group.
struct GroupedCreation {
  std::function<Result<std::shared_ptr<Communicator>>()> create;
  std::function<void(std::shared_ptr<Communicator>)> publish;  // called when all of the group were created
};

// An action that returns at once and goes on in the background. may_begin: why it cannot begin, if so; asked before
// anything of the group is done; may be empty. begin: kInProgress if it goes on in the background, kSuccess if it must
// be done by waiting after all, else why it fails. go: nothing of the group stands in its way any more. undo: the group
// fails, before or after go.
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
  ~Group();  // its thread ends: logs what is lost if the group was not ended
  Group(Group&&) = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool open() const { return depth_ != 0; }
  void start() { ++depth_; }
  // Error: the communicator is finalized in the same group.
  Status add(GroupedCall call);
  void add_creation(GroupedCreation creation) { work_.creations.push_back(std::move(creation)); }
  void add_beginning(GroupedBeginning beginning) { work_.beginnings.push_back(std::move(beginning)); }
  // `take` takes the numbers of a split of the communicator. It is called for all splits before any begins, each as if
  // it and the calls before it had been made without a group. It is not called if the group is refused: the other ranks
  // count only splits that take place.
  void add_numbering(std::shared_ptr<Communicator> communicator, std::function<void()> take) {
    work_.numberings.push_back({std::move(communicator), work_.calls.size(), std::move(take)});
  }
  // With `begin`: as in GroupedBeginning. Error: the communicator is finalized in the group already.
  Status add_finalization(std::shared_ptr<Communicator> communicator, std::function<Status()> begin = {});
  void add_destruction(std::shared_ptr<Communicator> communicator) {
    work_.destructions.push_back(std::move(communicator));
  }
  // How many calls of the group wait for its end, on one communicator or stream.
  size_t calls_on(const Communicator& communicator) const;
  size_t calls_on(const Stream& stream) const;
  // An event was recorded behind such calls before they are enqueued. A wait for the event must include them.
  void add_record(std::shared_ptr<Recording> recording) { work_.records.push_back(std::move(recording)); }
  bool has_record(const Recording& recording) const;
  // Only if a group is open. spoil() keeps at least the code of an error whose sentence found no memory.
  void remember(const Error& error);
  void spoil(Code code) noexcept {
    if (open() && !work_.error && work_.spoilt == Code::kSuccess) work_.spoilt = code;
  }
  // Ends the innermost level. kInProgress: no error, and something goes on in the background. The outermost level
  // creates communicators, enqueues, finalizes and destroys, in this order.
  Status end();

 private:
  struct Numbering {
    std::shared_ptr<Communicator> communicator;
    size_t calls_before;  // number of calls of the group before the split
    std::function<void()> take;
  };
  struct Work {
    std::vector<GroupedCreation> creations;
    std::vector<GroupedBeginning> beginnings;  // of creations
    std::vector<Numbering> numberings;
    std::vector<GroupedCall> calls;
    std::vector<GroupedCall> captured;  // taken out of these: they are on streams that are captured into graphs
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
    ~Work();  // settles the calls that were not enqueued
    Status run();
    // For want of memory: other ranks count on the group's calls, splits and finalizations.
    void fail_all() noexcept;
    Status ask_all() const;
    // Fills `captured`. Error: what else the group does cannot be captured.
    Status take_captured();
    Status capture_all() const;
    Status begin_all();
    void undo_beginnings(size_t count);
    void number_all();
    Status create_all();
    Status finalize_all();
    using PreparedCalls = std::vector<PreparedCall>;  // parallel to calls; nothing is prepared of an empty call
    Result<PreparedCalls> prepare_all() const;
    // What goes on one stream.
    struct Item {
      explicit Item(std::shared_ptr<Stream> on) : stream(std::move(on)) {}
      Item(Item&&) = default;
      Item& operator=(Item&&) = delete;
      ~Item();  // retires what is not on the stream
      std::shared_ptr<Stream> stream;
      std::vector<Operation*> operations;
      StreamEntry entry;
    };
    using Items = std::vector<Item>;
    static Item& item_of(const std::shared_ptr<Stream>& stream, Items& items);
    Status enter_all(Items& items) const;
    Status enqueue_all(const PreparedCalls& prepared);
    void commit_all(const PreparedCalls& prepared, Items& items) const;
    bool finalizes(const std::shared_ptr<Communicator>& communicator) const;
  };

  class OfThread;

  int depth_ = 0;
  int left_open_ = 0;  // levels that were open when the process was forked
  Work work_;
};

}  // namespace trestle
