#include "sched/policy/local_search.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/rng.h"
#include "sched/policy/order_rules.h"

namespace trestle {
namespace {

constexpr uint64_t kSeed = 12345;
constexpr size_t kHistory = 20;         // past times that a change is compared with
constexpr uint64_t kSmallestPart = 16;  // no chunk is smaller than an equal one divided by this
// Evaluations without a better time before changes are accepted regardless of their time.
constexpr uint64_t kPatience = 1000;
constexpr uint64_t kKicks = 12;  // evaluations with such changes
constexpr uint32_t kRuleChangeOneIn = 8;
constexpr size_t kFarthest = 3;  // largest distance that a phase moves in a sequence

// The base of both searches: the chunks, their costs, and late acceptance.
class Climber {
 public:
  Climber(const SearchRequest& request, std::vector<ChunkOrders> start)
      : request_(request), rng_(kSeed), current_(std::move(start)) {
    const size_t count = request.loads.dimensions();
    for (size_t d = 0; d < count; ++d) links_[request.loads.dimension(d)] = static_cast<uint8_t>(d);
    simulation_.in_flight.assign(count, request.in_flight);
    uint64_t bytes = 0;
    for (const ChunkOrders& chunk : current_) {
      request_.model.append(request_.loads.chunk(chunk), links_, simulation_);
      bytes += chunk.bytes;
    }
    fewest_bytes_ = std::max(request.grain.fewest_bytes, bytes / current_.size() / kSmallestPart);
  }
  virtual ~Climber() = default;

  // Runs until the budget of simulated phases is spent or the bound is reached. Returns the number of evaluations.
  uint64_t climb(uint64_t phases, Found& best) {
    current_ticks_ = evaluate(UINT64_MAX);
    keep_if_better(best);
    history_.fill(current_ticks_);
    uint64_t lowest = current_ticks_;  // since the last reset
    uint64_t improved = 0;
    uint64_t evaluations = 1;
    for (; evaluations * simulation_.phases.size() < phases; ++evaluations) {
      if (best.time_ticks <= request_.bound_ticks) break;
      const bool stuck = evaluations - improved > kPatience;
      uint64_t& compared = history_[evaluations % kHistory];
      if (step(stuck ? UINT64_MAX : std::max(current_ticks_, compared))) keep_if_better(best);
      compared = current_ticks_;
      if (current_ticks_ < lowest) {
        lowest = current_ticks_;
        improved = evaluations;
      }
      // A local optimum: some changes are accepted regardless of their time, then the search climbs from there.
      if (evaluations - improved < kPatience + kKicks) continue;
      history_.fill(current_ticks_);
      lowest = current_ticks_;
      improved = evaluations;
    }
    return evaluations;
  }

 protected:
  // The time of the current state. UINT64_MAX if it exceeds the limit or the state does not finish.
  virtual uint64_t evaluate(uint64_t limit_ticks) = 0;
  // Changes chunks a and b of `current_` and no others. Returns false if nothing has changed.
  virtual bool change(size_t a, size_t b) = 0;
  // Undoes the changes of change() outside `current_`.
  virtual void take_back() = 0;
  virtual void keep(Found& best) const = 0;

  bool move_bytes(ChunkOrders& from, ChunkOrders& to) {
    const uint64_t units = std::max<uint64_t>(1, (from.bytes >> (1 + rng_.below(6))) / request_.grain.granule);
    const uint64_t bytes = units * request_.grain.granule;
    if (from.bytes < bytes || from.bytes - bytes < fewest_bytes_) return false;
    from.bytes -= bytes;
    to.bytes += bytes;
    return true;
  }

  // Returns one of the halves that the operation has.
  HalfOrder& half_of(ChunkOrders& chunk) {
    const bool scatter = rng_.below(2) == 0;
    const bool has = scatter ? request_.loads.scatters() : request_.loads.gathers();
    return scatter == has ? chunk.scatter : chunk.gather;
  }

