#include "control_mesh/control_mesh.h"

#include <poll.h>

#include <algorithm>

#include "base/rank_names.h"
#include "control_mesh/control_mesh_impl.h"
#include "transport/socket/socket.h"

namespace trestle {

ControlMesh::ControlMesh(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControlMesh::~ControlMesh() {
  close(0);
}

Result<std::unique_ptr<ControlMesh>> ControlMesh::create(const ControlSettings& settings,
                                                         std::vector<ControlConnection> out,
                                                         std::vector<ControlConnection> in) {
  auto impl = std::make_unique<Impl>(settings, false);
  {
    const MutexLock lock(impl->mutex_);
    TRY(impl->add_links(std::move(out), std::move(in)));
  }
  return std::unique_ptr<ControlMesh>(new ControlMesh(std::move(impl)));
}

Result<std::unique_ptr<ControlMesh>> ControlMesh::create(const ControlSettings& settings,
                                                         std::unique_ptr<HostStreams> streams,
                                                         const std::vector<std::string>& addresses,
                                                         const std::vector<std::string>& names) {
  auto impl = std::make_unique<Impl>(settings, true);
  {
    const MutexLock lock(impl->mutex_);
    TRY(impl->add_streams(std::move(streams), addresses, names));
  }
  return std::unique_ptr<ControlMesh>(new ControlMesh(std::move(impl)));
}

void ControlMesh::on_arrival(std::function<void()> ring) {
  const MutexLock lock(impl_->mutex_);
  if (impl_->streams_) impl_->streams_->on_arrival(std::move(ring));
}

void ControlMesh::start(ControlListener* listener) {
  const MutexLock lock(impl_->mutex_);
  impl_->listener_ = listener;
  impl_->begin_beats();
}

Status ControlMesh::use_rails(std::unique_ptr<ControlRails> rails, int64_t silence_ns) {
  const MutexLock lock(impl_->mutex_);
  return impl_->use_rails(std::move(rails), silence_ns);
}

std::vector<int32_t> ControlMesh::unconnected() const {
  const MutexLock lock(impl_->mutex_);
  std::set<int32_t> peers;
  for (const ControlLink& link : impl_->links_) {
    if (!link.open()) peers.insert(link.peer());
  }
  return {peers.begin(), peers.end()};
}

std::string ControlMesh::accept_failure() const {
  const MutexLock lock(impl_->mutex_);
  return impl_->moves_ ? impl_->moves_->accept_failure() : "";
}

bool ControlMesh::moves() const {
  const MutexLock lock(impl_->mutex_);
  return impl_->moves_ != nullptr;
}

std::vector<HostAddress> ControlMesh::reached_at() const {
  const MutexLock lock(impl_->mutex_);
  std::vector<HostAddress> addresses;
  for (const size_t link : impl_->in_) {
    const HostAddress here = local_address(impl_->links_[link].fd());
    if (here.is_known()) addresses.push_back(here);
  }
  return addresses;
}

void ControlMesh::set_names(const RankNames& names) {
  const MutexLock lock(impl_->mutex_);
  CHECK(names.size() == impl_->names_.size(), "the control mesh needs a name for every rank");
  impl_->names_ = names;
  // The failure noticed so far was described with the old names.
  if (!impl_->failure_) return;
  const std::string own = impl_->name(impl_->settings_.rank);
  if (auto told = in_numbers_of(impl_->names_, own, impl_->failure_->error.message))
    impl_->failure_->error.message = std::move(*told);
}

int ControlMesh::event_fd() const {
  const MutexLock lock(impl_->mutex_);
  return impl_->streams_ ? impl_->streams_->event_fd() : impl_->epoll_.get();
}

void ControlMesh::poll(int64_t now_ns) {
  std::deque<Impl::Event> events;
  ControlListener* listener = nullptr;
  std::optional<Impl::Failure> failure;
  {
    const MutexLock lock(impl_->mutex_);
    if (impl_->closed_) return;
    impl_->poll_links(now_ns);
    impl_->beat(now_ns);
    listener = impl_->listener_;
    if (listener == nullptr) return;
    events.swap(impl_->events_);
    if (!events.empty()) failure = impl_->failure_;
  }
  for (const Impl::Event& event : events) {
    if (event.kind == Impl::Event::Kind::kBye)
      listener->on_bye(event.rank, event.by_exit);
    else if (event.kind == Impl::Event::Kind::kLetter)
      listener->on_letter(event.rank, event.text);
    else if (failure->abort)
      listener->on_abort(failure->origin);
    else
      listener->on_error(failure->error, failure->origin);
  }
}

int64_t ControlMesh::next_due_ns() const {
  const MutexLock lock(impl_->mutex_);
  return impl_->next_due_ns();
}

void ControlMesh::flood_error(const Error& error, int32_t failed_rank) {
  const MutexLock lock(impl_->mutex_);
  impl_->report({false, failed_rank, error}, true);
}

void ControlMesh::flood_abort() {
  const MutexLock lock(impl_->mutex_);
  const int32_t rank = impl_->settings_.rank;
  impl_->report({true, rank, {Code::kAborted, impl_->name(rank) + " aborted the communicator"}}, true);
}

void ControlMesh::send_letter(int32_t to, const std::string& text) {
  const MutexLock lock(impl_->mutex_);
  impl_->send_letter(to, text);
}

std::vector<ControlLetter> ControlMesh::take_letters(bool (*of_kind)(const std::string& text)) {
  const MutexLock lock(impl_->mutex_);
  std::vector<ControlLetter> letters;
  const auto wanted = [of_kind](const Impl::Event& event) {
    return event.kind == Impl::Event::Kind::kLetter && of_kind(event.text);
  };
  for (const Impl::Event& event : impl_->events_) {
    if (wanted(event)) letters.push_back({event.rank, event.text});
  }
  std::erase_if(impl_->events_, wanted);
  return letters;
}

void ControlMesh::start_all_gather(uint64_t seq, std::string mine) {
  const MutexLock lock(impl_->mutex_);
  impl_->start_gather({false, seq}, std::move(mine));
}

Result<std::vector<std::string>> ControlMesh::all_gather_result(uint64_t seq) {
  const MutexLock lock(impl_->mutex_);
  Dissemination* gather = TRY(impl_->gather_if_done({false, seq}));
  if (gather == nullptr) return std::vector<std::string>{};
  std::vector<std::string> blobs = gather->take_blobs();
  impl_->gathers_.erase({false, seq});
  return blobs;
}

void ControlMesh::start_barrier(uint64_t seq) {
  const MutexLock lock(impl_->mutex_);
  impl_->start_gather({true, seq}, "");
}

Result<bool> ControlMesh::barrier_done(uint64_t seq) {
  const MutexLock lock(impl_->mutex_);
  const bool done = TRY(impl_->gather_if_done({true, seq})) != nullptr;
  if (done) impl_->gathers_.erase({true, seq});
  return done;
}

int32_t ControlMesh::awaited(uint64_t seq, bool barrier) const {
  const MutexLock lock(impl_->mutex_);
  return impl_->awaited({barrier, seq});
}

std::optional<bool> ControlMesh::host_answers(int32_t rank, int64_t within_ns) const {
  const MutexLock lock(impl_->mutex_);
  return impl_->host_answers(rank, within_ns);
}

Status ControlMesh::status() const {
  const MutexLock lock(impl_->mutex_);
  if (impl_->failure_) return impl_->failure_->error;
  return {};
}

void ControlMesh::close(int linger_ms, bool by_exit) {
  // A link that is away has not sent the failure yet. If it ended now, the peer would take this rank for dead.
  constexpr int64_t kFailureLingerNs = 250'000'000;
  const int64_t begun = monotonic_clock().now_ns();
  {
    const MutexLock lock(impl_->mutex_);
    if (impl_->closed_) return;
    impl_->say_bye(by_exit);
    impl_->closed_ = true;
    impl_->listener_ = nullptr;
  }
  while (true) {
    {
      const MutexLock lock(impl_->mutex_);
      if (impl_->drained()) return impl_->end_links();
      const bool holds_up = impl_->failure_ && std::ranges::any_of(impl_->links_, &ControlLink::away);
      const int64_t linger_ns = std::max(int64_t{linger_ms} * 1'000'000, holds_up ? kFailureLingerNs : 0);
      if (monotonic_clock().now_ns() - begun >= linger_ns) return impl_->end_links();
    }
    ::poll(nullptr, 0, 1);  // acknowledgements raise no event
  }
}

}  // namespace trestle
