#include "rendezvous/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope_exit.h"
#include "base/text/value_text.h"
#include "base/wait_marks.h"
#include "control_mesh/dissemination.h"
#include "control_mesh/inquiry.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/meeting.h"
#include "rendezvous/mesh_rails.h"
#include "rendezvous/message.h"
#include "rendezvous/neighbours.h"
#include "rendezvous/rank_info.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

// Sequence numbers of bootstrap's own exchanges. A communicator counts from 0 over the same mesh.
constexpr uint64_t kFirstSeq = uint64_t{1} << 62;
constexpr OperationKey kMaking{0, -1, false, CallKind::kCreation};

Status check(const BootstrapConfig& config) {
  if (config.nranks < 1)
    return Error{Code::kInvalidArgument,
                 "the number of ranks is " + std::to_string(config.nranks) + ", it must be 1 or more"};
  if (config.nranks > kMostRanks)
    return Error{Code::kInvalidArgument, "the number of ranks is " + std::to_string(config.nranks) +
                                             ", it must be at most " + std::to_string(kMostRanks)};
  if (config.rank < 0 || config.rank >= config.nranks)
    return Error{Code::kInvalidArgument, "rank " + std::to_string(config.rank) + " is out of range: there are " +
                                             std::to_string(config.nranks) + " ranks"};
  return {};
}

// Where neighbours have reached this rank: at the first place, if any of them has.
HostAddress met_at(const HostAddress& first, const ControlMesh& mesh) {
  const std::vector<HostAddress> reached = mesh.reached_at();
  return reached.empty() || std::ranges::find(reached, first) != reached.end() ? first : reached.back();
}

Result<std::pair<UniqueFd, UniqueFd>> connected_pair() {
  const NoFork whole;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
    return Error{Code::kSystemError, std::string("socketpair: ") + std::strerror(errno)};
  return std::pair(UniqueFd(pair[0]), UniqueFd(pair[1]));
}

}  // namespace

class Bootstrap::Impl {
 public:
  int32_t rank = 0;
  int32_t nranks = 1;
  JobId job{};
  std::vector<std::byte> secret;
  HostAddress local_ip;
  bool listens = false;
  int64_t deadline_ns = kNoDeadline;
  int64_t timeout_ns = 0;
  const std::atomic<bool>* abort = nullptr;
  std::unique_ptr<ControlMesh> mesh;
  std::shared_ptr<RendezvousHold> hold;
  uint64_t next_seq = kFirstSeq;
  RankNames names;
  bool named = false;  // the names were known before, from the configuration
  std::atomic<int32_t> own_awaited{-1};
  std::atomic<int32_t>* awaited = &own_awaited;
  std::function<Error(int32_t awaited, const Error& own)> on_overdue;
  std::function<Error()> on_abort;
  std::function<Status()> failure;
  std::unique_ptr<Inquiry> inquiry;  // while an inquiry finds out which rank is to blame, or is waited for
  uint32_t inquiries = 0;
  LongWait wait;

  void configure(const BootstrapConfig& config);
  void set_names(const RankNames& given);
  ControlSettings control_settings(int64_t heartbeat_ns) const;
  // Reads what the mesh brings, and answers questions.
  void hear();
  void say_wait();
  Answer answer(const Question& question) const;
  Error blame(int32_t rank_awaited, const Error& own);
  Error ask_around(int32_t rank_awaited, const Error& own);
  void ask(int32_t rank_awaited, std::string why, int64_t waited_s);
  void post(const Inquiry::Letter& letter) { mesh->send_letter(letter.to, encode(letter.question)); }
  // Waits for an event. Returns kAborted, or blame() at the second call after the deadline: what arrived while this
  // rank had no processor still counts.
  Status turn(int64_t until_ns, uint64_t seq, bool barrier, bool& late);
  Status aborted();
};

ControlSettings Bootstrap::Impl::control_settings(int64_t heartbeat_ns) const {
  ControlSettings settings;
  settings.rank = rank;
  settings.ranks = nranks;
  settings.heartbeat_ns = heartbeat_ns;
  return settings;
}

void Bootstrap::Impl::configure(const BootstrapConfig& config) {
  rank = config.rank;
  nranks = config.nranks;
  abort = config.abort;
  deadline_ns = config.deadline_ns;
  timeout_ns = config.timeout_ns;
  if (config.awaited != nullptr) awaited = config.awaited;
  on_overdue = config.on_overdue;
  on_abort = config.on_abort;
  failure = config.failure;
  named = !config.names.empty();
  std::vector<std::string> known = config.names;
  for (int32_t r = 0; !named && r < nranks; ++r) known.push_back("rank " + std::to_string(r));
  names = std::move(known);
}

