// Communicators made of some ranks of another one, without an id that travels outside: the ranks tell each other
// colours and keys over the control mesh, the first rank of each colour where it listens. The secret and the name of
// the new job are derived from the old ones, so neither is sent, and nobody but ranks of the parent can come in.
#include <algorithm>
#include <map>

#include "base/clock.h"
#include "comm/bootstrap/byte_text.h"
#include "comm/communicator.h"
#include "comm/mesh_poller.h"
#include "comm/stop_flags.h"
#include "transport/auth/handshake.h"

namespace trestle {

namespace {

// Numbers of the control mesh's all-gathers; those of bootstrap begin at 2^62. Every split takes two.
constexpr uint64_t kFirstSplit = uint64_t{1} << 61;
constexpr size_t kMostSentence = 1000;

// Where the ranks of one colour meet, told by its first rank.
struct Place {
  Code code = Code::kSuccess;  // else it could not make one
  std::string ip;              // "": in its process
  uint16_t port = 0;
  std::string sentence;
};

std::string encode(const Place& place) {
  return ByteWriter()
      .integer(static_cast<uint8_t>(place.code))
      .text(place.ip)
      .integer(place.port)
      .text(place.sentence.substr(0, kMostSentence))
      .take();
}

Result<Place> decode_place(const std::string& bytes, const std::string& teller) {
  ByteReader in(bytes);
  Place place;
  place.code = static_cast<Code>(in.integer<uint8_t>());
  place.ip = in.text(64);
  place.port = in.integer<uint16_t>();
  place.sentence = in.text(kMostSentence);
  if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + teller + " did not say where its ranks meet"};
  return place;
}

// Bootstraps made by the first rank of a colour that lives in one process, by rank: those that wait for the others.
struct Lobbies {
  Mutex mutex;
  std::map<JobId, std::vector<std::unique_ptr<Bootstrap>>> seats TRESTLE_GUARDED_BY(mutex);

  static Lobbies& of_process() {
    static auto* const lobbies = new Lobbies;  // outlives every thread that may still call
    return *lobbies;
  }
};

// While it lives, others find their seats.
class Lobby {
 public:
  Lobby(const JobId& job, std::vector<std::unique_ptr<Bootstrap>> seats) : job_(job) {
    Lobbies& all = Lobbies::of_process();
    const MutexLock lock(all.mutex);
    all.seats[job_] = std::move(seats);
  }
  ~Lobby() {
    std::vector<std::unique_ptr<Bootstrap>> left;  // they end without the lock
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
  return {error.code, "", 0, error.message};
}

Place open_lobby(const BootstrapConfig& config, const JobId& job, std::unique_ptr<Lobby>& lobby) {
  auto seats = Bootstrap::join_in_process(config);
  if (!seats.ok()) return refused(seats.error());
  lobby = std::make_unique<Lobby>(job, std::move(seats).value());
  return {};
}

Place open_door(const Result<UniqueId>& held) {
  if (!held.ok()) return refused(held.error());
  return {Code::kSuccess, held.value().ip, held.value().port, ""};
}

}  // namespace

// What one rank says in a split.
struct Communicator::Part {
  int32_t color = 0;
  int32_t key = 0;
  uint64_t process = 0;
  std::string refusal;  // a sentence: it cannot take part

