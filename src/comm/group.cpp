#include "comm/group.h"

#include <algorithm>
#include <thread>

namespace trestle {

Group& Group::of_this_thread() {
  thread_local Group group;
  return group;
}

void Group::add(std::shared_ptr<Communicator> communicator, const Call& call, std::shared_ptr<Stream> stream) {
  entries_.push_back({std::move(communicator), call, std::move(stream), nullptr});
}

void Group::remember(const Error& error) {
  if (!error_) error_ = error;
}

Status Group::end() {
  if (depth_ == 0) return Error{Code::kInvalidUsage, "GroupEnd without GroupStart"};
  if (--depth_ != 0) return {};
  Status status;
  if (error_) {
    status = *error_;
  } else {
    status = create_all();
    if (status.ok()) status = enqueue_all();
  }
  entries_.clear();
  creations_.clear();
  error_.reset();
  return status;
}

// Each creation waits for the others: one thread each.
Status Group::create_all() {
  std::vector<Status> results(creations_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < creations_.size(); ++i) {
    threads.emplace_back([this, &results, i] { results[i] = creations_[i](); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Status& result : results) TRY(std::move(result));
  return {};
}

Status Group::enqueue_all() {
  for (Entry& entry : entries_) {
    TRY(entry.communicator->check_open());
    entry.prepared = TRY(entry.communicator->prepare_call(entry.call));
  }
  // From here on nothing fails. One item per stream, in the order of the calls.
  std::vector<std::pair<std::shared_ptr<Stream>, std::vector<Operation*>>> items;
  for (Entry& entry : entries_) {
    auto item = std::find_if(items.begin(), items.end(), [&](const auto& i) { return i.first == entry.stream; });
    if (item == items.end()) item = items.insert(items.end(), {entry.stream, {}});
    item->second.push_back(entry.communicator->commit(entry.call, entry.prepared));
  }
  for (auto& [stream, operations] : items) stream->enqueue(std::move(operations));
  for (Entry& entry : entries_) entry.communicator->committed();
  return {};
}

}  // namespace trestle
