// The steps of an exchange: what is selected, sent and added up.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/out_of_memory.h"
#include "compress/ar_topk.h"
#include "compress/exchange/exchange.h"
#include "compress/exchange/part.h"
#include "kernels/reduce.h"
#include "kernels/sparse.h"

namespace trestle {
namespace {

constexpr const char* kStep = "AllReduceTopK";

// What came from another rank must not lead outside of the gradient.
Status check_indices(const uint32_t* indices, size_t elements, size_t count) {
  const uint32_t* const end = indices + elements;
  const auto wrong = std::find_if(indices, end, [=](uint32_t index) { return index >= count; });
  if (wrong == end) return {};
  return Error{Code::kInternalError, std::string(kStep) + ": element " + std::to_string(*wrong) + " of a gradient of " +
                                         std::to_string(count) + " came from another rank"};
}

// The same sentence on all ranks.
Error no_memory_on(size_t rank) {
  return Error{Code::kSystemError,
               std::string(kStep) + ": rank " + std::to_string(rank) + " has no memory to select elements"};
}

double seconds_of(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

constexpr double kNoMemory = -1;  // in place of a norm, which is not negative

}  // namespace

Status TopKExchange::step(const float* gradient, float* residual, float* result) {
  const MutexLock lock(mutex_);
  Accumulated sum;
  {
    const Stopwatch compresses(clock(), now_.compress_ns);
    sum = accumulate(residual, gradient, count());
  }
  if (count() > 0) {
    TRY(get_ready());
    {
      const Stopwatch compresses(clock(), now_.compress_ns);
      std::fill(result, result + count(), 0.0f);
      if (choice_.measures()) measure_candidates({residual, count()}, sum.square_sum);
    }
    const bool own = sends_own(choice_.plan().method);
    TRY(own ? send_own(residual, result, sum.square_sum) : send_one(residual, result, sum.square_sum));
    now_.sent += choice_.plan().elements;
  }
  now_.last_nans = sum.nans;
  now_.nans += sum.nans;
  ++now_.steps;
  publish();
  return {};
}

Status TopKExchange::get_ready() {
  const Stopwatch exchanges(clock(), now_.exchange_ns);
  if (window_.gains.size() >= choice_.steps_to_review()) TRY(review());
  return reserve();
}

// AR-Topk: all send the elements that one rank names.
Status TopKExchange::send_one(float* residual, float* result, double whole) {
  const ExchangePlan& plan = choice_.plan();
  const bool votes = plan.method == SparseMethod::kVar;
  const size_t k = plan.elements;
  const Part part(memory_.at(), k);
  int root = static_cast<int>(star_root(now_.steps + 1, workers()));
  std::optional<SparseVector> top;
  if (votes || root == calls_.rank()) top = selected({residual, count()});
  uint64_t took = 0;
  {
    const Stopwatch exchanges(clock(), took);
    if (votes) root = TRY(elect(top));
    if (root == calls_.rank()) part.put(top);
    TRY(calls_.broadcast(part.indices(), k + 1, trestleUint32, root));
  }
  if (part.is_there() == 0) return no_memory_on(static_cast<size_t>(root));
  TRY(check_indices(part.indices(), k, count()));
  double norm = 0;
  {
    const Stopwatch compresses(clock(), now_.compress_ns);
    gather(part.values(), residual, part.indices(), k);
    norm = square_sum(part.values(), k);
  }
  {
    const Stopwatch exchanges(clock(), took);
    const char* const algorithm = plan.collective == SparseCollective::kTree ? "*tree" : "*ring";
    TRY(calls_.all_reduce(part.values(), k, trestleFloat32, arguments_.op, algorithm));
  }
  const Stopwatch compresses(clock(), now_.compress_ns);
  clear_at(residual, part.indices(), k);
  scatter(result, part.indices(), part.values(), k);
  now_.exchange_ns += took;
  now_.root = root;
  const TimedMessage message = timed_exchange(plan.collective, static_cast<double>(k), workers(), seconds_of(took));
  note_sent(norm, whole, votes ? with_norms(message, workers()) : message);
  return {};
}

Result<int> TopKExchange::elect(const std::optional<SparseVector>& top) {
  const double norm = top ? square_norm(top->values) : kNoMemory;
  TRY(calls_.all_gather(&norm, norms_.data(), 1, trestleFloat64));
  const auto lacks = std::find(norms_.begin(), norms_.end(), kNoMemory);
  if (lacks != norms_.end()) return no_memory_on(static_cast<size_t>(lacks - norms_.begin()));
  return static_cast<int>(var_root(norms_));
}

// AG-Topk: each rank sends its own elements. They are added in the order of ranks.
Status TopKExchange::send_own(float* residual, float* result, double whole) {
  const size_t k = choice_.plan().elements;
  const size_t bytes = Part::bytes(k);
  const std::optional<SparseVector> top = selected({residual, count()});
  std::byte* const memory = memory_.at();
  const auto part_of = [=](size_t rank) { return Part(memory + bytes * rank, k); };
  const auto own = static_cast<size_t>(calls_.rank());
  uint64_t took = 0;
  {
    const Stopwatch exchanges(clock(), took);
    part_of(own).put(top);
    TRY(calls_.all_gather(memory + bytes * own, memory, bytes / sizeof(uint32_t), trestleUint32));
  }
  const Stopwatch compresses(clock(), now_.compress_ns);
  for (size_t rank = 0; rank < workers(); ++rank) {
    if (part_of(rank).is_there() == 0) return no_memory_on(rank);
    TRY(check_indices(part_of(rank).indices(), k, count()));
  }
  for (size_t rank = 0; rank < workers(); ++rank)
    scatter_add(result, part_of(rank).indices(), part_of(rank).values(), k);
  if (arguments_.op == trestleAvg) {
    auto* const sums = reinterpret_cast<std::byte*>(result);
    const std::array<const std::byte*, 1> sources = {sums};
    reduce(sums, sources, count(), {DataType::kFloat32, ReduceOp::kAvg, workers(), false});
  }
  clear_at(residual, part_of(own).indices(), k);
  now_.exchange_ns += took;
  now_.root = -1;
  note_sent(square_norm(top->values), whole,
            timed_exchange(SparseCollective::kAllGather, static_cast<double>(k), workers(), seconds_of(took)));
  return {};
}

// What this rank sends with the present plan; none: it has no memory to select. The others must hear of that.
std::optional<SparseVector> TopKExchange::selected(std::span<const float> gradient) {
  const Stopwatch compresses(clock(), now_.compress_ns);
  return compressed(gradient, choice_.plan().ratio);
}

std::optional<SparseVector> TopKExchange::compressed(std::span<const float> gradient, double ratio) const {
  return unless_out_of_memory([&] { return std::optional<SparseVector>(compress(gradient, ratio)); },
                              [] { return std::optional<SparseVector>(); });
}

SparseVector TopKExchange::compress(std::span<const float> gradient, double ratio) const {
  const ExchangeSettings& settings = arguments_.settings;
  switch (settings.method) {
    case SparseMethod::kLayerwise:
      return layerwise_top_k(gradient, settings.layers, ratio);
    case SparseMethod::kMultiSampling:
      return ms_top_k(gradient, top_k_count(ratio, gradient.size()));
    case SparseMethod::kAuto:
    case SparseMethod::kStar:
    case SparseMethod::kVar:
    case SparseMethod::kExact:
      break;
  }
  return top_k(gradient, top_k_count(ratio, gradient.size()));
}

// A candidate for which there is no memory is left out of this step's means.
void TopKExchange::measure_candidates(std::span<const float> gradient, double whole) {
  for (size_t i = 0; i < kRatioCandidates.size(); ++i) {
    uint64_t took = 0;
    std::optional<SparseVector> top;
    {
      const Stopwatch compresses(clock(), took);
      top = compressed(gradient, kRatioCandidates[i]);
    }
    const double gain = top ? compression_gain(square_norm(top->values), whole) : NAN;
    if (!std::isfinite(gain)) continue;
    window_.candidates[i].gain += gain;
    window_.candidates[i].seconds += seconds_of(took);
    window_.candidates[i].steps += 1;
  }
}

void TopKExchange::note_sent(double norm, double whole, TimedMessage message) {
  now_.gain = compression_gain(norm, whole);
  window_.gains.push_back(now_.gain);
  window_.messages.push_back(message);
}

}  // namespace trestle