void Bootstrap::Impl::set_names(const RankNames& given) {
  if (!named) names = given;
  mesh->set_names(names);
}

Status Bootstrap::Impl::turn(int64_t until_ns, uint64_t seq, bool barrier, bool& late) {
  const int32_t peer = mesh->awaited(seq, barrier);
  *awaited = peer;
  if (late && peer >= 0) {
    const std::string me = names[static_cast<size_t>(rank)];
    return blame(peer,
                 {Code::kTimeout, "deadline passed after " + duration_text(timeout_ns) + " on " + me +
                                      " while the communicator was being made, awaiting rank " + std::to_string(peer)});
  }
  const int64_t now = monotonic_clock().now_ns();
  late = now >= until_ns;
  pollfd waiting{mesh->event_fd(), POLLIN, 0};
  const int64_t left_ms = late ? 0 : (until_ns - now) / 1'000'000 + 1;
  ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 20)));
  hear();
  say_wait();
  return aborted();
}

Status Bootstrap::Impl::aborted() {
  if (failure) TRY(failure());
  if (abort == nullptr || !abort->load()) return {};
  mesh->flood_error(on_abort ? on_abort() : giving_up(names[static_cast<size_t>(rank)]), rank);
  return Error{Code::kAborted, "the communicator was aborted"};
}

void Bootstrap::Impl::hear() {
  mesh->poll(monotonic_clock().now_ns());
  for (const ControlLetter& letter : mesh->take_letters(is_of_inquiry)) {
    if (const auto question = decode_question(letter.text, nranks)) {
      mesh->send_letter(letter.from, encode(answer(*question)));
    } else if (const auto told = decode_answer(letter.text, nranks); told && inquiry != nullptr) {
      auto next = inquiry->answered(letter.from, *told, monotonic_clock().now_ns());
      while (next && next->to == rank)
        next = inquiry->answered(rank, answer(next->question), monotonic_clock().now_ns());
      if (next) post(*next);
    }
  }
}

// This rank is creating the communicator and does nothing else.
Answer Bootstrap::Impl::answer(const Question& question) const {
  Answer answer;
  answer.id = question.id;
  if (question.operation.kind == CallKind::kCreation) answer.state = Answer::State::kActive;
  answer.in = kMaking;
  answer.awaited = *awaited;
  answer.description = "the creation of the communicator";
  if (answer.awaited >= 0) answer.awaited_name = names[static_cast<size_t>(answer.awaited)];
  return answer;
}

Error Bootstrap::Impl::blame(int32_t rank_awaited, const Error& own) {
  const Error error = on_overdue ? on_overdue(rank_awaited, own) : ask_around(rank_awaited, own);
  mesh->flood_error(error, rank);
  return error;
}

Error Bootstrap::Impl::ask_around(int32_t rank_awaited, const Error& own) {
  if (rank_awaited < 0 || rank_awaited == rank) return own;
  ask(rank_awaited, own.message, 0);
  while (true) {
    hear();
    Status told = aborted();
    if (told.ok()) told = mesh->status();
    if (!told.ok()) return told.error();
    if (auto verdict = inquiry->take_verdict(monotonic_clock().now_ns())) {
      verdict->host_answers = mesh->host_answers(verdict->silent, verdict->silent_ns);
      return {Code::kTimeout, verdict->sentence()};
    }
    pollfd waiting{mesh->event_fd(), POLLIN, 0};
    ::poll(&waiting, 1, 20);
  }
}

// An answer to an older inquiry is none to this one.
void Bootstrap::Impl::ask(int32_t rank_awaited, std::string why, int64_t waited_s) {
  inquiry = std::make_unique<Inquiry>(rank, names, ++inquiries << 16);
  post(inquiry->begin({kMaking, rank_awaited, timeout_ns, std::move(why), waited_s}, monotonic_clock().now_ns()));
}

// At the marks it asks around, and says for whom it waits when it knows, if it still does. A making that goes on, if
// slowly, is in no wait.
void Bootstrap::Impl::say_wait() {
  const int64_t now_ns = monotonic_clock().now_ns();
  const int32_t peer = *awaited;
  std::string at = peer < 0 || peer == rank ? "" : std::to_string(next_seq) + " " + std::to_string(peer);
  if (at != wait.at()) inquiry.reset();
  if (const int64_t waited_s = wait.look(std::move(at), now_ns); waited_s != 0)
    ask(peer, "the communicator is being made, awaiting rank " + std::to_string(peer), waited_s);
  auto verdict = inquiry == nullptr ? std::nullopt : inquiry->take_verdict(now_ns);
  if (!verdict) return;
  inquiry.reset();
  verdict->host_answers = mesh->host_answers(verdict->silent, verdict->silent_ns);
  LOG(kWarn, kBootstrap, "%s has waited %d s: %s", names[static_cast<size_t>(rank)].c_str(),
      static_cast<int>(verdict->waited_s), verdict->sentence().c_str());
}

