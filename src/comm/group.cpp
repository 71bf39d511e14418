#include "comm/group.h"

#include <algorithm>
#include <utility>

#include "comm/together.h"

namespace trestle {

Group& Group::of_this_thread() {
  thread_local Group group;
  return group;
}

Status Group::add(GroupedCall call) {
  if (work_.finalizes(call.communicator)) {
    return Error{Code::kInvalidUsage, "the communicator is finalized in this group: no call may follow"};
  }
  work_.calls.push_back(std::move(call));
  return {};
}

Status Group::add_finalization(std::shared_ptr<Communicator> communicator, std::function<Status()> begin) {
  if (work_.finalizes(communicator)) {
    return Error{Code::kInvalidUsage, "the communicator is finalized in this group already"};
  }
  work_.finalizations.push_back(std::move(communicator));
  work_.finalization_beginnings.push_back(std::move(begin));
  return {};
}

void Group::remember(const Error& error) {
  if (open() && !work_.error) work_.error = error;
}

Status Group::end() {
  if (depth_ == 0) return Error{Code::kInvalidUsage, "GroupEnd without GroupStart"};
  if (--depth_ != 0) return {};
  Work work = std::exchange(work_, Work());
  if (!work.error && work.spoilt != Code::kSuccess) work.error = Error{work.spoilt, "a call of the group failed"};
  Status status = work.error ? Status(*work.error) : work.run();
  for (const auto& communicator : work.destructions) communicator->destroy(kGoodbyeMs);
  return status;
}

Group::Work::~Work() {
  for (GroupedCall& call : calls) {
    if (call.settled) call.settled(false);
  }
}

bool Group::Work::finalizes(const std::shared_ptr<Communicator>& communicator) const {
  return std::find(finalizations.begin(), finalizations.end(), communicator) != finalizations.end();
}

// What may be refused comes first: a refused group has made nothing.
Status Group::Work::run() {
  TRY(ask_all());
  const auto prepared = TRY(prepare_all());
  for (const auto& numbering : numberings) numbering();
  TRY(begin_all());
  TRY(create_all());
  enqueue_all(prepared);
  TRY(finalize_all());
  if (goes_on) return Error{Code::kInProgress, ""};
  return {};
}

Status Group::Work::ask_all() const {
  for (const GroupedBeginning& beginning : beginnings) {
    if (beginning.may_begin) TRY(beginning.may_begin());
  }
  return {};
}

Status Group::Work::begin_all() {
  for (size_t i = 0; i < beginnings.size(); ++i) {
    const Status begun = beginnings[i].begin();
    goes_on = true;
    if (begun.ok() || begun.error().code == Code::kInProgress) continue;
    while (i-- > 0) beginnings[i].undo();
    return begun;
  }
  return {};
}

Status Group::Work::finalize_all() {
  std::vector<std::shared_ptr<Communicator>> waited_for;
  for (size_t i = 0; i < finalizations.size(); ++i) {
    const Status begun = finalization_beginnings[i] ? finalization_beginnings[i]() : Status();
    if (begun.ok()) {
      waited_for.push_back(finalizations[i]);
    } else if (begun.error().code == Code::kInProgress) {
      goes_on = true;
    } else {
      return begun;
    }
  }
  return Communicator::finalize_together(waited_for);
}

// Each creation waits for the others. All or none: those that were made are no use to a caller that has to give up.
Status Group::Work::create_all() {
  std::vector<std::shared_ptr<Communicator>> made(creations.size());
  const Status status = run_together(creations.size(), [&](size_t i) -> Status {
    made[i] = TRY(creations[i].create());
    return {};
  });
  for (size_t i = 0; i < made.size(); ++i) {
    if (status.ok()) {
      creations[i].publish(std::move(made[i]));
    } else if (made[i] != nullptr) {
      made[i]->abort();
      made[i]->destroy(0);
    }
  }
  if (!status.ok()) {
    for (const GroupedBeginning& beginning : beginnings) beginning.undo();
  }
  return status;
}

Result<Group::Work::PreparedCalls> Group::Work::prepare_all() const {
  PreparedCalls prepared(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    TRY(calls[i].communicator->check_open());
    if (!calls[i].empty) prepared[i] = TRY(calls[i].communicator->prepare_call(calls[i].call));
  }
  return prepared;
}

// Nothing fails here. One item per stream, in the order of the calls.
void Group::Work::enqueue_all(const PreparedCalls& prepared) {
  std::vector<std::pair<std::shared_ptr<Stream>, std::vector<Operation*>>> items;
  for (size_t i = 0; i < calls.size(); ++i) {
    const GroupedCall& call = calls[i];
    if (call.after) call.stream->wait_for(call.after);
    if (call.empty) call.communicator->skip(call.call, *call.stream);
    if (call.empty) continue;
    auto item = std::find_if(items.begin(), items.end(), [&](const auto& it) { return it.first == call.stream; });
    if (item == items.end()) item = items.insert(items.end(), {call.stream, {}});
    item->second.push_back(call.communicator->commit(call.call, prepared[i], *call.stream));
  }
  for (auto& [stream, operations] : items) stream->enqueue(std::move(operations));
  for (GroupedCall& call : calls) {
    if (auto settled = std::exchange(call.settled, nullptr)) settled(true);
  }
  for (const GroupedCall& call : calls) call.communicator->committed();
}

}  // namespace trestle