  // With few dimensions: a random order. With many: swaps two dimensions.
  bool reorder(HalfOrder& order) {
    const size_t count = request_.loads.dimensions();
    if (count > 4) {
      std::swap(order[rng_.below(count)], order[rng_.below(count)]);
    } else {
      for (size_t i = 1; i < count; ++i) std::swap(order[i], order[rng_.below(i + 1)]);
    }
    return true;
  }

  const SearchRequest& request_;
  Rng rng_;
  std::vector<ChunkOrders> current_;
  std::array<uint8_t, 256> links_{};
  Simulation simulation_;
  Simulator simulator_;

 private:
  bool step(uint64_t limit_ticks) {
    const size_t a = rng_.below(current_.size());
    const size_t b = rng_.below(current_.size());
    const std::array<ChunkOrders, 2> before = {current_[a], current_[b]};
    if (!change(a, b)) return false;
    recost(a, before[0]);
    if (b != a) recost(b, before[1]);
    const uint64_t time_ticks = evaluate(limit_ticks);
    if (time_ticks <= limit_ticks && time_ticks != UINT64_MAX) {
      current_ticks_ = time_ticks;
      return true;
    }
    const std::array<ChunkOrders, 2> tried = {current_[a], current_[b]};
    current_[b] = before[1];
    current_[a] = before[0];
    take_back();
    recost(a, tried[0]);
    if (b != a) recost(b, tried[1]);
    return false;
  }

  void recost(size_t chunk, const ChunkOrders& before) {
    if (current_[chunk] == before) return;
    one_.first.resize(1);
    one_.phases.clear();
    request_.model.append(request_.loads.chunk(current_[chunk]), links_, one_);
    std::ranges::copy(one_.phases, simulation_.phases.begin() + simulation_.first[chunk]);
  }

  void keep_if_better(Found& best) const {
    if (current_ticks_ >= best.time_ticks) return;
    best.chunks = current_;
    best.time_ticks = current_ticks_;
    keep(best);
  }

  uint64_t current_ticks_ = 0;
  uint64_t fewest_bytes_ = 0;
  std::array<uint64_t, kHistory> history_{};
  Simulation one_;  // one chunk
};

// Searches orders and sizes; links follow a rule.
class RuleClimber : public Climber {
 public:
  RuleClimber(const SearchRequest& request, std::vector<ChunkOrders> start, PriorityRule rule)
      : Climber(request, std::move(start)), rule_(rule), rule_before_(rule) {}

 private:
  uint64_t evaluate(uint64_t limit_ticks) override {
    const Simulator::Outcome outcome = simulator_.run(simulation_, rule_, limit_ticks);
    return outcome.finished ? outcome.time_ticks : UINT64_MAX;
  }

  bool change(size_t a, size_t b) override {
    rule_before_ = rule_;
    switch (rng_.below(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return reorder(half_of(current_[a]));
      case 4:
      case 5:
      case 6:
        return a != b && move_bytes(current_[a], current_[b]);
      default:
        if (rng_.below(kRuleChangeOneIn) == 0) rule_ = order_rules()[rng_.below(order_rules().size())].rule;
        if (rng_.below(2) == 0) {
          swap_places(a, b);
        } else {
          const HalfOrder gather = current_[a].gather;
          current_[a].gather = current_[b].gather;
          current_[b].gather = gather;
        }
        return true;
    }
  }

  void take_back() override { rule_ = rule_before_; }

  void keep(Found& best) const override {
    best.rule = rule_;
    best.sequences.clear();
  }

  // The last chunk keeps the remainder that the granule does not divide.
  void swap_places(size_t a, size_t b) {
    uint64_t& last = current_.back().bytes;
    const uint64_t rest = last % request_.grain.granule;
    last -= rest;
    std::swap(current_[a], current_[b]);
    last += rest;
  }

  PriorityRule rule_;
  PriorityRule rule_before_;
};

// Searches sizes, orders, and the sequences on the links.
class SequenceClimber : public Climber {
 public:
  SequenceClimber(const SearchRequest& request, const Found& start) : Climber(request, start.chunks) {
    simulator_.run(simulation_, start.rule);
    for (size_t l = 0; l < simulation_.in_flight.size(); ++l) {
      const auto started = simulator_.started(l);
      sequences_.emplace_back(started.begin(), started.end());
      spans_.emplace_back(sequences_.back());
    }
  }