BootstrapConfig bootstrap_config(const Config& config, int32_t nranks, int32_t rank, const UniqueIdBytes& id) {
  BootstrapConfig made;
  made.nranks = nranks;
  made.rank = rank;
  made.id = id;
  if (config.timeout_ns > 0) {
    made.deadline_ns = monotonic_clock().now_ns() + config.timeout_ns;
    made.timeout_ns = config.timeout_ns;
  }
  made.heartbeat_ns = config.heartbeat_ns;
  made.rail_timeout_ns = config.rail_timeout_ns;
  made.interfaces = config.socket_interfaces;
  made.family = config.socket_family;
  made.rails = config.rails;
  made.port_range = config.port_range;
  made.secret = config.secret;
  made.job = config.job;
  made.communicator_id = config.communicator_id;
  made.store = config.store;
  made.launcher = config.launcher;
  return made;
}

// A single rank without an id has no other rank to meet.
Result<std::unique_ptr<Bootstrap>> Bootstrap::alone(const BootstrapConfig& config) {
  TRY(check_place(config));
  auto ranks = TRY(join_in_process(config));
  return std::move(ranks[0]);
}

Bootstrap::Bootstrap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Bootstrap::~Bootstrap() = default;

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const BootstrapConfig& config) {
  TRY(check(config));
  if (config.nranks == 1 && is_zero(config.id)) return alone(config);
  TRY(handshake_probe());
  const WaitLimit limit{config.deadline_ns, config.abort};
  const bool by_store = is_zero(config.id) && config.communicator_id.empty() && !config.store.empty();
  Meeting meeting;
  std::string store;
  if (by_store) {
    meeting = TRY(meet_in_store(config, limit));
    store = meeting.store;
  } else {
    meeting = TRY(meet_at_root(config, limit));
  }
  auto bootstrap = TRY(join_at(config, std::move(meeting)));
  if (by_store) {
    TRY(bootstrap->barrier(config.deadline_ns));  // all ranks have read all files
    if (config.rank == 0) clean_store(store, bootstrap->job());
  }
  return bootstrap;
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::join_at(const BootstrapConfig& config, Meeting meeting) {
  TRY(handshake_probe());
  TRY(check(config));
  auto impl = std::make_unique<Impl>();
  impl->configure(config);
  impl->deadline_ns = std::min(config.deadline_ns, meeting.deadline_ns);
  impl->job = meeting.job;
  impl->secret = meeting.secret;
  impl->hold = std::move(meeting.hold);
  const WaitLimit limit{impl->deadline_ns, config.abort};
  const HostAddress first = meeting.listeners.front().listener.address;
  impl->mesh = TRY(connect_neighbours(config, meeting, limit));
  impl->local_ip = met_at(first, *impl->mesh);
  impl->listens = impl->mesh->moves();
  std::vector<std::string> names;
  for (int32_t r = 0; r < config.nranks; ++r) names.push_back(meeting.name(r));
  names[static_cast<size_t>(config.rank)] = own_rank_name(config.rank);
  impl->set_names(std::move(names));
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(impl)));
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::join_on_host(const BootstrapConfig& config, const JobId& job,
                                                           const std::vector<std::byte>& secret,
                                                           const HostAddress& local_ip, HostMeeting meeting) {
  TRY(check(config));
  auto impl = std::make_unique<Impl>();
  impl->configure(config);
  impl->job = job;
  impl->secret = secret;
  impl->local_ip = local_ip;
  impl->mesh = TRY(ControlMesh::create(impl->control_settings(config.heartbeat_ns), std::move(meeting.streams),
                                       meeting.addresses, config.names));
  impl->set_names(config.names);
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(impl)));
}

