// Makes communicators of some ranks of another one (the parent). No id leaves the library: the ranks exchange colours
// and keys over the control mesh, then the addresses at which they listen. The secret and the name of the new job are
// derived from the parent's, so neither is sent, and only ranks of the parent can join.
//
// While the new communicator is made, its ranks stay ranks of the parent. A rank that dies or stalls then fails the
// parent. Inquiries about it use the parent's control mesh and rank numbers.
#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/fork.h"
#include "comm/communicator/communicator.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/mesh_sequence.h"
#include "comm/watch/stop_flags.h"
#include "control_mesh/byte_text.h"
#include "control_mesh/dissemination.h"
#include "control_mesh/letter_kind.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/meeting.h"
#include "transport/auth/handshake.h"

namespace trestle {

namespace {

constexpr size_t kMostSentence = 1000;
constexpr int64_t kCauseNs = 1'000'000'000;  // how long to wait for the cause that the parent reports

// Where a rank waits for its neighbours.
struct Place {
  Code code = Code::kSuccess;  // else why it could not open one
  std::string address;         // "": all ranks are in one process
  std::string sentence;
};

std::string encode(const Place& place) {
  return ByteWriter()
      .integer(static_cast<uint8_t>(place.code))
      .text(place.address)
      .text(place.sentence.substr(0, kMostSentence))
      .take();
}

Result<Place> decode_place(const std::string& bytes, const std::string& teller) {
  ByteReader in(bytes);
  Place place;
  place.code = static_cast<Code>(in.integer<uint8_t>());
  place.address = in.text(256);
  place.sentence = in.text(kMostSentence);
  if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + teller + " did not say where it listens"};
  return place;
}

// If all ranks of a colour live in one process, the first of them makes the bootstraps of all, by rank. They wait here
// for the other ranks.
struct Lobbies {
  Mutex mutex;
  std::map<JobId, std::vector<std::unique_ptr<Bootstrap>>> seats TRESTLE_GUARDED_BY(mutex);

  static Lobbies& of_process() {
    static constinit PerProcess<Lobbies> lobbies;
    return lobbies.get();
  }
};

// While it lives, the other ranks find their bootstraps.
class Lobby {
 public:
  Lobby(const JobId& job, std::vector<std::unique_ptr<Bootstrap>> seats) : job_(job) {
    Lobbies& all = Lobbies::of_process();
    const MutexLock lock(all.mutex);
    all.seats[job_] = std::move(seats);
  }
  ~Lobby() {
    std::vector<std::unique_ptr<Bootstrap>> left;  // destroyed without the lock
    Lobbies& all = Lobbies::of_process();
    const MutexLock lock(all.mutex);
    const auto found = all.seats.find(job_);
    CHECK(found != all.seats.end(), "two parts of splits have the same job");
    left.swap(found->second);
    all.seats.erase(found);
  }
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  static std::unique_ptr<Bootstrap> take(const JobId& job, int32_t rank) {
    Lobbies& all = Lobbies::of_process();
    const MutexLock lock(all.mutex);
    const auto found = all.seats.find(job);
    return found == all.seats.end() ? nullptr : std::move(found->second[static_cast<size_t>(rank)]);
  }

 private:
  const JobId job_;
};

Place refused(const Error& error) {
  return {error.code, "", error.message};
}

}  // namespace

// What one rank contributes to a split.
struct Communicator::Part {
  int32_t color = 0;
  int32_t key = 0;
  uint64_t process = 0;
  bool has_place = true;  // false: newcomm is NULL
  std::string refusal;    // why it cannot take part, as a sentence; or ""

  std::string encoded() const {
    return ByteWriter()
        .integer(color)
        .integer(key)
        .integer(process)
        .integer(static_cast<uint8_t>(has_place))
        .text(refusal.substr(0, kMostSentence))
        .take();
  }
  static Result<Part> decode(const std::string& bytes, const std::string& teller) {
    ByteReader in(bytes);
    Part part;
    part.color = in.integer<int32_t>();
    part.key = in.integer<int32_t>();
    part.process = in.integer<uint64_t>();
    part.has_place = in.integer<uint8_t>() != 0;
    part.refusal = in.text(kMostSentence);
    if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + teller + " did not say its colour"};
    return part;
  }
};

