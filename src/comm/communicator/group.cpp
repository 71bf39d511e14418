#include "comm/communicator/group.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "base/fork.h"
#include "base/log.h"
#include "base/scope_exit.h"
#include "comm/communicator/captured_calls.h"
#include "comm/setup/together.h"

namespace trestle {

// A forked child begins outside of any group. The calls that its parent's thread has collected are left untouched,
// because their communicators belong to the parent.
class Group::OfThread {
 public:
  OfThread() : group_() {}
  ~OfThread() {
    if (is_own()) group_.~Group();
  }
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;

  Group& get() {
    if (!is_own()) [[unlikely]]
      begin_anew();
    return group_;
  }

 private:
  struct Left {
    Group group;
    Left* older;
  };
  bool is_own() const { return generation_ == process_generation(); }
  void begin_anew() {
    const int open = group_.depth_ + group_.left_open_;
    left_ = new (std::nothrow) Left{std::move(group_), left_};
    ::new (&group_) Group();
    group_.left_open_ = open;
    generation_ = process_generation();
  }

  union {  // so that only ~OfThread() destroys it
    Group group_;
  };
  Left* left_ = nullptr;  // never destroyed
  uint32_t generation_ = process_generation();
};

Group& Group::of_this_thread() {
  thread_local OfThread group;
  return group.get();
}

Group::~Group() {
  if (!open()) return;
  LOG(kWarn, kColl,
      "a thread has ended inside an open group (GroupStart without GroupEnd): %zu calls were not made, %zu "
      "communicators not made, %zu not finalized, %zu not destroyed in order",
      work_.calls.size(), work_.creations.size() + work_.beginnings.size(), work_.finalizations.size(),
      work_.destructions.size());
}

size_t Group::calls_on(const Communicator& communicator) const {
  return static_cast<size_t>(std::count_if(work_.calls.begin(), work_.calls.end(), [&](const GroupedCall& call) {
    return call.communicator.get() == &communicator;
  }));
}

size_t Group::calls_on(const Stream& stream) const {
  return static_cast<size_t>(std::count_if(work_.calls.begin(), work_.calls.end(),
                                           [&](const GroupedCall& call) { return call.stream.get() == &stream; }));
}

bool Group::has_record(const Recording& recording) const {
  return std::any_of(work_.records.begin(), work_.records.end(),
                     [&](const auto& record) { return record.get() == &recording; });
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
  if (depth_ == 0 && left_open_ > 0) {
    --left_open_;
    return Error{Code::kInvalidUsage,
                 "GroupEnd: the group was started before fork(), in the process that forked this one: a child begins "
                 "outside of any group"};
  }
  if (depth_ == 0) return Error{Code::kInvalidUsage, "GroupEnd without GroupStart"};
  if (--depth_ != 0) return {};
  Work work = std::exchange(work_, Work());
  if (!work.error && work.spoilt != Code::kSuccess) work.error = Error{work.spoilt, "a call of the group failed"};
  const ScopeExit last([&work] {
    for (const auto& communicator : work.destructions) communicator->destroy(kGoodbyeMs);
  });
  ScopeExit thrown([&work] { work.fail_all(); });
  Status status = work.error ? Status(*work.error) : work.run();
  thrown.release();
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

void Group::Work::fail_all() noexcept {
  for (const GroupedCall& call : calls) call.communicator->engine().fail_without_memory();
  for (const GroupedCall& call : captured) call.communicator->engine().fail_without_memory();
  for (const Numbering& split : numberings) split.communicator->engine().fail_without_memory();
  for (const auto& communicator : finalizations) communicator->engine().fail_without_memory();
}

// Steps that may be refused come first: a refused group has done nothing.
Status Group::Work::run() {
  TRY(ask_all());
  TRY(take_captured());
  const auto prepared = TRY(prepare_all());
  TRY(capture_all());
  TRY(begin_all());
  TRY(create_all());
  TRY(enqueue_all(prepared));
  TRY(finalize_all());
  if (goes_on) return Error{Code::kInProgress, ""};
  return {};
}

Status Group::Work::take_captured() {
  std::map<const Stream*, bool> captures;
  for (const GroupedCall& call : calls) {
    const Stream* const stream = call.stream.get();
    if (call.stream->has_outer() && captures.count(stream) == 0)
      captures[stream] = TRY(call.stream->captured_lane()) != nullptr;
  }
  const auto is_captured = [&](const GroupedCall& call) {
    const auto found = captures.find(call.stream.get());
    return found != captures.end() && found->second;
  };
  const auto first = std::stable_partition(calls.begin(), calls.end(), std::not_fn(is_captured));
  captured.assign(first, calls.end());
  if (captured.empty()) return {};
  const bool has_more = !creations.empty() || !beginnings.empty() || !numberings.empty() || !finalizations.empty();
  const auto of_request = [](const GroupedCall& call) { return call.settled || call.after; };
  if (has_more || std::ranges::any_of(captured, of_request)) {
    return Error{Code::kInvalidUsage,
                 "a CUDA stream is being captured into a graph: a group with calls on it must not have calls of "
                 "requests there, nor make, split or finalize communicators"};
  }
  calls.erase(first, calls.end());
  return {};
}

// An empty call is nothing at any launch.
Status Group::Work::capture_all() const {
  std::vector<CaptureRequest> requests;
  for (const GroupedCall& call : captured) {
    TRY(call.communicator->check_open());
    TRY(call.stream->check_open());
    if (!call.empty) requests.push_back({call.communicator.get(), &call.call, call.stream.get()});
  }
  return CapturedCalls::capture(requests);
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
    undo_beginnings(i);
    return begun;
  }
  return {};
}

void Group::Work::undo_beginnings(size_t count) {
  while (count-- > 0) beginnings[count].undo();
}

// Calls are numbered when they are enqueued, except those that come before a split.
void Group::Work::number_all() {
  for (const Numbering& numbering : numberings) {
    for (size_t i = 0; i < numbering.calls_before; ++i) {
      GroupedCall& call = calls[i];
      if (call.communicator == numbering.communicator && !call.number)
        call.number = call.communicator->calls().number_ahead(call.call);
    }
    numbering.take();
  }
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

// Each creation waits for the others. All or none: if one fails, the caller has no use for the others.
Status Group::Work::create_all() {
  std::vector<std::shared_ptr<Communicator>> made(creations.size());
  const auto create = [&](size_t i) -> Status {
    made[i] = TRY(creations[i].create());
    return {};
  };
  const Status status = run_together(creations.size(), create, [this] {
    number_all();
    for (const GroupedBeginning& beginning : beginnings) beginning.go();
  });
  for (size_t i = 0; i < made.size(); ++i) {
    if (status.ok()) {
      creations[i].publish(std::move(made[i]));
    } else if (made[i] != nullptr) {
      made[i]->abort();
      made[i]->destroy(0);
    }
  }
  if (!status.ok()) undo_beginnings(beginnings.size());
  return status;
}

// Calls of one communicator on one stream run at the same time, so each has a lane of its own.
Result<Group::Work::PreparedCalls> Group::Work::prepare_all() const {
  PreparedCalls prepared(calls.size());
  std::map<std::pair<const Communicator*, const Stream*>, size_t> lanes;
  for (size_t i = 0; i < calls.size(); ++i) {
    const GroupedCall& call = calls[i];
    TRY(call.communicator->check_open());
    TRY(call.stream->check_open());
    if (call.empty) continue;
    const Lane lane{call.stream, lanes[{call.communicator.get(), call.stream.get()}]++};
    Result<PreparedCall> one = call.communicator->calls().planner().prepare(call.call, lane);
    if (!one.ok()) {
      // A lack of memory has failed this communicator. Other ranks may have made the group's other calls
      // already.
      const bool failed = one.error().code == Code::kSystemError && call.communicator->engine().failed();
      for (const GroupedCall& other : calls) {
        if (failed) other.communicator->engine().fail_without_memory();
      }
      return std::move(one).error();
    }
    prepared[i] = std::move(one).value();
  }
  return prepared;
}

// One item per stream, in the order of the calls.
Group::Work::Item& Group::Work::item_of(const std::shared_ptr<Stream>& stream, Items& items) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& it) { return it.stream == stream; });
  return found == items.end() ? items.emplace_back(stream) : *found;
}