 private:
  enum class Changed : uint8_t { kBytes, kPlace, kOrder };

  uint64_t evaluate(uint64_t limit_ticks) override {
    const Simulator::Outcome outcome = simulator_.run_in_order(simulation_, spans_, limit_ticks);
    return outcome.finished ? outcome.time_ticks : UINT64_MAX;
  }

  bool change(size_t a, size_t b) override {
    changed_ = Changed::kBytes;
    const uint64_t what = rng_.below(8);
    if (what < 3) return a != b && move_bytes(current_[a], current_[b]);
    if (what < 5) return change_order(a);
    link_ = rng_.below(sequences_.size());
    const size_t phases = sequences_[link_].size();
    from_ = rng_.below(phases);
    const size_t distance = 1 + rng_.below(kFarthest);
    to_ = rng_.below(2) == 0 ? from_ + distance : from_ - distance;
    if (to_ >= phases) return false;
    changed_ = Changed::kPlace;
    move(from_, to_);
    return true;
  }

  // Gives the chunk another order. On each link the chunk keeps its place.
  bool change_order(size_t chunk) {
    HalfOrder& order = half_of(current_[chunk]);
    const bool scatter = &order == &current_[chunk].scatter;
    const HalfOrder before = order;
    if (!reorder(order) || order == before) return false;
    changed_ = Changed::kOrder;
    sequences_before_ = sequences_;
    const auto first = static_cast<uint32_t>(request_.loads.first_stage(scatter));
    const size_t count = request_.loads.dimensions();
    for (uint32_t stage = 0; stage < count; ++stage) {
      std::vector<PhaseId>& sequence = sequences_[order[stage]];
      const auto old = static_cast<uint32_t>(std::ranges::find(before, order[stage]) - before.begin());
      const PhaseId id{static_cast<uint32_t>(chunk), first + old};
      const auto at = std::ranges::find(sequences_before_[order[stage]], id) - sequences_before_[order[stage]].begin();
      if (static_cast<size_t>(at) < sequence.size()) sequence[static_cast<size_t>(at)].stage = first + stage;
    }
    return true;
  }

  void take_back() override {
    if (changed_ == Changed::kPlace) move(to_, from_);
    if (changed_ != Changed::kOrder) return;
    for (size_t l = 0; l < sequences_.size(); ++l) std::ranges::copy(sequences_before_[l], sequences_[l].begin());
  }

  void keep(Found& best) const override { best.sequences = sequences_; }

  void move(size_t from, size_t to) {
    const auto at = [&](size_t i) { return sequences_[link_].begin() + static_cast<ptrdiff_t>(i); };
    if (from < to) {
      std::rotate(at(from), at(from + 1), at(to + 1));
    } else {
      std::rotate(at(to), at(from), at(from + 1));
    }
  }

  std::vector<std::vector<PhaseId>> sequences_;  // per link
  std::vector<std::span<const PhaseId>> spans_;  // of sequences_
  std::vector<std::vector<PhaseId>> sequences_before_;
  Changed changed_ = Changed::kBytes;
  size_t link_ = 0;
  size_t from_ = 0;
  size_t to_ = 0;
};

}  // namespace

Found search_schedules(const SearchRequest& request, std::vector<ChunkOrders> start, PriorityRule rule) {
  CHECK(!start.empty(), "a search without chunks");
  Found best;
  best.evaluations = RuleClimber(request, std::move(start), rule).climb(request.phases / 2, best);
  if (best.time_ticks > request.bound_ticks) {
    best.evaluations += SequenceClimber(request, best).climb(request.phases / 2, best);
  }
  return best;
}

}  // namespace trestle