Result<std::vector<std::string>> Communicator::gather(uint64_t half, std::string mine, const SplitWait& wait) {
  // destroy() waits until no thread is in here, which is soon after it closes.
  struct Stay {
    std::atomic<int>& stays;
    explicit Stay(std::atomic<int>& all) : stays(all) { ++stays; }
    ~Stay() { --stays; }
  } const stay(splitting_);
  ControlMesh& mesh = mesh_->mesh();
  MeshWait at_mesh{wait.key, sequence_of_split(wait.key.number, half), wait.deadline_ns, wait.timeout_ns, false};
  mesh.start_all_gather(at_mesh.sequence, std::move(mine));
  std::vector<std::string> blobs;
  Status status;
  const auto look = [&] {
    // A wait may look once more after the end, when the mesh has dropped the result.
    if (!blobs.empty() || !status.ok()) return true;
    Result<std::vector<std::string>> result = mesh.all_gather_result(at_mesh.sequence);
    if (result.ok() && !result.value().empty()) {
      blobs = std::move(result).value();
      return true;
    }
    // The mesh has failed and reports that on another thread. Fails with it here, so that this thread does not return
    // first.
    if (!result.ok()) remote_failure(result.error());
    if (engine_->failed()) {
      status = *failure();
    } else if (wait.stop) {
      status = Error{Code::kAborted, "CommSplit of " + membership_.name() + " was aborted"};
    } else if (closed_) {
      status = Error{Code::kInvalidUsage, "CommSplit: communicator " + membership_.name() + " was destroyed meanwhile"};
    } else {
      look_at_deadline(at_mesh);  // starts the inquiry when it is late
    }
    return !status.ok();
  };
  Progress::process().wait(look, [this] { return engine_; });
  if (!status.ok()) return status.error();
  return blobs;
}

Result<std::vector<Communicator::Part>> Communicator::gather_parts(const SplitCall& call, const SplitWait& wait) {
  Part mine{call.color, call.key, process_token(), call.has_place,
            call.settings.ok() ? "" : call.settings.error().message};
  const auto blobs = TRY(gather(0, mine.encoded(), wait));
  // This rank's own error comes before those of others.
  if (!call.has_place) return Error{Code::kInvalidArgument, "CommSplit: newcomm is NULL"};
  if (!call.settings.ok()) return call.settings.error();
  std::vector<Part> parts;
  for (int32_t r = 0; r < membership_.ranks(); ++r) {
    parts.push_back(TRY(Part::decode(blobs[r], membership_.name_of(r))));
    const Part& part = parts.back();
    if (!part.has_place)
      return Error{Code::kInvalidArgument, "CommSplit: " + membership_.name_of(r) + " passed newcomm NULL"};
    if (!part.refusal.empty())
      return Error{Code::kRemoteError, "CommSplit: " + membership_.name_of(r) + " cannot take part: " + part.refusal};
    if (part.color < 0 && part.color != kNoColor)
      return Error{Code::kInvalidArgument, "CommSplit: " + membership_.name_of(r) + " has colour " +
                                               std::to_string(part.color) + ": 0 or more, or TRESTLE_SPLIT_NOCOLOR"};
  }
  return parts;
}

// How the ranks of the new communicator meet.
struct Communicator::Door {
  const std::vector<int32_t>& members;
  std::atomic<int32_t>& awaited;
  int32_t me = 0;
  bool one_process = false;
  BootstrapConfig config;
  Meeting meeting;
  std::unique_ptr<Lobby> lobby;

  int32_t size() const { return static_cast<int32_t>(members.size()); }
  // Opens this rank's place.
  Place open(const std::string& ip) {
    const Status opened = one_process ? open_lobby() : listen(ip);
    if (!opened.ok()) return refused(opened.error());
    return {Code::kSuccess, one_process ? "" : format_address(meeting.listener.address), ""};
  }
  Status open_lobby() {
    if (me == 0) lobby = std::make_unique<Lobby>(meeting.job, TRY(Bootstrap::join_in_process(config)));
    return {};
  }
  Status listen(const std::string& ip) {
    const SocketAddress at = TRY(parse_address(ip.find(':') == std::string::npos ? ip + ":1" : "[" + ip + "]:1"));
    meeting.listener = TRY(listen_for_neighbours(config, at));
    return {};
  }
};

