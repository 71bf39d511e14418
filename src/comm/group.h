// Group: the calls of one thread between GroupStart and GroupEnd, enqueued together at the end.
//
// One per thread, used by that thread only. An error of a call inside a group is remembered and makes the end refuse
// the whole.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"

namespace trestle {

class Group {
 public:
  static Group& of_this_thread();

  bool open() const { return depth_ != 0; }
  void start() { ++depth_; }
  void add(std::shared_ptr<Communicator> communicator, const Call& call, std::shared_ptr<Stream> stream);
  // A communicator to be made at the end, together with the others of the group.
  void add_creation(std::function<Status()> create) { creations_.push_back(std::move(create)); }
  void remember(const Error& error);
  // Ends the innermost level; the outermost enqueues.
  Status end();

 private:
  struct Entry {
    std::shared_ptr<Communicator> communicator;
    Call call;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<const Prepared> prepared;
  };
  Status create_all();
  Status enqueue_all();

  int depth_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::function<Status()>> creations_;
  std::optional<Error> error_;
};

}  // namespace trestle
