// TopKExchange: what a trestleTopK_t is, all-reduces on one communicator of which only the largest elements travel. A
// client of the public header.
//
// Any thread. Calls that exchange something run one at a time, and must be made in the same order on all ranks. Each is
// complete when it returns. statistics() never waits for them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"
#include "compress/exchange/part.h"
#include "compress/exchange/rank_calls.h"
#include "compress/exchange_choice.h"
#include "compress/topk.h"
#include "kernels/sparse.h"

namespace trestle {

struct ExchangeArguments {
  ExchangeSettings settings;  // `workers` and `value_bytes` are not read
  // Of gradients and results: kFloat32, kFloat16, kBfloat16 or kFloat64. 16-bit ones are summed, and travel, as
  // float32.
  DataType type = DataType::kFloat32;
  trestleRedOp_t op = trestleAvg;
  uint64_t steps = 0;                                // that were made before, as a checkpoint says
  std::function<void()> end_without_memory = [] {};  // RankCalls::make's
  Clock* clock = &monotonic_clock();                 // times statistics and the messages of steps, not measure_link()
};

struct ExchangeStatistics {
  uint64_t steps = 0;    // with those made before
  ExchangePlan plan;     // of the next step
  LinkCost cost;         // present
  int root = -1;         // of the last step; -1: each rank sent its own elements, or there was no step
  double gain = 1;       // of the last step, on this rank
  double mean_gain = 0;  // of the steps before the last review, over the ranks; 0: none so far
  uint64_t nans = 0;     // among the elements of this rank's gradients
  uint64_t last_nans = 0;
  uint64_t plan_changes = 0;
  uint64_t gain_changes = 0;
  uint64_t link_changes = 0;
  uint64_t sent = 0;  // elements of this rank that travelled
  uint64_t compress_ns = 0;
  uint64_t exchange_ns = 0;
  bool measures = false;
};

class TopKExchange {
 public:
  // Collective. own: why this rank's arguments are wrong, if they are; then no rank gets an exchange. Measures the
  // links if a decision depends on their costs.
  static Result<std::shared_ptr<TopKExchange>> make(trestleComm_t comm, ExchangeArguments arguments, const Status& own);

  size_t count() const { return arguments_.settings.count; }
  DataType type() const { return arguments_.type; }
  DataType sum_type() const { return type() == DataType::kFloat64 ? DataType::kFloat64 : DataType::kFloat32; }
  // Adds the gradient to the residual, takes from the residual what travels, and writes what travelled, as the sum or
  // the mean over the ranks. Elements that no rank sent are 0. All have count() elements: the gradient and the result
  // of type(), the residual of sum_type(). result may be equal to gradient; nothing else may overlap. After an error
  // the residual has the whole gradient, the result is unspecified, and everything else is as it was. kSystemError on
  // all ranks: one of them lacks memory. The communicator goes on, unless it has failed itself.
  Status step(const std::byte* gradient, std::byte* residual, std::byte* result);
  // Collective. own: why this rank cannot; then no rank does.
  Status fit(const Status& own);
  Status set_ratio(double ratio, const Status& own);
  // Fails the communicator, because this rank has no memory to do its part of a call.
  void end_without_memory() const { calls_.end_without_memory(); }
  // Not collective. best_ratio() waits for the end of a call.
  Result<RatioChoice> best_ratio(std::vector<RatioSample> samples) const;
  ExchangeStatistics statistics() const;

 private:
  TopKExchange(RankCalls calls, ExchangeArguments arguments)
      : calls_(std::move(calls)), arguments_(std::move(arguments)), choice_(arguments_.settings) {}

  // Adds the time until its end to a sum.
  class Stopwatch {
   public:
    Stopwatch(Clock& clock, uint64_t& sum) : clock_(clock), sum_(sum), begin_(clock.now_ns()) {}
    ~Stopwatch() { sum_ += static_cast<uint64_t>(clock_.now_ns() - begin_); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    Clock& clock_;
    uint64_t& sum_;
    const int64_t begin_;
  };

