#include "perf/train_step/rounds.h"

#include <cstdio>
#include <cstdlib>

#include "gradient/policy/policy.h"
#include "perf/driver/ending.h"
#include "perf/report/report.h"
#include "perf/train_step/links.h"
#include "perf/train_step/replay.h"
#include "perf/train_step/workload.h"

namespace trestle::perf {
namespace {

constexpr int kAllReduces = 3;

trestleGradCost_t given(const MessageCost& cost) {
  return {cost.startup_s, cost.per_byte_s};
}

// The value behind a name in a plan's JSON, up to the next comma; strings without their quotes.
std::string value_in(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  size_t from = json.find(key);
  if (from == std::string::npos) return "";
  from = json.find_first_not_of(" \"", from + key.size());
  const size_t end = from == std::string::npos ? from : json.find_first_of(",}\"", from);
  return end == std::string::npos ? "" : json.substr(from, end - from);
}

std::string plan_of(trestleGrad_t grad) {
  size_t size = 0;
  require(trestleGradPlanJson(grad, nullptr, &size));
  std::string text(size, '\0');
  require(trestleGradPlanJson(grad, text.data(), &size));
  return text;
}

trestleGradStats_t statistics_of(trestleGrad_t grad) {
  trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
  require(trestleGradGetStats(grad, &stats));
  return stats;
}

// Owns the scheduler of one rank.
class Rounds {
 public:
  Rounds(Ranks& ranks, const TrainStepArguments& arguments, GradientWorkload& workload)
      : ranks_(ranks),
        arguments_(arguments),
        workload_(workload),
        comm_(ranks.states().front().comm),
        rank_(ranks.states().front().rank),
        links_(comm_, rank_, arguments.links),
        gradients_(workload, arguments.apart, arguments.check, rank_),
        report_{arguments, workload, ranks.layout().nranks(), 0, {}} {}
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds() { require(trestleGradDestroy(grad_)); }

  TrainStepReport run();

 private:
  double all_reduce_s();
  void make_expected();
  void create();
  void take_times(Replay& replay);
  bool plan(PolicyOutcome& outcome);
  void run_policy(Replay& replay, PolicyOutcome& outcome);
  void count(const trestleGradStats_t& before, const trestleGradStats_t& warm, PolicyOutcome& outcome) const;
  void collect(const Replay& replay, double iteration_s, PolicyOutcome& outcome);

