#include "comm/bootstrap/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "comm/bootstrap/dissemination.h"
#include "comm/bootstrap/meeting.h"
#include "comm/bootstrap/neighbours.h"
#include "comm/bootstrap/rendezvous_message.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

// Numbers of bootstrap's own exchanges; a communicator counts from 0 over the same mesh.
constexpr uint64_t kFirstSeq = uint64_t{1} << 62;

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

std::string ip_of(const SocketAddress& address) {
  std::string text = format_address(address);
  text.resize(text.rfind(':'));
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

class Bootstrap::Impl {
 public:
  int32_t rank = 0;
  int32_t nranks = 1;
  JobId job{};
  std::vector<std::byte> secret;
  std::string local_ip;
  const std::atomic<bool>* abort = nullptr;
  std::unique_ptr<ControlMesh> mesh;
  uint64_t next_seq = kFirstSeq;

  Status assemble(Neighbours neighbours, int64_t heartbeat_ns);
  // Waits for something to happen. kAborted; kTimeout at the second call after the deadline, so that what came while
  // this rank had no processor still counts.
  Status turn(int64_t deadline_ns, uint64_t seq, bool barrier, bool& late);
};

Status Bootstrap::Impl::assemble(Neighbours neighbours, int64_t heartbeat_ns) {
  ControlSettings settings;
  settings.rank = rank;
  settings.ranks = nranks;
  settings.heartbeat_ns = heartbeat_ns;
  mesh = TRY(ControlMesh::create(settings, std::move(neighbours.out), std::move(neighbours.in)));
  return {};
}

Status Bootstrap::Impl::turn(int64_t deadline_ns, uint64_t seq, bool barrier, bool& late) {
  if (abort != nullptr && abort->load()) {
    mesh->flood_abort();
    return Error{Code::kAborted, "the communicator was aborted"};
  }
  const int64_t now = monotonic_clock().now_ns();
  if (late) {
    Error error{Code::kTimeout, rank_list(mesh->missing(seq, barrier)) + " of " + std::to_string(nranks) +
                                    " had not reached an exchange of the communicator's creation in time"};
    mesh->flood_error(error, rank);
    return error;
  }
  late = now >= deadline_ns;
  pollfd waiting{mesh->event_fd(), POLLIN, 0};
  const int64_t left_ms = late ? 0 : (deadline_ns - now) / 1'000'000 + 1;
  ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 20)));
  mesh->poll(monotonic_clock().now_ns());
  return {};
}

BootstrapConfig bootstrap_config(const Config& config, int32_t nranks, int32_t rank, const UniqueIdBytes& id) {
  BootstrapConfig made;
  made.nranks = nranks;
  made.rank = rank;
  made.id = id;
  if (config.timeout_ns > 0) made.deadline_ns = monotonic_clock().now_ns() + config.timeout_ns;
  made.heartbeat_ns = config.heartbeat_ns;
  made.interfaces = config.socket_interfaces;
  made.family = config.socket_family;
  made.port_range = config.port_range;
  made.secret = config.secret;
  made.communicator_id = config.communicator_id;
  made.store = config.store;
  made.launcher = config.launcher;
  return made;
}

Bootstrap::Bootstrap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Bootstrap::~Bootstrap() = default;

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const BootstrapConfig& config) {
  TRY(handshake_probe());
  TRY(check(config));
  const WaitLimit limit{config.deadline_ns, config.abort};
  const bool by_store = is_zero(config.id) && config.communicator_id.empty() && !config.store.empty();
  Meeting meeting;
  if (by_store) {
    meeting = TRY(meet_in_store(config, limit));
  } else {
    const Root root = TRY(find_root(config, limit));
    meeting = TRY(meet_at_root(config, root, limit));
  }
  auto impl = std::make_unique<Impl>();
  impl->rank = config.rank;
  impl->nranks = config.nranks;
  impl->job = meeting.job;
  impl->secret = meeting.secret;
  impl->local_ip = ip_of(meeting.listener.address);
  impl->abort = config.abort;
  TRY(impl->assemble(TRY(connect_neighbours(config, meeting, limit)), config.heartbeat_ns));
  std::vector<std::string> names;
  for (int32_t r = 0; r < config.nranks; ++r) names.push_back(meeting.name(r));
  impl->mesh->set_names(std::move(names));
  auto bootstrap = std::unique_ptr<Bootstrap>(new Bootstrap(std::move(impl)));
  if (by_store) {
    TRY(bootstrap->barrier(config.deadline_ns));  // everybody has read everything
    if (config.rank == 0) clean_store(meeting.store);
  }
  return bootstrap;
}