  std::string encoded() const {
    return ByteWriter().integer(color).integer(key).integer(process).text(refusal.substr(0, kMostSentence)).take();
  }
  static Result<Part> decode(const std::string& bytes, const std::string& teller) {
    ByteReader in(bytes);
    Part part;
    part.color = in.integer<int32_t>();
    part.key = in.integer<int32_t>();
    part.process = in.integer<uint64_t>();
    part.refusal = in.text(kMostSentence);
    if (!in.at_end()) return Error{Code::kRemoteError, "CommSplit: " + teller + " did not say its colour"};
    return part;
  }
};

uint64_t Communicator::split_number() {
  const MutexLock lock(submit_mutex_);
  tell_place("CommSplit");
  return next_split_++;
}

Result<std::vector<std::string>> Communicator::gather(uint64_t sequence, std::string mine, const SplitWait& wait) {
  struct Stay {  // destroy() waits for its end, which is soon then
    std::atomic<int>& stays;
    explicit Stay(std::atomic<int>& all) : stays(all) { ++stays; }
    ~Stay() { --stays; }
  } const stay(splitting_);
  ControlMesh& mesh = mesh_->mesh();
  mesh.start_all_gather(sequence, std::move(mine));
  std::vector<std::string> blobs;
  Status status;
  const auto look = [&] {
    // A wait may look once more after the end, when the mesh has forgotten all about it.
    if (!blobs.empty() || !status.ok()) return true;
    Result<std::vector<std::string>> result = mesh.all_gather_result(sequence);
    if (result.ok() && !result.value().empty()) {
      blobs = std::move(result).value();
      return true;
    }
    if (engine_->failed()) {
      status = *failure();
    } else if (!result.ok()) {
      status = result.error();
    } else if (wait.stop) {
      status = Error{Code::kAborted, "CommSplit of " + name_ + " was aborted"};
    } else if (closed_) {
      status = Error{Code::kInvalidUsage, "CommSplit: communicator " + name_ + " was destroyed meanwhile"};
    } else if (monotonic_clock().now_ns() > wait.deadline_ns) {
      std::string missing;
      for (const int32_t r : mesh.missing(sequence, false)) missing += (missing.empty() ? "" : ", ") + names_[r];
      status = Error{Code::kTimeout, names_[rank_] + ": CommSplit was not called in time by " + missing};
      engine_->fail(status.error());
    }
    return !status.ok();
  };
  Progress::process().wait(look, [this] { return engine_; });
  if (!status.ok()) return status.error();
  return blobs;
}

Result<std::vector<Communicator::Part>> Communicator::gather_parts(const SplitCall& call, const SplitWait& wait) {
  Part mine{call.color, call.key, process_token(), call.settings.ok() ? "" : call.settings.error().message};
  const auto blobs = TRY(gather(kFirstSplit + 2 * call.number, mine.encoded(), wait));
  if (!call.settings.ok()) return call.settings.error();  // the own sentence goes before those of others
  std::vector<Part> parts;
  for (int32_t r = 0; r < ranks_; ++r) {
    parts.push_back(TRY(Part::decode(blobs[r], names_[r])));
    const Part& part = parts.back();
    if (!part.refusal.empty())
      return Error{Code::kRemoteError, "CommSplit: " + names_[r] + " cannot take part: " + part.refusal};
    if (part.color < 0 && part.color != kNoColor)
      return Error{Code::kInvalidArgument, "CommSplit: " + names_[r] + " has colour " + std::to_string(part.color) +
                                               ": 0 or more, or TRESTLE_SPLIT_NOCOLOR"};
  }
  return parts;
}

Result<std::shared_ptr<Communicator>> Communicator::join_part(const SplitCall& call, const std::vector<Part>& parts,
                                                              const SplitWait& wait) {
  const CommunicatorSettings& settings = call.settings.value();
  std::vector<int32_t> members;  // by rank of the new communicator
  for (int32_t r = 0; r < ranks_; ++r) {
    if (parts[r].color == call.color && call.color != kNoColor) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int32_t a, int32_t b) { return parts[a].key < parts[b].key; });
  const auto size = static_cast<int32_t>(members.size());
  const auto me = static_cast<int32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const bool one_process = std::all_of(members.begin(), members.end(),
                                       [&](int32_t r) { return parts[r].process == parts[members[0]].process; });
  const std::string label = "split " + std::to_string(call.number) + " colour " + std::to_string(call.color);
  UniqueId id;
  id.job = job_id(to_hex(job_) + " " + label);
  const std::vector<std::byte> secret = derive_secret(secret_, label);
  std::copy_n(secret.begin(), std::min(secret.size(), id.secret.size()), id.secret.begin());
  Place place;
  std::unique_ptr<Lobby> lobby;
  if (size != 0 && me == 0) {
    const BootstrapConfig config = bootstrap_config(settings.config, size, 0, UniqueIdBytes{});
    place = one_process ? open_lobby(config, id.job, lobby)
                        : open_door(hold_meeting(config, local_ip_, id, settings.config.timeout_ns));
  }
  const auto places = TRY(gather(kFirstSplit + 2 * call.number + 1, encode(place), wait));
  if (size == 0) return std::shared_ptr<Communicator>();
  const std::string& teller = names_[members[0]];
  place = TRY(decode_place(places[members[0]], teller));
  if (place.code != Code::kSuccess)
    return Error{me == 0 ? place.code : Code::kRemoteError, "CommSplit: " + teller + ": " + place.sentence};
  if (!one_process) {
    id.ip = place.ip;
    id.port = place.port;
    return create(TRY(encode(id)), size, me, settings, &wait.stop);
  }
  const std::unique_ptr<Bootstrap> seat = Lobby::take(id.job, me);
  if (seat == nullptr) return Error{Code::kRemoteError, "CommSplit: " + teller + " gave up meanwhile"};
  seat->set_abort(&wait.stop);
  return assemble(*seat, settings, wait.deadline_ns, &wait.stop);
}

Result<std::shared_ptr<Communicator>> Communicator::split(const SplitCall& call, std::atomic<bool>& stop) {
  const StopFlags::Registration registered(*stops_, stop);
  const SplitWait wait{deadline_of(call.settings.ok() ? call.settings.value() : settings_), stop};
  const std::vector<Part> parts = TRY(gather_parts(call, wait));
  auto made = join_part(call, parts, wait);
  // What this communicator has heard is the cause, and its sentence names the rank as the caller knows it.
  if (!made.ok() && engine_->failed()) return *failure();
  return made;
}

}  // namespace trestle