Result<std::shared_ptr<Communicator>> Communicator::join_part(const SplitCall& call, const std::vector<Part>& parts,
                                                              Making& making, const SplitWait& wait) {
  std::vector<int32_t> members;  // by rank of the new communicator
  for (int32_t r = 0; r < membership_.ranks(); ++r) {
    if (parts[r].color == call.color && call.color != kNoColor) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int32_t a, int32_t b) { return parts[a].key < parts[b].key; });
  {
    const MutexLock lock(splits_mutex_);
    making.members = members;
  }
  Door door{members, making.awaited, 0, false, {}, {}, nullptr};
  door.me = static_cast<int32_t>(std::find(members.begin(), members.end(), membership_.rank()) - members.begin());
  door.one_process = std::all_of(members.begin(), members.end(),
                                 [&](int32_t r) { return parts[r].process == parts[members[0]].process; });
  const std::string label = "split " + std::to_string(call.number) + " colour " + std::to_string(call.color);
  door.meeting.job = job_id(to_hex(membership_.job()) + " " + label);
  door.meeting.secret = derive_secret(membership_.secret(), label);
  door.config = bootstrap_config(call.settings.value().config, door.size(), door.me, UniqueIdBytes{});
  const auto places = TRY(gather(1, encode(members.empty() ? Place{} : door.open(membership_.local_ip())), wait));
  if (members.empty()) return std::shared_ptr<Communicator>();
  std::vector<std::string> addresses;
  for (const int32_t r : members) {
    Place place = TRY(decode_place(places[r], membership_.name_of(r)));
    if (place.code != Code::kSuccess)
      return Error{r == membership_.rank() ? place.code : Code::kRemoteError,
                   "CommSplit: " + membership_.name_of(r) + ": " + place.sentence};
    addresses.push_back(std::move(place.address));
  }
  for (int k = 0; k < dissemination_steps(door.size()); ++k) {
    door.meeting.addresses.push_back(addresses[static_cast<size_t>((door.me + (int64_t{1} << k)) % door.size())]);
  }
  Result<std::shared_ptr<Communicator>> made = make_part(call, door, wait);
  if (!made.ok()) return failure_of_making(made.error(), wait);
  return made;
}

Result<std::shared_ptr<Communicator>> Communicator::make_part(const SplitCall& call, Door& door,
                                                              const SplitWait& wait) {
  const CommunicatorSettings& settings = call.settings.value();
  const int64_t deadline_ns = deadline_of(settings);
  std::unique_ptr<Bootstrap> bootstrap;
  if (door.one_process) {
    bootstrap = Lobby::take(door.meeting.job, door.me);
    // It is that rank's own failure and not this communicator's: a rank of this same process cannot have died alone.
    if (bootstrap == nullptr)
      return Error{Code::kSystemError, "CommSplit: " + membership_.name_of(door.members[0]) + " gave up meanwhile"};
    bootstrap->set_abort(&wait.stop);
  } else {
    door.config.deadline_ns = deadline_ns;
    door.config.abort = &wait.stop;
    for (const int32_t r : door.members) door.config.names.push_back(membership_.name_of(r));
    door.config.awaited = &door.awaited;
    door.meeting.name_of = [names = door.config.names](int32_t rank) { return names[static_cast<size_t>(rank)]; };
    door.meeting.report = [&](const JoinReport& report) { tell_end_of_making(door.members, wait.key.number, report); };
    door.meeting.failure = [&]() -> Status {
      const MutexLock lock(splits_mutex_);
      const auto& story = splits_[wait.key.number]->story;
      if (story) return *story;
      return {};
    };
    door.config.on_overdue = [&](int32_t awaited, const Error& own) {
      return blame_for_making(awaited < 0 ? -1 : door.members[static_cast<size_t>(awaited)], own, wait);
    };
    door.config.on_abort = [this] {
      const auto failed = failure();  // the failure that stopped the split, if any
      return failed && !exits() ? *failed : giving_up(membership_.own_name());
    };
    bootstrap = TRY(Bootstrap::join_at(door.config, std::move(door.meeting)));
  }
  return assemble(*bootstrap, settings, deadline_ns, &wait.stop, membership_.root());
}

