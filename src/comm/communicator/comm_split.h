// CommSplit: the split of a communicator, on one rank: makes a communicator of some ranks of another one, the parent.
// No id leaves the library: the ranks exchange colours and keys over the parent's control mesh, then the addresses at
// which they listen.
//
// While the new communicator is made, its ranks stay ranks of the parent. A rank that dies or stalls then fails the
// parent. Inquiries about it use the parent's control mesh and rank numbers.
//
// Lives on the stack of the thread that makes the split, while the parent lives. That thread runs all of it, and drives
// the parent's engine while it waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/overdue.h"
#include "base/result.h"
#include "comm/split/split_call.h"
#include "comm/split/split_letters.h"
#include "comm/split/split_meeting.h"
#include "comm/split/splits_in_progress.h"
#include "comm/watch/call_watch.h"
#include "comm/watch/communicator_parts.h"

namespace trestle {

class Communicator;

class CommSplit {
 public:
  // Makes the new communicator, when its ranks are connected.
  using Assemble = std::function<Result<std::shared_ptr<Communicator>>(
      Bootstrap& bootstrap, const CommunicatorSettings& settings, const HostKin& kin, int64_t deadline_ns)>;

  // stop: set by another thread, or by the failure of the parent.
  CommSplit(const CommunicatorParts& parent, CallWatch& watch, const SplitCall& call, const std::atomic<bool>& stop);
  CommSplit(const CommSplit&) = delete;
  CommSplit& operator=(const CommSplit&) = delete;

  // Once; results and errors are those of Communicator::split().
  Result<std::shared_ptr<Communicator>> run(const Assemble& assemble);

 private:
  Status exchange();
  Result<std::vector<std::string>> all_gather(uint64_t half, std::string mine);
  Status why_to_stop() const;
  Result<std::vector<SplitPart>> exchange_parts();
  static Status check_part(const SplitPart& part, const std::string& name);
  Status exchange_addresses();
  Result<std::shared_ptr<Communicator>> join(const Assemble& assemble);
  Result<std::unique_ptr<Bootstrap>> take_from_process();
  Result<std::unique_ptr<Bootstrap>> join_others(int64_t deadline_ns);
  void send_failure(const Error& error);
  Error blame_late_member(int32_t awaited, const Error& own);
  Error cause_of(const Error& own);
  void wait(const std::function<bool()>& done);

  const Membership& membership_;
  Engine& engine_;
  MeshPoller& mesh_;
  SplitsInProgress& in_progress_;
  const LifeCycle& life_;
  CallWatch& watch_;
  const SplitCall& call_;
  const std::atomic<bool>& stop_;
  const OperationKey key_;
  const int64_t deadline_ns_;  // of the exchanges over the parent
  const int64_t timeout_ns_;
  SplitsInProgress::Registration registration_;
  std::optional<SplitMeeting> meeting_;  // when the parts of all ranks are known
};

}  // namespace trestle
