#include "comm/communicator/comm_split.h"

#include <utility>

#include "base/clock.h"
#include "comm/watch/life_cycle.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/mesh_sequence.h"
#include "engine/run/progress.h"
#include "rendezvous/giving_up.h"

namespace trestle {

namespace {

constexpr int64_t kCauseNs = 1'000'000'000;  // how long to wait for the cause that the parent reports

// A call whose settings are wrong takes part in the first exchange, by the settings of the parent.
const CommunicatorSettings& settings_of(const SplitCall& call, const Membership& parent) {
  return call.settings.ok() ? call.settings.value() : parent.settings();
}

}  // namespace

CommSplit::CommSplit(const CommunicatorParts& parent, CallWatch& watch, const SplitCall& call,
                     const std::atomic<bool>& stop)
    : membership_(parent.membership),
      engine_(parent.engine),
      mesh_(parent.mesh),
      in_progress_(parent.splits),
      life_(parent.life),
      watch_(watch),
      call_(call),
      stop_(stop),
      key_{call.number, -1, false, CallKind::kSplit},
      deadline_ns_(deadline_of(settings_of(call, parent.membership))),
      timeout_ns_(settings_of(call, parent.membership).config.timeout_ns),
      registration_(parent.splits, call.number) {}

Result<std::shared_ptr<Communicator>> CommSplit::run(const Assemble& assemble) {
  TRY(exchange());
  if (meeting_->members.empty()) return std::shared_ptr<Communicator>();
  Result<std::shared_ptr<Communicator>> made = join(assemble);
  if (!made.ok()) return cause_of(made.error());
  return made;
}

void CommSplit::wait(const std::function<bool()>& done) {
  Progress::process().wait(done, [this] { return engine_.shared_from_this(); });
}

// ---- the exchanges over the parent

Status CommSplit::exchange() {
  // The parent's destroy() waits until no thread is in here, which is soon after it closes.
  const SplitsInProgress::Exchange exchange(in_progress_);
  // Behind the registration: an exit that closes the communicator now has seen it, or is seen here. Other ranks would
  // wait for what this rank does not finish.
  TRY(why_to_stop());
  meeting_.emplace(membership_, call_, TRY(exchange_parts()));
  registration_.set_members(meeting_->members);
  return exchange_addresses();
}

Result<std::vector<std::string>> CommSplit::all_gather(uint64_t half, std::string mine) {
  ControlMesh& mesh = mesh_.mesh();
  MeshWait at_mesh{key_, sequence_of_split(key_.number, half), deadline_ns_, timeout_ns_};
  mesh.start_all_gather(at_mesh.sequence, std::move(mine));
  std::vector<std::string> blobs;
  Status status;
  wait([&] {
    // A wait may look once more after the end, when the mesh has dropped the result.
    if (!blobs.empty() || !status.ok()) return true;
    Result<std::vector<std::string>> result = mesh.all_gather_result(at_mesh.sequence);
    if (result.ok() && !result.value().empty()) {
      blobs = std::move(result).value();
      return true;
    }
    // The mesh has failed and reports that on another thread. Fails with it here, so that this thread does not return
    // first.
    if (!result.ok()) watch_.remote_failure(result.error());
    status = why_to_stop();
    if (status.ok()) watch_.look_at_wait(at_mesh);  // asks around when it is late
    return !status.ok();
  });
  if (!status.ok()) return status.error();
  return blobs;
}

Status CommSplit::why_to_stop() const {
  if (engine_.failed()) return *engine_.failure();
  if (stop_) return Error{Code::kAborted, "CommSplit of " + membership_.name() + " was aborted"};
  if (life_.closed)
    return Error{Code::kInvalidUsage, "CommSplit: communicator " + membership_.name() + " was destroyed meanwhile"};
  return {};
}

Result<std::vector<SplitPart>> CommSplit::exchange_parts() {
  const SplitPart mine{call_.color, call_.key, process_token(), call_.has_place,
                       call_.settings.ok() ? "" : call_.settings.error().message};
  const auto blobs = TRY(all_gather(0, encode(mine)));
  // This rank's own error comes before those of others.
  if (!call_.has_place) return Error{Code::kInvalidArgument, "CommSplit: newcomm is NULL"};
  if (!call_.settings.ok()) return call_.settings.error();
  std::vector<SplitPart> parts;
  for (int32_t r = 0; r < membership_.ranks(); ++r) {
    parts.push_back(TRY(decode_split_part(blobs[static_cast<size_t>(r)], membership_.name_of(r))));
    TRY(check_part(parts.back(), membership_.name_of(r)));
  }
  return parts;
}

Status CommSplit::check_part(const SplitPart& part, const std::string& name) {
  if (!part.has_place) return Error{Code::kInvalidArgument, "CommSplit: " + name + " passed newcomm NULL"};
  if (!part.refusal.empty())
    return Error{Code::kRemoteError, "CommSplit: " + name + " cannot take part: " + part.refusal};
  if (part.color < 0 && part.color != kNoColor)
    return Error{Code::kInvalidArgument, "CommSplit: " + name + " has colour " + std::to_string(part.color) +
                                             ": 0 or more, or TRESTLE_SPLIT_NOCOLOR"};
  return {};
}

Status CommSplit::exchange_addresses() {
  const std::vector<int32_t>& members = meeting_->members;
  const SplitAddress mine = members.empty() ? SplitAddress() : meeting_->open(membership_.local_ip());
  const auto blobs = TRY(all_gather(1, encode(mine)));
  std::vector<std::string> addresses;
  for (const int32_t r : members) {
    const std::string& name = membership_.name_of(r);
    SplitAddress theirs = TRY(decode_split_address(blobs[static_cast<size_t>(r)], name));
    if (theirs.code != Code::kSuccess) {
      const bool keeps_code = r == membership_.rank() || is_everybodys(theirs.code);
      return Error{keeps_code ? theirs.code : Code::kRemoteError, "CommSplit: " + name + ": " + theirs.sentence};
    }
    addresses.push_back(std::move(theirs.address));
  }
  meeting_->set_addresses(addresses);
  return {};
}

// ---- the new communicator

Result<std::shared_ptr<Communicator>> CommSplit::join(const Assemble& assemble) {
  const CommunicatorSettings& settings = call_.settings.value();
  const int64_t deadline_ns = deadline_of(settings);
  const auto bootstrap = TRY(meeting_->in_one_process ? take_from_process() : join_others(deadline_ns));
  return assemble(*bootstrap, settings, meeting_->kin, deadline_ns);
}

Result<std::unique_ptr<Bootstrap>> CommSplit::take_from_process() {
  std::unique_ptr<Bootstrap> bootstrap = BootstrapHandover::take(meeting_->meeting.job, meeting_->own_rank);
  // It is that rank's own failure and not this communicator's: a rank of this same process cannot have died alone.
  if (bootstrap == nullptr) {
    const std::string& first = membership_.name_of(meeting_->members[0]);
    return Error{Code::kSystemError, "CommSplit: " + first + " gave up meanwhile"};
  }
  bootstrap->set_abort(&stop_);
  return bootstrap;
}

Result<std::unique_ptr<Bootstrap>> CommSplit::join_others(int64_t deadline_ns) {
  BootstrapConfig& config = meeting_->config;
  Meeting& meeting = meeting_->meeting;
  config.deadline_ns = deadline_ns;
  config.abort = &stop_;
  for (const int32_t r : meeting_->members) config.names.push_back(membership_.name_of(r));
  config.awaited = &registration_.awaited();
  config.on_overdue = [this](int32_t awaited, const Error& own) {
    return blame_late_member(awaited < 0 ? -1 : meeting_->members[static_cast<size_t>(awaited)], own);
  };
  config.on_abort = [this] {
    const auto failed = engine_.failure();  // the failure that stopped the split, if any
    return failed && !exits() ? *failed : giving_up(membership_.own_name());
  };
  if (meeting_->on_one_host) {
    config.failure = [this] { return registration_.failure(); };
    auto joined = Bootstrap::join_on_host(config, meeting.job, meeting.secret, membership_.local_ip(),
                                          std::move(meeting_->on_host));
    if (!joined.ok()) send_failure(joined.error());
    return joined;
  }
  meeting.name_of = [names = config.names](int32_t rank) { return names[static_cast<size_t>(rank)]; };
  meeting.report = [this](const JoinReport& report) { send_failure(report.error); };
  meeting.failure = [this] { return registration_.failure(); };
  return Bootstrap::join_at(config, std::move(meeting));
}

// Tells the members why this rank gives up, if it does. They may not be connected with it yet.
void CommSplit::send_failure(const Error& error) {
  if (error.code == Code::kSuccess) return;
  const std::string letter = encode(SplitFailure{key_.number, error});
  for (const int32_t r : meeting_->members) {
    if (r != membership_.rank()) mesh_.mesh().send_letter(r, letter);
  }
}

// The new communicator was not made in time. Its ranks answer over the parent's mesh, however far they have come.
Error CommSplit::blame_late_member(int32_t awaited, const Error& own) {
  bool asked = false;
  const std::string what = "CommSplit, making the new communicator, awaiting rank " + std::to_string(awaited);
  const Overdue overdue{key_, awaited, timeout_ns_, watch_.late_text(timeout_ns_, what)};
  if (awaited < 0 || awaited == membership_.rank()) engine_.fail(own);
  wait([&] {
    if (engine_.failed() || life_.closed) return true;
    asked = asked || mesh_.inquire(overdue);
    return false;
  });
  return engine_.failed() ? *engine_.failure() : own;
}

// A rank that dies or stalls while the new communicator is made fails the parent. The parent's other ranks hear of it
// by the rank number that they know. An error of the new communicator alone leaves the parent as it is. A rank that
// aborts the new one may be about to abort the parent too, so this waits a moment for that.
Error CommSplit::cause_of(const Error& own) {
  const bool is_lost = own.code == Code::kRemoteError || own.code == Code::kTimeout;
  if (is_lost || (own.code == Code::kAborted && !stop_)) {
    const int64_t until = monotonic_clock().now_ns() + kCauseNs;
    const auto over = [&] { return life_.closed || (!is_lost && stop_) || monotonic_clock().now_ns() >= until; };
    wait([&] { return engine_.failed() || over(); });
    if (is_lost && !life_.closed) engine_.fail(own);
  }
  return engine_.failed() ? *engine_.failure() : own;
}

}  // namespace trestle