// Tells the members why this rank gives up. They may not be connected with it yet.
void Communicator::tell_end_of_making(const std::vector<int32_t>& members, uint64_t number, const JoinReport& report) {
  if (report.error.code == Code::kSuccess) return;
  ByteWriter out;
  out.integer(static_cast<uint8_t>(LetterKind::kEndOfMaking)).integer(number);
  out.integer(static_cast<int32_t>(report.error.code)).text(report.error.message.substr(0, kMostSentence));
  const std::string letter = out.take();
  for (const int32_t r : members) {
    if (r != membership_.rank()) mesh_->mesh().send_letter(r, letter);
  }
}

void Communicator::hear_end_of_making(const std::string& letter) {
  ByteReader in(letter);
  in.integer<uint8_t>();
  const auto number = in.integer<uint64_t>();
  const auto code = in.integer<int32_t>();
  const std::string sentence(in.text(kMostSentence));
  if (!in.at_end() || code <= 0 || code > static_cast<int>(kLastCode)) return;
  const MutexLock lock(splits_mutex_);
  const auto split = splits_.find(number);
  if (split != splits_.end() && !split->second->story) split->second->story = Error{static_cast<Code>(code), sentence};
}

// The new communicator was not made in time. Its ranks answer over the parent's mesh, however far they have come.
Error Communicator::blame_for_making(int32_t awaited, const Error& own, const SplitWait& wait) {
  bool asked = false;
  const Overdue overdue{
      wait.key, awaited, wait.timeout_ns,
      late_text(wait.timeout_ns, "CommSplit, making the new communicator, awaiting rank ") + std::to_string(awaited)};
  if (awaited < 0 || awaited == membership_.rank()) engine_->fail(own);
  Progress::process().wait(
      [&] {
        if (engine_->failed() || closed_) return true;
        asked = asked || mesh_->inquire(overdue);
        return false;
      },
      [this] { return engine_; });
  return engine_->failed() ? *failure() : own;
}

// A rank that dies or stalls while the new communicator is made fails the parent. The parent's other ranks hear of it
// by the rank number that they know. An error of the new communicator alone leaves the parent as it is. A rank that
// aborts the new one may be about to abort the parent too, so this waits a moment for that.
Error Communicator::failure_of_making(const Error& own, const SplitWait& wait) {
  const bool is_lost = own.code == Code::kRemoteError || own.code == Code::kTimeout;
  if (is_lost || (own.code == Code::kAborted && !wait.stop)) {
    const int64_t until = monotonic_clock().now_ns() + kCauseNs;
    const auto over = [&] { return closed_ || (!is_lost && wait.stop) || monotonic_clock().now_ns() >= until; };
    Progress::process().wait([&] { return engine_->failed() || over(); }, [this] { return engine_; });
    if (is_lost && !closed_) engine_->fail(own);
  }
  return engine_->failed() ? *failure() : own;
}

Result<std::shared_ptr<Communicator>> Communicator::split(const SplitCall& call, std::atomic<bool>& stop) {
  const StopFlags::Registration registered(*stops_, stop);
  const CommunicatorSettings& settings = call.settings.ok() ? call.settings.value() : membership_.settings();
  const auto making = std::make_shared<Making>();
  {
    const MutexLock lock(splits_mutex_);
    splits_[call.number] = making;
  }
  const SplitWait wait{
      {call.number, -1, false, CallKind::kSplit}, deadline_of(settings), settings.config.timeout_ns, stop};
  auto made = [&]() -> Result<std::shared_ptr<Communicator>> {
    return join_part(call, TRY(gather_parts(call, wait)), *making, wait);
  }();
  {
    const MutexLock lock(splits_mutex_);
    splits_.erase(call.number);
  }
  return made;
}

}  // namespace trestle
