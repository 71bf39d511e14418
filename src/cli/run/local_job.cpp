#include "cli/run/local_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kKillNs = 1'000'000'000;  // how long processes may take to end after SIGKILL
constexpr int kNotFound = 127;              // as in a shell
constexpr int kNotExecutable = 126;

// The launcher needs several descriptors per rank. Returns the old limit, which the ranks get.
rlimit raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  return limit;
}

std::string place_text(const Core& place) {
  std::string text = place.processors.size() == 1 ? "processor " : "processors ";
  for (size_t i = 0; i < place.processors.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(place.processors[i]);
  }
  return text + " of socket " + std::to_string(place.socket);
}

}  // namespace

Result<LocalJob::Parts> LocalJob::prepare(const RunOptions& options) {
  const rlimit descriptors = raise_descriptor_limit();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Leftovers leftovers;
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return Error{Code::kSystemError, std::string("/dev/null: ") + std::strerror(errno)};
  JobSignals signals = TRY(JobSignals::open());
  JobOutputs outputs = TRY(JobOutputs::open(options));
  RankInput input = TRY(RankInput::open());
  return Parts{leftovers,        std::move(signals), std::move(outputs), TRY(Guard::start()),
               std::move(input), std::move(nothing), descriptors};
}

LocalJob::LocalJob(const RunOptions& options, Environment environment, Parts parts)
    : options_(options),
      environment_(std::move(environment)),
      parts_(std::move(parts)),
      ranks_(parts_.guard.fd()),
      ending_(options, ranks_, parts_.outputs) {}

Status LocalJob::bind() {
  if (options_.bind == Bind::kNone) return {};
  const Result<std::vector<Core>> cores = usable_cores();
  if (cores.ok()) {
    binding_ = bind_ranks(options_.bind, static_cast<size_t>(options_.ranks()), cores.value(), claims_);
  } else if (options_.bind == Bind::kAuto) {
    binding_.note = cores.error().message + ": not bound";
  } else {
    return Error{Code::kInvalidArgument, "--bind: " + cores.error().message};
  }
  if (binding_.note.empty()) return {};
  if (binding_.asked || options_.verbose) parts_.outputs.say((binding_.asked ? "--bind core: " : "") + binding_.note);
  return {};
}

Result<int> LocalJob::run() {
  TRY(bind());
  int rank = 0;
  for (const RankProgram& program : options_.programs) {
    for (const int end = rank + program.ranks; rank < end; ++rank) {
      const Result<Spawned> started = start(program, rank);
      if (started.ok() && started.value().pid > 0) continue;
      kill_started();
      return started.ok() ? not_started(program, started.value()) : started.error();
    }
  }
  while (!ending_.over()) turn();
  if (ending_.failed()) end_leftovers();
  drain();
  const int status = ending_.finish();
  const bool read = flush();
  return read || status != 0 ? status : Ending::kTimedOut;
}

Result<Spawned> LocalJob::start(const RankProgram& program, int rank) {
  Environment environment = environment_;
  for (const auto& [name, value] : program.environment) environment[name] = value;
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
  RankOutput output = TRY(parts_.outputs.take_rank(rank));
  static const std::vector<int> anywhere;
  const bool bound = !binding_.places.empty();
  const Spawned spawned = spawn(
      {program.command,
       environment,
       {rank == 0 ? parts_.input.for_rank() : parts_.nothing.get(), output.for_rank[0].get(), output.for_rank[1].get()},
       bound ? binding_.places[static_cast<size_t>(rank)].processors : anywhere,
       parts_.descriptors,
       parts_.guard.fd()});
  if (rank == 0) parts_.input.started();
  if (spawned.pid < 0) return spawned;
  ranks_.add({{rank, spawned.pid}, std::move(output.streams), {}});
  if (options_.verbose) show(ranks_.all().back());
  return spawned;
}

void LocalJob::show(const Rank& rank) {
  const bool bound = !binding_.places.empty();
  const std::string where =
      bound ? "is bound to " + place_text(binding_.places[static_cast<size_t>(rank.name.rank)]) : "is not bound";
  parts_.outputs.say(name_text(rank.name) + " " + where);
}

// Kills the ranks that were started before another one failed to start.
void LocalJob::kill_started() {
  ranks_.tell(SIGKILL);
  while (ranks_.any_running()) turn_without_signals(kNoEnd);
  end_leftovers();
  drain();
  flush();
}