  uint32_t workers() const { return arguments_.settings.workers; }
  bool is_narrow() const { return type() != sum_type(); }
  bool is_mean() const { return arguments_.op == trestleAvg; }
  Clock& clock() const { return *arguments_.clock; }
  // Collective:
  Status prepare() TRESTLE_EXCLUDES(mutex_);
  Status get_ready() TRESTLE_REQUIRES(mutex_);
  Status reserve(const char* function) TRESTLE_REQUIRES(mutex_);
  Status review() TRESTLE_REQUIRES(mutex_);
  // T: of sum_type().
  template <class T>
  Status typed_step(const std::byte* gradient, T* residual, std::byte* result) TRESTLE_REQUIRES(mutex_);
  template <class T>
  Status send_one(T* residual, std::byte* result, double whole) TRESTLE_REQUIRES(mutex_);
  template <class T>
  Status send_own(T* residual, std::byte* result, double whole) TRESTLE_REQUIRES(mutex_);
  template <class T>
  Result<int> elect(const std::optional<SparseVectorOf<T>>& top) TRESTLE_REQUIRES(mutex_);
  // Of this rank:
  ExchangeReview found(const std::vector<double>& seconds, const std::vector<double>& sums) const
      TRESTLE_REQUIRES(mutex_);
  size_t part_bytes() const TRESTLE_REQUIRES(mutex_);
  size_t memory_bytes() const TRESTLE_REQUIRES(mutex_);
  template <class T>
  Accumulated add_gradient(T* residual, const std::byte* gradient) const;
  // Makes of values that are to travel what the ranks add. Of a mean of 16-bit floats each has its share, because sums
  // of large values of bfloat16 do not fit into float32.
  template <class T>
  void share(T* values, size_t elements) const;
  template <class T>
  void put_result(std::byte* result, const Part<T>& part, size_t elements) const;
  template <class T>
  T* sums_in(std::byte* result) const TRESTLE_REQUIRES(mutex_);
  template <class T>
  void finish_sums(T* sums, std::byte* result) const;
  template <class T>
  SparseVectorOf<T> compress(std::span<const T> gradient, double ratio) const;
  template <class T>
  std::optional<SparseVectorOf<T>> compressed(std::span<const T> gradient, double ratio) const;
  template <class T>
  std::optional<SparseVectorOf<T>> selected(std::span<const T> gradient) TRESTLE_REQUIRES(mutex_);
  template <class T>
  void measure_candidates(std::span<const T> gradient, double whole) TRESTLE_REQUIRES(mutex_);
  TimedMessage timed(SparseCollective collective, uint64_t took_ns) const TRESTLE_REQUIRES(mutex_);
  void note_sent(double norm, double whole, TimedMessage message) TRESTLE_REQUIRES(mutex_);
  void publish() TRESTLE_REQUIRES(mutex_);

  const RankCalls calls_;
  const ExchangeArguments arguments_;
  mutable Mutex mutex_;  // held during a whole call
  ExchangeChoice choice_ TRESTLE_GUARDED_BY(mutex_);
  ExchangeMemory memory_ TRESTLE_GUARDED_BY(mutex_);
  size_t room_ TRESTLE_GUARDED_BY(mutex_) = 0;  // bytes of it that every rank has
  std::vector<double> norms_ TRESTLE_GUARDED_BY(mutex_);
  // Since the last review, on this rank.
  struct Window {
    std::vector<double> gains;
    std::vector<TimedMessage> messages;
    // Of each candidate: sums of gains and of seconds, and over how many steps. Steps whose gain is no number are left
    // out.
    struct Candidate {
      double gain = 0;
      double seconds = 0;
      double steps = 0;
    };
    std::array<Candidate, kRatioCandidates.size()> candidates = {};

    void clear();
  };
  Window window_ TRESTLE_GUARDED_BY(mutex_);
  ExchangeStatistics now_ TRESTLE_GUARDED_BY(mutex_);
  uint64_t first_plans_ TRESTLE_GUARDED_BY(mutex_) = 0;  // changes of the plan before the first step

  mutable Mutex shown_mutex_;  // held only for a copy, so statistics() never waits for a step
  ExchangeStatistics shown_ TRESTLE_GUARDED_BY(shown_mutex_);
};

}  // namespace trestle