// Takes the places in outer streams, which may be refused. Calls that have their numbers already are expected by other
// ranks, so their communicators then fail.
Status Group::Work::enter_all(Items& items) const {
  for (const GroupedCall& call : calls) {
    if (call.after && call.stream->has_outer()) call.stream->wait_for(call.after);
  }
  for (const GroupedCall& call : calls) {
    if (!call.empty && call.stream->has_outer()) item_of(call.stream, items);
  }
  for (Item& item : items) {
    auto entry = item.stream->enter();
    if (entry.ok()) {
      item.entry.take(std::move(entry).value());
      continue;
    }
    for (const GroupedCall& call : calls) {
      if (call.number) call.communicator->engine().fail(entry.error());
    }
    return std::move(entry).error();
  }
  return {};
}

Status Group::Work::enqueue_all(const PreparedCalls& prepared) {
  Items items;
  TRY(enter_all(items));
  commit_all(prepared, items);
  for (Item& item : items) {
    item.stream->enqueue(item.operations, std::move(item.entry));
    item.operations.clear();
  }
  for (GroupedCall& call : calls) {
    if (auto settled = std::exchange(call.settled, nullptr)) settled(true);
  }
  for (const GroupedCall& call : calls) call.communicator->calls().committed();
  return {};
}

Group::Work::Item::~Item() {
  for (Operation* operation : operations) operation->engine().retire(operation);
}

void Group::Work::commit_all(const PreparedCalls& prepared, Items& items) const {
  for (size_t i = 0; i < calls.size(); ++i) {
    const GroupedCall& call = calls[i];
    CallPath& path = call.communicator->calls();
    if (call.after && !call.stream->has_outer()) call.stream->wait_for(call.after);
    if (call.empty) path.skip(call.call, *call.stream, call.number);
    if (call.empty) continue;
    Item& item = item_of(call.stream, items);
    item.operations.reserve(item.operations.size() + 1);  // ahead: a committed operation must not get lost
    item.operations.push_back(path.commit(call.call, prepared[i], *call.stream, call.number));
  }
}

}  // namespace trestle