Result<int> LocalJob::not_started(const RankProgram& program, const Spawned& failed) {
  const std::string why = std::strerror(failed.number);
  switch (failed.failed) {
    case Spawned::Step::kExec:
      parts_.outputs.say(program.command.front() + " cannot be started: " + why);
      flush();
      return failed.number == ENOENT ? kNotFound : kNotExecutable;
    case Spawned::Step::kBind:
      return Error{Code::kSystemError, "a rank cannot be bound (use --bind none): " + why};
    case Spawned::Step::kGuard:
    case Spawned::Step::kFork:
      break;
  }
  return Error{Code::kSystemError, "no process can be started for a rank: " + why};
}

void LocalJob::wait(int64_t until_ns) {
  polled_.assign(1, {parts_.signals.fd(), POLLIN, 0});
  parts_.outputs.add_to(polled_);
  parts_.input.add_to(polled_);
  polled_streams_.clear();
  for (Rank& rank : ranks_.all()) {
    for (RankStream& stream : rank.streams) {
      if (!stream.wanted()) continue;
      polled_.push_back({stream.fd(), POLLIN, 0});
      polled_streams_.push_back(&stream);
    }
  }
  int timeout_ms = -1;
  if (until_ns != kNoEnd) {
    const int64_t left_ms = (until_ns - monotonic_clock().now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<int64_t>(left_ms, 0, 1'000'000));
  }
  ::poll(polled_.data(), polled_.size(), timeout_ms);
}

void LocalJob::turn() {
  wait(std::min(ending_.next_ns(), ranks_.next_ns()));
  parts_.outputs.write_some();
  parts_.input.pass_on();
  pass_on_output();
  take_signals();
  for (const Rank* rank : ranks_.reap()) {
    ending_.rank_ended(*rank);
    if (rank->name.rank == 0) parts_.input.end();
  }
  ending_.on_time();
}

// One turn after all processes have got SIGKILL. The user's signals have no effect any more.
void LocalJob::turn_without_signals(int64_t until_ns) {
  wait(until_ns);
  parts_.outputs.write_some();
  pass_on_output();
  parts_.signals.take();
  ranks_.reap();
}

void LocalJob::pass_on_output() {
  const size_t first = polled_.size() - polled_streams_.size();
  for (size_t i = 0; i < polled_streams_.size(); ++i) {
    if (polled_[first + i].revents != 0) polled_streams_[i]->pass_on();
  }
}

void LocalJob::take_signals() {
  for (const int number : parts_.signals.take()) {
    if (ends_job(number)) {
      ending_.signalled(number);
    } else if (number == SIGTSTP) {
      stop();
    } else {
      ranks_.signal(number);
      if (number == SIGCONT) parts_.input.resumed();
    }
  }
}

// Stops together with all ranks. Time limits do not run meanwhile.
void LocalJob::stop() {
  ranks_.signal(SIGTSTP);
  const int64_t before_ns = monotonic_clock().now_ns();
  raise(SIGSTOP);  // returns after SIGCONT, which is then passed on
  ending_.shift(monotonic_clock().now_ns() - before_ns);
}

// Each process that ends may leave others behind. A process that does not end after SIGKILL is given up.
void LocalJob::end_leftovers() {
  const int64_t until_ns = monotonic_clock().now_ns() + kKillNs;
  while (parts_.leftovers.kill(parts_.guard.pid()) && monotonic_clock().now_ns() < until_ns) {
    turn_without_signals(until_ns);
  }
}

// Passes on what ranks have written. Does not wait for leftover processes that still write.
void LocalJob::drain() {
  for (Rank& rank : ranks_.all()) {
    for (RankStream& stream : rank.streams) stream.drain(true);
  }
}

// Waits for a reader that does not read until the user ends that. A job with a time limit waits until the limit is over
// and nothing has been read for the grace period: then false.
bool LocalJob::flush() {
  int64_t until_ns = ending_.read_by_ns();
  while (parts_.outputs.pending()) {
    if (monotonic_clock().now_ns() >= until_ns) {
      parts_.outputs.give_up();
      return false;
    }
    wait(until_ns);
    if (parts_.outputs.write_some()) until_ns = ending_.read_by_ns();
    const std::vector<int> signals = parts_.signals.take();
    if (std::any_of(signals.begin(), signals.end(), ends_job)) break;
  }
  return true;
}

}  // namespace trestle