Result<std::vector<std::unique_ptr<Bootstrap>>> Bootstrap::join_in_process(const BootstrapConfig& config) {
  BootstrapConfig checked = config;
  checked.rank = 0;
  TRY(check(checked));
  const int steps = dissemination_steps(config.nranks);
  std::vector<Neighbours> all(static_cast<size_t>(config.nranks));
  for (int k = 0; k < steps; ++k) {
    for (int32_t r = 0; r < config.nranks; ++r) {
      const auto to = static_cast<int32_t>((r + (int64_t{1} << k)) % config.nranks);
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        return Error{Code::kSystemError, std::string("socketpair: ") + std::strerror(errno)};
      all[static_cast<size_t>(r)].out.push_back({to, UniqueFd(pair[0])});
      all[static_cast<size_t>(to)].in.push_back({r, UniqueFd(pair[1])});
    }
  }
  JobId job{};
  std::vector<std::byte> secret(sizeof(JobSecret));
  random_bytes(secret);
  if (!crypto_built()) secret.clear();
  const std::string name = "in process " + std::to_string(process_token()) + " ";
  job = job_id(name + std::to_string(next_communicator("in process", 0, 0)));
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  for (int32_t r = 0; r < config.nranks; ++r) {
    auto impl = std::make_unique<Impl>();
    impl->rank = r;
    impl->nranks = config.nranks;
    impl->job = job;
    impl->secret = secret;
    impl->abort = config.abort;
    TRY(impl->assemble(std::move(all[static_cast<size_t>(r)]), config.heartbeat_ns));
    ranks.push_back(std::unique_ptr<Bootstrap>(new Bootstrap(std::move(impl))));
  }
  return ranks;
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
const std::string& Bootstrap::local_ip() const {
  return impl_->local_ip;
}

void Bootstrap::set_abort(const std::atomic<bool>* abort) {
  impl_->abort = abort;
}

Result<std::vector<std::string>> Bootstrap::all_gather(const std::string& mine, int64_t deadline_ns) {
  if (mine.size() > kMaxBlobBytes)
    return Error{Code::kInternalError, "a blob of " + std::to_string(mine.size()) + " bytes is too long for bootstrap"};
  const uint64_t seq = impl_->next_seq++;
  impl_->mesh->start_all_gather(seq, mine);
  bool late = false;
  while (true) {
    std::vector<std::string> blobs = TRY(impl_->mesh->all_gather_result(seq));
    if (!blobs.empty()) return blobs;
    TRY(impl_->turn(deadline_ns, seq, false, late));
  }
}

Status Bootstrap::barrier(int64_t deadline_ns) {
  const uint64_t seq = impl_->next_seq++;
  impl_->mesh->start_barrier(seq);
  bool late = false;
  while (!TRY(impl_->mesh->barrier_done(seq))) TRY(impl_->turn(deadline_ns, seq, true, late));
  return {};
}

void Bootstrap::set_names(std::vector<std::string> names) {
  if (impl_->mesh) impl_->mesh->set_names(std::move(names));
}

Status Bootstrap::heard() {
  if (!impl_->mesh) return {};
  if (impl_->abort != nullptr && impl_->abort->load()) return Error{Code::kAborted, "the communicator was aborted"};
  impl_->mesh->poll(monotonic_clock().now_ns());
  return impl_->mesh->status();
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

}  // namespace trestle
