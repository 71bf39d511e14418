#include "api/gradient_links.h"

#include <sys/random.h>

#include <algorithm>

#include "api/background.h"
#include "base/clock.h"

namespace trestle {
namespace {

// The last notices of a rank may arrive after its goodbye.
constexpr int64_t kLeaverNs = 1'000'000'000;

using Communicators = std::vector<std::shared_ptr<Communicator>>;

class CommunicatorLinks final : public LinkAccess {
 public:
  explicit CommunicatorLinks(const Communicators& all) : communicators_(all.begin(), all.end()) {
    place_ = {all.front()->rank(), all.front()->ranks(), {}};
    for (const auto& one : all) place_.links.push_back(to_hex(one->membership().job()));
  }

  void on_failure(std::function<void(const Error&)> function) override {
    for (const auto& one : communicators_) {
      if (const auto communicator = one.lock()) registrations_.push_back(communicator->on_failure(function));
    }
  }
  void fail(const Error& error) override {
    for (const auto& one : communicators_) {
      const auto communicator = one.lock();
      if (communicator != nullptr && communicator->engine().failed()) return;
    }
    for (const auto& one : communicators_) {
      const auto communicator = one.lock();
      if (communicator != nullptr) communicator->engine().fail_of_user(error);
    }
  }
  void fail_without_memory() override {
    for (const auto& one : communicators_) {
      if (const auto communicator = one.lock()) communicator->engine().fail_without_memory();
    }
  }
  void fail_link(size_t link, const Error& error) override {
    const auto communicator = communicators_[link].lock();
    if (communicator != nullptr && !communicator->engine().failed()) communicator->engine().fail_of_user(error);
  }
  Place place() const override { return place_; }
  uint64_t unique_number() override {
    uint64_t number = 0;
    CHECK(::getrandom(&number, sizeof number, 0) == sizeof number, "the system has no random numbers");
    return number;
  }
  void leave_notice(size_t link, int to, const std::string& text) override {
    if (const auto communicator = communicators_[link].lock()) communicator->notices().leave(to, text);
  }
  std::string latest_notice(size_t link, int from) const override {
    const auto communicator = communicators_[link].lock();
    return communicator == nullptr ? "" : communicator->notices().latest(from);
  }
  Status wait(const char* function, const std::function<bool()>& done, const std::function<int()>& awaited) override;

 private:
  Result<Communicators> living() const;

  const std::vector<std::weak_ptr<Communicator>> communicators_;
  Place place_;
  std::vector<std::unique_ptr<FailureListeners::Registration>> registrations_;
};

// One wait of a thread for notices.
class NoticeWait {
 public:
  NoticeWait(const Communicators& all, const char* function)
      : all_(all), function_(function), deadline_ns_(deadline_of(first().membership().settings())) {
    for (const auto& one : all_) sleeps_.push_back(std::make_unique<Notices::Wait>(one->notices()));
  }
  Communicator& first() const { return *all_.front(); }
  // Why the wait must end although the notices have not come; success: it goes on.
  Status look(int awaited);

 private:
  Status fail_first(Error error) const {
    first().engine().fail(std::move(error));
    return *first().failure();
  }

  const Communicators& all_;
  const std::string function_;
  const int64_t deadline_ns_;
  std::vector<std::unique_ptr<Notices::Wait>> sleeps_;
  int leaver_ = -1;  // an awaited rank that has left; -1: none
  int64_t left_ns_ = 0;
};

Status NoticeWait::look(int awaited) {
  for (const auto& one : all_) TRY(one->check_open());
  const int64_t now_ns = monotonic_clock().now_ns();
  const Membership& ranks = first().membership();
  if (now_ns > deadline_ns_) {
    const std::string late = first().watch().late_text(ranks.settings().config.timeout_ns, function_);
    return fail_first({Code::kTimeout, late + ", awaiting " + ranks.name_of(awaited)});
  }
  const bool left = std::ranges::all_of(all_, [&](const auto& one) { return one->leaver(awaited).has_value(); });
  if (!left) {
    leaver_ = -1;
    return {};
  }
  if (leaver_ != awaited) left_ns_ = now_ns;
  leaver_ = awaited;
  if (now_ns - left_ns_ <= kLeaverNs) return {};
  return fail_first({Code::kRemoteError, *first().leaver(awaited) + "; on " + ranks.own_name() + " " + function_});
}

Result<Communicators> CommunicatorLinks::living() const {
  Communicators all;
  for (const auto& one : communicators_) {
    all.push_back(one.lock());
    if (all.back() == nullptr) return invalid_usage("a communicator of the scheduler was destroyed");
  }
  return all;
}

Status CommunicatorLinks::wait(const char* function, const std::function<bool()>& done,
                               const std::function<int()>& awaited) {
  const Communicators all = TRY(living());
  NoticeWait wait(all, function);
  const std::shared_ptr<Engine> only = all.size() == 1 ? all[0]->engine().shared_from_this() : nullptr;
  bool came = false;
  Status status;
  const auto look = [&] {
    if (!came && status.ok()) came = done();
    if (!came && status.ok()) status = wait.look(awaited());
    return came || !status.ok();
  };
  Progress::process().wait(look, [&only] { return only; });
  return status;
}

}  // namespace

Result<std::unique_ptr<LinkAccess>> make_link_access(const std::vector<trestleComm_t>& comms) {
  Communicators all;
  for (const trestleComm_t comm : comms) {
    Use use(comm);
    TRY(check_ready(use, "GradCreate"));
    all.push_back(use.object());
  }
  return std::unique_ptr<LinkAccess>(std::make_unique<CommunicatorLinks>(all));
}

}  // namespace trestle