  Ranks& ranks_;
  const TrainStepArguments& arguments_;
  GradientWorkload& workload_;
  const trestleComm_t comm_;
  const int rank_;
  const LinkComms links_;
  StepGradients gradients_;
  trestleGrad_t grad_ = nullptr;
  TrainStepReport report_;
};

// The median time of all bytes in one message, of the slowest rank.
double Rounds::all_reduce_s() {
  std::vector<float> all(workload_.bytes() / sizeof(float));
  const trestleStream_t stream = ranks_.states().front().stream;
  std::vector<double> seconds;
  for (int i = 0; i <= kAllReduces; ++i) {
    ranks_.barrier();
    const int64_t begin = StepClock::now_ns();
    require(trestleAllReduce(all.data(), all.data(), all.size(), trestleFloat32, trestleSum, comm_, stream), comm_);
    ranks_.wait();
    if (i > 0) seconds.push_back(1e-9 * static_cast<double>(StepClock::now_ns() - begin));
  }
  return ranks_.combine(median_of(seconds), Combine::kMax);
}

void Rounds::make_expected() {
  const trestleStream_t stream = ranks_.states().front().stream;
  for (uint64_t variant = 0; variant < StepGradients::kVariants; ++variant) {
    require(trestleAllReduce(gradients_.contributed(variant), gradients_.expected(variant), gradients_.elements(),
                             trestleFloat32, trestleSum, comm_, stream),
            comm_);
  }
  ranks_.wait();
}

void Rounds::create() {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  if ((arguments_.allow & kLibertyStale) != 0) config.allow |= trestleGradAllowStale;
  if ((arguments_.allow & kLibertyCompress) != 0) config.allow |= trestleGradAllowCompression;
  require(trestleGradCreate(&grad_, links_.all().data(), static_cast<int>(links_.all().size()), &config), comm_);
  for (uint32_t i = 0; i < workload_.tensors.size(); ++i) {
    int number = 0;
    require(trestleGradRegister(grad_, workload_.tensors[i].name.c_str(), gradients_.count(i), trestleFloat32,
                                gradients_.tensor(i), nullptr, &number));
  }
}

void Rounds::take_times(Replay& replay) {
  if (!arguments_.cost) {
    require(trestleGradProfileBegin(grad_));
    replay.begin(false);
    for (int i = 0; i < arguments_.profile_steps; ++i) replay.step(true);
    require(trestleGradProfileEnd(grad_));
    return;
  }
  std::vector<double> forward, backward;
  for (const GradientTensor& tensor : workload_.tensors) {
    forward.push_back(tensor.forward_s);
    backward.push_back(tensor.backward_s);
  }
  const MessageCost& whole = *arguments_.cost;
  const trestleGradCost_t all_reduce = given(whole);
  const trestleGradCost_t half =
      given(arguments_.cost_half.value_or(MessageCost{whole.startup_s / 2, whole.per_byte_s / 2}));
  require(trestleGradSetTimes(grad_, forward.data(), backward.data(), &all_reduce, &half, &half));
}

// False: the scheduler refuses the policy. It does so on all ranks.
bool Rounds::plan(PolicyOutcome& outcome) {
  if (!outcome.refused.empty()) return false;
  const trestleResult_t result = trestleGradPlan(grad_, outcome.policy.c_str());
  if (result == trestleInvalidUsage || result == trestleInvalidArgument) {
    outcome.refused = trestleGetLastError(nullptr);
    return false;
  }
  require(result);
  const std::string text = plan_of(grad_);
  outcome.chosen = value_in(text, "policy");
  outcome.simulated_s = std::strtod(value_in(text, "iteration_s").c_str(), nullptr);
  outcome.simulated_exposed_s = std::strtod(value_in(text, "exposed_s").c_str(), nullptr);
  outcome.simulated_updates = std::strtod(value_in(text, "updates_per_iteration").c_str(), nullptr);
  return true;
}

void Rounds::run_policy(Replay& replay, PolicyOutcome& outcome) {
  if (!plan(outcome)) return;
  ranks_.barrier();
  const trestleGradStats_t before = statistics_of(grad_);
  // Delayed updates bring sums of several steps, or none. Of compressed ones some elements come in later steps.
  outcome.delayed = before.age > 0;
  outcome.compared = arguments_.check && !outcome.delayed && before.ratio == 1;
  replay.begin(outcome.compared);
  for (int i = 0; i < arguments_.warmup; ++i) replay.step(false);
  replay.forget_calls();
  const trestleGradStats_t warm = statistics_of(grad_);
  const int64_t begin = replay.end_ns();
  for (int i = 0; i < arguments_.steps; ++i) replay.step(false);
  const double seconds = 1e-9 * static_cast<double>(replay.end_ns() - begin) / arguments_.steps;
  replay.finish();
  count(before, warm, outcome);  // of the steps alone
  // A delayed plan has messages under way until it is drained. While gradients are pending, the scheduler takes no
  // other plan, and the communicators take no collectives of this program.
  require(trestleGradDrain(grad_, nullptr));
  collect(replay, seconds, outcome);
}

// Messages from the first step on: where the warm-up ends, some are under way. Updates only behind it: the first ones
// of a delayed plan have nothing in them.
void Rounds::count(const trestleGradStats_t& before, const trestleGradStats_t& warm, PolicyOutcome& outcome) const {
  const trestleGradStats_t now = statistics_of(grad_);
  const auto per_step = [&now](uint64_t trestleGradStats_t::*count, const trestleGradStats_t& since) {
    return static_cast<double>(now.*count - since.*count) / static_cast<double>(now.steps - since.steps);
  };
  outcome.messages = per_step(&trestleGradStats_t::messages, before);
  outcome.bytes = per_step(&trestleGradStats_t::bytes, before);
  outcome.copied_bytes = per_step(&trestleGradStats_t::copiedBytes, before);
  outcome.updates = outcome.delayed ? per_step(&trestleGradStats_t::delayedUpdates, warm) : 1;
}

// Collective.
void Rounds::collect(const Replay& replay, double iteration_s, PolicyOutcome& outcome) {
  const std::vector<double> sums =
      ranks_.combine({iteration_s, replay.late_ns() * 1e-9, static_cast<double>(replay.wrong())}, Combine::kSum);
  outcome.iteration_s.push_back(sums[0] / report_.ranks);
  outcome.late_s += sums[1] / report_.ranks / arguments_.rounds;
  outcome.wrong += static_cast<uint64_t>(sums[2]);
  for (const std::vector<double>& calls : ranks_.gather(replay.ready_ns())) {
    if (ranks_.prints()) outcome.ready_ns.insert(outcome.ready_ns.end(), calls.begin(), calls.end());
  }
}

TrainStepReport Rounds::run() {
  if (arguments_.check) make_expected();
  report_.all_reduce_s = all_reduce_s();
  if (arguments_.balance > 0) {
    const double compute_s = workload_.forward_s() + workload_.backward_s();
    scale_compute(workload_, report_.all_reduce_s / arguments_.balance / compute_s);
  }
  if (ranks_.prints() && !arguments_.json) {
    for (const std::string& text : beginning_lines(report_)) print_line(text);
  }
  create();
  Replay replay(grad_, workload_, gradients_, arguments_.check, rank_ == 0 ? arguments_.spoil : 0);
  take_times(replay);
  for (const std::string& policy : arguments_.policies) {
    report_.policies.emplace_back().policy = policy;
  }
  // Each round begins with another policy, so that none always follows the same one.
  const size_t policies = report_.policies.size();
  for (int round = 0; round < arguments_.rounds; ++round) {
    for (size_t i = 0; i < policies; ++i) {
      run_policy(replay, report_.policies[(i + static_cast<size_t>(round)) % policies]);
    }
  }
  // On every rank: each compares its own copies.
  if (const auto& wrong = gradients_.first())
    std::fprintf(stderr, "# rank %d: %s\n", rank_, wrong_text(*wrong, workload_).c_str());
  ranks_.barrier();
  return report_;
}

}  // namespace

TrainStepReport measure_train_steps(Ranks& ranks, const TrainStepArguments& arguments, GradientWorkload& workload) {
  return Rounds(ranks, arguments, workload).run();
}

}  // namespace trestle::perf