Result<std::vector<std::unique_ptr<Bootstrap>>> Bootstrap::join_in_process(const BootstrapConfig& config) {
  BootstrapConfig checked = config;
  checked.rank = 0;
  TRY(check(checked));
  const int steps = dissemination_steps(config.nranks);
  struct Connections {
    std::vector<ControlConnection> out, in;
  };
  std::vector<Connections> all(static_cast<size_t>(config.nranks));
  for (int k = 0; k < steps; ++k) {
    for (int32_t r = 0; r < config.nranks; ++r) {
      const auto to = static_cast<int32_t>((r + (int64_t{1} << k)) % config.nranks);
      auto [one, other] = TRY(connected_pair());
      all[static_cast<size_t>(r)].out.push_back({to, std::move(one)});
      all[static_cast<size_t>(to)].in.push_back({r, std::move(other)});
    }
  }
  JobId job{};
  std::vector<std::byte> secret(sizeof(JobSecret));
  random_bytes(secret);
  if (!crypto_built()) secret.clear();
  static std::atomic<uint64_t> made{0};
  job = job_id("in process " + std::to_string(process_token()) + " " + std::to_string(made.fetch_add(1)));
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  for (int32_t r = 0; r < config.nranks; ++r) {
    auto impl = std::make_unique<Impl>();
    impl->configure(config);
    impl->rank = r;
    impl->job = job;
    impl->secret = secret;
    Connections& own = all[static_cast<size_t>(r)];
    impl->mesh =
        TRY(ControlMesh::create(impl->control_settings(config.heartbeat_ns), std::move(own.out), std::move(own.in)));
    ranks.push_back(std::unique_ptr<Bootstrap>(new Bootstrap(std::move(impl))));
  }
  return ranks;
}

int64_t Bootstrap::deadline_ns() const {
  return impl_->deadline_ns;
}
int32_t Bootstrap::rank() const {
  return impl_->rank;
}
int32_t Bootstrap::nranks() const {
  return impl_->nranks;
}
const JobId& Bootstrap::job() const {
  return impl_->job;
}
const std::vector<std::byte>& Bootstrap::secret() const {
  return impl_->secret;
}
const HostAddress& Bootstrap::local_ip() const {
  return impl_->local_ip;
}

bool Bootstrap::listens() const {
  return impl_->listens;
}

void Bootstrap::set_abort(const std::atomic<bool>* abort) {
  impl_->abort = abort;
}

Result<std::vector<std::string>> Bootstrap::all_gather(const std::string& mine, int64_t deadline_ns) {
  if (mine.size() > kMaxBlobBytes)
    return Error{Code::kInternalError, "a blob of " + std::to_string(mine.size()) + " bytes is too long for bootstrap"};
  const uint64_t seq = impl_->next_seq++;
  impl_->mesh->start_all_gather(seq, mine);
  const ScopeExit over([this] { waits_for(-1); });
  bool late = false;
  while (true) {
    std::vector<std::string> blobs = TRY(impl_->mesh->all_gather_result(seq));
    if (!blobs.empty()) return blobs;
    TRY(impl_->turn(deadline_ns, seq, false, late));
  }
}

Status Bootstrap::agree(std::string_view function, const Facts& facts, const Status& own, int64_t deadline_ns) {
  const ExchangeBytes exchange = [&](const std::string& mine) -> Result<std::string> {
    std::string all;
    for (const std::string& blob : TRY(all_gather(mine, deadline_ns))) all += blob;
    return all;
  };
  return trestle::agree(function, facts, own, exchange, impl_->names);
}

Status Bootstrap::barrier(int64_t deadline_ns) {
  const uint64_t seq = impl_->next_seq++;
  impl_->mesh->start_barrier(seq);
  const ScopeExit over([this] { waits_for(-1); });
  bool late = false;
  while (!TRY(impl_->mesh->barrier_done(seq))) TRY(impl_->turn(deadline_ns, seq, true, late));
  return {};
}

void Bootstrap::set_names(const RankNames& names) {
  if (impl_->mesh) impl_->set_names(names);
}

Status Bootstrap::heard() {
  if (!impl_->mesh) return {};
  TRY(impl_->aborted());
  impl_->hear();
  impl_->say_wait();
  return impl_->mesh->status();
}

void Bootstrap::waits_for(int32_t rank) {
  *impl_->awaited = rank;
}

Error Bootstrap::blame(int32_t awaited, const Error& own) {
  return impl_->mesh ? impl_->blame(awaited, own) : own;
}

int Bootstrap::event_fd() const {
  return impl_->mesh ? impl_->mesh->event_fd() : -1;
}

Error Bootstrap::cause_of(const Error& own) {
  constexpr int64_t kCauseNs = 1'000'000'000;
  const int64_t until = monotonic_clock().now_ns() + kCauseNs;
  while (true) {
    const Status told = heard();
    if (!told.ok()) return told.error();
    const int64_t left_ns = until - monotonic_clock().now_ns();
    if (left_ns <= 0 || !impl_->mesh) return own;
    pollfd waiting{impl_->mesh->event_fd(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(left_ns / 1'000'000 + 1));
  }
}

void Bootstrap::fail(const Error& error) {
  if (impl_->mesh) impl_->mesh->flood_error(error, impl_->rank);
}

std::unique_ptr<ControlMesh> Bootstrap::take_mesh() {
  return std::move(impl_->mesh);
}

std::shared_ptr<RendezvousHold> Bootstrap::take_hold() {
  return std::move(impl_->hold);
}

}  // namespace trestle
