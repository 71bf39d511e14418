// ControlMesh::Impl: links that move to another rail.
#include <sys/epoll.h>

#include <algorithm>

#include "base/log.h"
#include "control_mesh/control_mesh_impl.h"

namespace trestle {
namespace {

constexpr int64_t kGiveUpNs = 5'000'000'000;  // where there is no heartbeat time
// A busy host may be silent for this long. A silence_ns for data may be shorter: data is measured all the time, and it
// can return to a rail that it left too early.
constexpr int64_t kLeastSilenceNs = 200'000'000;

}  // namespace

Status ControlMesh::Impl::use_rails(std::unique_ptr<ControlRails> rails, int64_t silence_ns) {
  CHECK(!moves_, "a control mesh gets rails only once");
  std::vector<LinkMoves::Name> names(links_.size());
  for (const bool out : {true, false}) {
    const std::vector<size_t>& side = out ? out_ : in_;
    for (size_t k = 0; k < side.size(); ++k) {
      const ControlLink& link = links_[side[k]];
      names[side[k]] = {link.peer(), out, static_cast<uint8_t>(k), link.fd(), link.made};
    }
  }
  const int64_t give_up_ns = settings_.heartbeat_ns > 0 ? settings_.heartbeat_ns : kGiveUpNs;
  LinkMoves::Links& links = *this;
  rail_silence_ns_ = std::max(silence_ns, kLeastSilenceNs);
  if (rails != nullptr)
    moves_ = std::make_unique<LinkMoves>(
        links, std::move(rails), names,
        LinkMoves::Options{settings_.rank, epoll_.get(), give_up_ns, rail_silence_ns_, settings_.handshake_timeout_ns});
  if (met_) meet();
  return moves_ ? moves_->listen() : Status();
}

// All links have had their first connection.
void ControlMesh::Impl::meet() {
  met_ = true;
  bool any = false;
  for (size_t i = 0; i < links_.size(); ++i) {
    any = any || can_move(i);
    if (!can_move(i)) links_[i].keep_no_frames();
  }
  if (!any) moves_.reset();
  if (any && listener_ == nullptr) begin_beats();
}

bool ControlMesh::Impl::can_move(size_t link) const {
  return moves_ != nullptr && links_[link].made && moves_->can_move(link);
}

void ControlMesh::Impl::move(size_t link, const std::string& why, int64_t heard_ns, int64_t now_ns) {
  (void)part(link);
  moves_->begin(link, why, heard_ns, now_ns);
}

void ControlMesh::Impl::tend_moves(bool wanted, int64_t now_ns) {
  if (moves_ && (wanted || now_ns >= moves_->next_due_ns())) moves_->tend(now_ns);
  if (met_ || closed_) return;
  if (std::ranges::all_of(links_, &ControlLink::made)) meet();
  const auto gone = std::ranges::find_if(links_, &ControlLink::ended);
  if (met_ || gone == links_.end()) return;
  report(
      {false, settings_.rank, {Code::kRemoteError, name(gone->peer()) + " left while the communicator was being made"}},
      false);
}

uint64_t ControlMesh::Impl::part(size_t link) {
  ControlLink& at = links_[link];
  if (at.open()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at.fd(), nullptr);
  if (!at.away()) at.part();
  return at.came();
}

bool ControlMesh::Impl::resume(size_t link, UniqueFd socket, uint64_t came, const LinkMoves::Move& move) {
  ControlLink& at = links_[link];
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = link;
  const bool watched = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0;
  if (!watched || !at.resume(std::move(socket), came)) {
    at.end();
    report({false,
            settings_.rank,
            {Code::kRemoteError, "the control connection with " + name(at.peer()) + " cannot be continued on " +
                                     move.to + (watched ? ": what was lost is not kept" : ": epoll_ctl failed")}},
           false);
    return false;
  }
  watch_writable(link);
  at.last_heard_ns = clock_.now_ns();
  at.silence_told = false;
  at.moved = !move.from.empty();
  if (!at.moved) return true;
  LOG(kWarn, kBootstrap, "control: connection with %s moved from %s to %s: %s", name(at.peer()).c_str(),
      move.from.c_str(), move.to.c_str(), move.why.c_str());
  return true;
}

void ControlMesh::Impl::give_up(size_t link, const std::string& what, Code code) {
  links_[link].end();
  if (left_.contains(links_[link].peer()) || closed_) return;
  report({false, settings_.rank, {code, name(links_[link].peer()) + " " + what}}, false);
}

}  // namespace trestle
