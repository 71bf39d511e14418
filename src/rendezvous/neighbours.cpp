#include "rendezvous/neighbours.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/wait_marks.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/mesh_rails.h"
#include "rendezvous/rank_info.h"

namespace trestle {
namespace {

constexpr int64_t kGlanceNs = 20 * kMs;  // at the meeting place and the abort flag

class NeighbourWait {
 public:
  NeighbourWait(const BootstrapConfig& config, Meeting& meeting, const WaitLimit& limit)
      : config_(config), meeting_(meeting), limit_(limit) {}

  Result<std::unique_ptr<ControlMesh>> run() {
    Status joined = make_mesh();
    while (joined.ok() && !mesh_->unconnected().empty()) joined = turn();
    if (!joined.ok()) return given_up(joined.error());
    if (meeting_.report) meeting_.report({});
    return std::move(mesh_);
  }

 private:
  // By rank.
  Result<std::map<int32_t, std::string>> texts_of_neighbours() const {
    const std::vector<int32_t> ranks = mesh_neighbours(config_.rank, config_.nranks);
    CHECK(ranks.size() == meeting_.addresses.size(), "a meeting needs the addresses of all neighbours");
    std::map<int32_t, std::string> texts;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto places = parse_meeting_text(meeting_.addresses[i]);
      if (!places.ok())
        return Error{Code::kRemoteError,
                     meeting_.name(ranks[i]) + " does not say where it listens: " + places.error().message};
      texts[ranks[i]] = meeting_.addresses[i];
    }
    return texts;
  }

  Status make_mesh() {
    const auto texts = TRY(texts_of_neighbours());
    ControlSettings settings;
    settings.rank = config_.rank;
    settings.ranks = config_.nranks;
    settings.heartbeat_ns = config_.heartbeat_ns;
    settings.keeps_frames = true;
    settings.handshake_timeout_ns = config_.handshake_timeout_ns;
    std::vector<ControlConnection> out, in;
    const std::vector<int32_t> ranks = mesh_neighbours(config_.rank, config_.nranks);
    for (size_t i = 0; i < ranks.size(); ++i) (i < ranks.size() / 2 ? out : in).push_back({ranks[i]});
    mesh_ = TRY(ControlMesh::create(settings, std::move(out), std::move(in)));
    std::vector<std::string> names;
    for (int32_t r = 0; r < config_.nranks; ++r) names.push_back(meeting_.name(r));
    names[static_cast<size_t>(config_.rank)] = own_rank_name(config_.rank);
    mesh_->set_names(config_.names.empty() ? RankNames(std::move(names)) : RankNames(config_.names));
    const Credentials credentials{meeting_.secret, meeting_.job, config_.rank};
    auto rails = std::make_unique<MeshRails>(credentials, std::move(meeting_.listeners), texts);
    return mesh_->use_rails(std::move(rails), config_.rail_timeout_ns);
  }

  // Waits until something can move.
  Status turn() {
    if (limit_.aborted != nullptr && limit_.aborted->load()) {
      stopped_ = true;
      return Error{Code::kAborted, "the communicator was aborted"};
    }
    const int64_t now = monotonic_clock().now_ns();
    const int64_t left_ns = std::min(limit_.deadline_ns, meeting_.deadline_ns) - now;
    if (left_ns <= 0) return timed_out();
    say_wait(now);
    if (config_.awaited != nullptr) *config_.awaited = mesh_->unconnected().front();
    pollfd waiting{mesh_->event_fd(), POLLIN, 0};
    const int64_t due_ns = std::max<int64_t>(mesh_->next_due_ns() - now, 0);
    ::poll(&waiting, 1, static_cast<int>((std::min({left_ns, due_ns, kGlanceNs}) + kMs - 1) / kMs));
    mesh_->poll(monotonic_clock().now_ns());
    TRY(mesh_->status());
    return meeting_.failure && !mesh_->unconnected().empty() ? meeting_.failure() : Status();
  }

  std::string own_name() const {
    return config_.names.empty() ? own_rank_name(config_.rank) : config_.names[static_cast<size_t>(config_.rank)];
  }

  std::string names_of(const std::vector<int32_t>& ranks) const {
    std::string names;
    for (const int32_t rank : ranks) names += (names.empty() ? "" : ", ") + meeting_.name(rank);
    return names;
  }

  void say_wait(int64_t now) {
    if (const int64_t seconds = marks_.passed(now); seconds != 0)
      LOG(kWarn, kBootstrap, "%s has waited %d s for %s: the communicator is being made", own_name().c_str(),
          static_cast<int>(seconds), names_of(mesh_->unconnected()).c_str());
  }

  // Ranks that have reached this point answer their neighbours, even if they are late themselves.
  Error timed_out() const {
    const std::vector<int32_t> ranks = mesh_->unconnected();
    const std::string names = names_of(ranks);
    const bool one = ranks.size() == 1;
    const std::string refused = mesh_->accept_failure();
    const Error own{Code::kTimeout,
                    names + (one ? " is" : " are") + " frozen or very slow: no connection with " +
                        (one ? "it" : "them") + " was established in time while the communicator was being made" +
                        (refused.empty() ? "" : "; some connections could not be accepted: " + refused)};
    return config_.on_overdue ? config_.on_overdue(ranks.front(), own) : own;
  }

  Error given_up(const Error& error) {
    const Error told = !stopped_ ? error : config_.on_abort ? config_.on_abort() : giving_up(own_name());
    if (mesh_) mesh_->flood_error(told, config_.rank);
    if (mesh_) mesh_->close(0);
    if (meeting_.report) meeting_.report({told});
    return error;
  }

  const BootstrapConfig& config_;
  Meeting& meeting_;
  const WaitLimit& limit_;
  std::unique_ptr<ControlMesh> mesh_;
  WaitMarks marks_{monotonic_clock().now_ns()};
  bool stopped_ = false;  // by the abort flag
};

}  // namespace

Result<std::unique_ptr<ControlMesh>> connect_neighbours(const BootstrapConfig& config, Meeting& meeting,
                                                        const WaitLimit& limit) {
  return NeighbourWait(config, meeting, limit).run();
}

}  // namespace trestle
