#include "cli/run/ending.h"

#include <signal.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/config/value_text.h"
#include "cli/run/job_signals.h"
#include "cli/run/rank_end.h"

namespace trestle {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int64_t now_ns() {
  return monotonic_clock().now_ns();
}

int64_t after(int64_t time_ns) {
  const int64_t now = now_ns();
  return time_ns > kNever - now ? kNever : now + time_ns;
}

}  // namespace

Ending::Ending(const RunOptions& options, Ranks& ranks, JobOutputs& outputs)
    : options_(options),
      ranks_(ranks),
      outputs_(outputs),
      step_ends_ns_(kNever),
      limit_ns_(options.timeout_ns == 0 ? kNever : after(options.timeout_ns)) {}

void Ending::begin(Step step) {
  step_ = step;
  step_ends_ns_ = step == Step::kKilled ? kNever : after(options_.grace_ns);
}

void Ending::rank_ended(const Rank& rank) {
  if (rank.end->ok()) return;
  const std::string sentence = name_text(rank.name) + " " + end_text(*rank.end);
  const int signal = rank.end->signal;
  const bool expected = rank.told && (signal == 0 || signal == SIGKILL || ends_job(signal));
  if (!expected) {
    outputs_.say(sentence);
    ++failures_;
  }
  if (!cause_) cause_ = Cause{"has failed: " + sentence, rank.end->status()};
  if (step_ == Step::kRunning) begin(Step::kMoment);
}

void Ending::signalled(int number) {
  const std::string name = signal_text(number);
  if (user_has_signalled_ || step_ == Step::kKilled) return kill_all("a second signal, " + name);
  user_has_signalled_ = true;
  if (!cause_) cause_ = Cause{"was ended by " + name, 128 + number};
  outputs_.say(name + " is passed on to " + names_text(ranks_.present()) + "; again: SIGKILL");
  ranks_.tell(number);
  told_by_ = name;
  begin(Step::kTold);
}

void Ending::kill_all(const std::string& why) {
  const std::vector<RankName> present = ranks_.present();
  if (!present.empty()) outputs_.say(why + ": SIGKILL to " + names_text(present));
  ranks_.tell(SIGKILL);
  begin(Step::kKilled);
}

std::string Ending::no_end_after(const std::string& what) const {
  if (options_.grace_ns == 0) return "--grace 0 leaves no time after " + what;
  return "no end within " + duration_text(options_.grace_ns) + " of " + what;
}

void Ending::on_time() {
  if (over()) return;
  const int64_t now = now_ns();
  const bool at_limit = step_ == Step::kRunning && now >= limit_ns_;
  const bool step_over = now >= step_ends_ns_;
  if (step_over && step_ == Step::kTold) return kill_all(no_end_after(told_by_));
  if (!at_limit && !(step_over && step_ == Step::kMoment)) return;
  const std::string ranks = names_text(ranks_.present());
  if (at_limit) {
    const std::string sentence = "has not ended within " + duration_text(options_.timeout_ns);
    outputs_.say("the job " + sentence + ": SIGTERM to " + ranks);
    cause_ = Cause{sentence, kTimedOut};
  } else {
    outputs_.say(no_end_after("the failure") + ": SIGTERM to " + ranks);
  }
  ranks_.tell(SIGTERM);
  begin(Step::kTold);
}

void Ending::shift(int64_t stopped_ns) {
  for (int64_t* time_ns : {&step_ends_ns_, &limit_ns_}) {
    if (*time_ns < kNever - stopped_ns) *time_ns += stopped_ns;
  }
}

int64_t Ending::next_ns() const {
  return std::min(step_ends_ns_, step_ == Step::kRunning ? limit_ns_ : kNever);
}

bool Ending::over() const {
  if (ranks_.any_running()) return false;
  return step_ != Step::kTold || ranks_.present().empty();
}

int64_t Ending::read_by_ns() const {
  return limit_ns_ == kNever ? kNever : std::max(limit_ns_, after(options_.grace_ns));
}

std::string Ending::what_others_did() const {
  int told = 0;
  for (const Rank& rank : ranks_.all()) told += rank.told ? 1 : 0;
  std::string text;
  if (failures_ > 1) text += "; " + std::to_string(failures_ - 1) + " failed after it";
  if (told > 0) text += "; " + std::to_string(told) + (told == 1 ? " was ended" : " were ended");
  return text;
}

int Ending::finish() {
  const std::string lost = outputs_.failure();
  if (!lost.empty()) outputs_.say(lost);
  if (!cause_) return lost.empty() ? 0 : 1;
  const int ranks = options_.ranks();
  outputs_.say("the job of " + std::to_string(ranks) + (ranks == 1 ? " rank " : " ranks ") + cause_->sentence +
               what_others_did() + "; exit status " + std::to_string(cause_->status));
  return cause_->status;
}

}  // namespace trestle
