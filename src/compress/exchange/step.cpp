// The steps of an exchange: what is selected, sent and added up.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "compress/ar_topk.h"
#include "compress/exchange/exchange.h"
#include "compress/exchange/part.h"
#include "compress/selection.h"
#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "kernels/scale.h"
#include "kernels/sparse.h"

namespace trestle {
namespace {

constexpr const char* kCall = "AllReduceTopK";

// Indices from another rank must not lead outside of the gradient.
Status check_indices(const uint32_t* indices, size_t elements, size_t count) {
  const uint32_t* const end = indices + elements;
  const auto wrong = std::find_if(indices, end, [=](uint32_t index) { return index >= count; });
  if (wrong == end) return {};
  return Error{Code::kInternalError, std::string(kCall) + ": element " + std::to_string(*wrong) + " of a gradient of " +
                                         std::to_string(count) + " came from another rank"};
}

// All ranks return this sentence, so it names the rank.
Error no_memory_on(size_t rank) {
  return Error{Code::kSystemError,
               std::string(kCall) + ": rank " + std::to_string(rank) + " has no memory to select elements"};
}

double seconds_of(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

constexpr double kNoMemory = -1;  // in place of a norm, which is not negative

template <class T>
constexpr trestleDataType_t kTravelsAs = sizeof(T) == sizeof(double) ? trestleFloat64 : trestleFloat32;

}  // namespace

Status TopKExchange::step(const std::byte* gradient, std::byte* residual, std::byte* result) {
  const MutexLock lock(mutex_);
  if (sum_type() == DataType::kFloat64) return typed_step(gradient, reinterpret_cast<double*>(residual), result);
  return typed_step(gradient, reinterpret_cast<float*>(residual), result);
}

template <class T>
Status TopKExchange::typed_step(const std::byte* gradient, T* residual, std::byte* result) {
  Accumulated sum;
  {
    const Stopwatch compresses(clock(), now_.compress_ns);
    sum = add_gradient(residual, gradient);
  }
  if (count() > 0) {
    TRY(get_ready());
    {
      const Stopwatch compresses(clock(), now_.compress_ns);
      std::memset(result, 0, count() * size_of(type()));
      if (choice_.measures()) measure_candidates<T>({residual, count()}, sum.square_sum);
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

template <class T>
Accumulated TopKExchange::add_gradient(T* residual, const std::byte* gradient) const {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is_narrow()) return accumulate_widened(residual, gradient, count(), type());
  }
  return accumulate(residual, gradient, count());
}

template <class T>
void TopKExchange::share(T* values, size_t elements) const {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is_mean() && is_narrow()) scale_to_share(values, elements, workers());
  }
}

// Writes the elements of a message to their places in the result. 16-bit ones are rounded once, here.
template <class T>
void TopKExchange::put_result(std::byte* result, const Part<T>& part, size_t elements) const {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is_narrow()) return scatter_narrowed(result, part.indices(), part.values(), elements, type());
  }
  scatter(result, part.indices(), part.values(), elements);
}

Status TopKExchange::get_ready() {
  const Stopwatch exchanges(clock(), now_.exchange_ns);
  if (window_.gains.size() >= choice_.steps_to_review()) TRY(review());
  return reserve(kCall);
}

// AR-Topk: all send the elements that one rank names.
template <class T>
Status TopKExchange::send_one(T* residual, std::byte* result, double whole) {
  const ExchangePlan& plan = choice_.plan();
  const bool votes = plan.method == SparseMethod::kVar;
  const size_t k = plan.elements;
  const Part<T> part(memory_.at(), k);
  int root = static_cast<int>(star_root(now_.steps + 1, workers()));
  std::optional<SparseVectorOf<T>> top;
  if (votes || root == calls_.rank()) top = selected<T>({residual, count()});
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
    share(part.values(), k);
  }
  {
    const Stopwatch exchanges(clock(), took);
    const char* const algorithm = plan.collective == SparseCollective::kTree ? "*tree" : "*ring";
    TRY(calls_.all_reduce(part.values(), k, kTravelsAs<T>, is_narrow() ? trestleSum : arguments_.op, algorithm));
  }
  const Stopwatch compresses(clock(), now_.compress_ns);
  clear_at(residual, part.indices(), k);
  put_result(result, part, k);
  now_.exchange_ns += took;
  now_.root = root;
  const TimedMessage message = timed(plan.collective, took);
  note_sent(norm, whole, votes ? with_norms(message, workers()) : message);
  return {};
}

template <class T>
Result<int> TopKExchange::elect(const std::optional<SparseVectorOf<T>>& top) {
  const double norm = top ? square_norm(top->values) : kNoMemory;
  TRY(calls_.all_gather(&norm, norms_.data(), 1, trestleFloat64));
  const auto lacks = std::find(norms_.begin(), norms_.end(), kNoMemory);
  if (lacks != norms_.end()) return no_memory_on(static_cast<size_t>(lacks - norms_.begin()));
  return static_cast<int>(var_root(norms_));
}

// AG-Topk: each rank sends its own elements. They are added in the order of ranks.
template <class T>
Status TopKExchange::send_own(T* residual, std::byte* result, double whole) {
  const size_t k = choice_.plan().elements;
  const size_t bytes = part_bytes();
  const std::optional<SparseVectorOf<T>> top = selected<T>({residual, count()});
  std::byte* const memory = memory_.at();
  const auto part_of = [=](size_t rank) { return Part<T>(memory + bytes * rank, k); };
  const auto own = static_cast<size_t>(calls_.rank());
  uint64_t took = 0;
  {
    const Stopwatch exchanges(clock(), took);
    part_of(own).put(top);
    share(part_of(own).values(), top ? k : 0);
    TRY(calls_.all_gather(memory + bytes * own, memory, bytes / sizeof(uint32_t), trestleUint32));
  }
  const Stopwatch compresses(clock(), now_.compress_ns);
  for (size_t rank = 0; rank < workers(); ++rank) {
    if (part_of(rank).is_there() == 0) return no_memory_on(rank);
    TRY(check_indices(part_of(rank).indices(), k, count()));
  }
  T* const sums = sums_in<T>(result);
  for (size_t rank = 0; rank < workers(); ++rank)
    scatter_add(reinterpret_cast<std::byte*>(sums), part_of(rank).indices(), part_of(rank).values(), k);
  finish_sums(sums, result);
  clear_at(residual, part_of(own).indices(), k);
  now_.exchange_ns += took;
  now_.root = -1;
  note_sent(square_norm(top->values), whole, timed(SparseCollective::kAllGather, took));
  return {};
}

// Memory, set to zeros, in which the ranks' elements are added: the result itself, or float32 sums behind the parts.
template <class T>
T* TopKExchange::sums_in(std::byte* result) const {
  if (!is_narrow()) return reinterpret_cast<T*>(result);
  std::byte* const sums = memory_.at(part_bytes() * workers());
  std::memset(sums, 0, count() * sizeof(T));
  return reinterpret_cast<T*>(sums);
}

template <class T>
void TopKExchange::finish_sums(T* sums, std::byte* result) const {
  if (is_mean() && !is_narrow()) {
    auto* const bytes = reinterpret_cast<std::byte*>(sums);
    const std::array<const std::byte*, 1> sources = {bytes};
    reduce(bytes, sources, count(), {sum_type(), ReduceOp::kAvg, workers(), false});
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is_narrow()) narrow_from_float32(result, sums, count(), type());
  }
}

// What this rank sends with the present plan. Nothing: it has no memory to select, and must tell the other ranks.
template <class T>
std::optional<SparseVectorOf<T>> TopKExchange::selected(std::span<const T> gradient) {
  const Stopwatch compresses(clock(), now_.compress_ns);
  return compressed(gradient, choice_.plan().ratio);
}

template <class T>
std::optional<SparseVectorOf<T>> TopKExchange::compressed(std::span<const T> gradient, double ratio) const {
  return selection_if_memory([&] { return compress(gradient, ratio); });
}

template <class T>
SparseVectorOf<T> TopKExchange::compress(std::span<const T> gradient, double ratio) const {
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
template <class T>
void TopKExchange::measure_candidates(std::span<const T> gradient, double whole) {
  for (size_t i = 0; i < kRatioCandidates.size(); ++i) {
    uint64_t took = 0;
    std::optional<SparseVectorOf<T>> top;
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

TimedMessage TopKExchange::timed(SparseCollective collective, uint64_t took_ns) const {
  return timed_exchange(collective, static_cast<double>(choice_.plan().elements), workers(), seconds_of(took_ns),
                        arguments_.settings.value_bytes);
}

void TopKExchange::note_sent(double norm, double whole, TimedMessage message) {
  now_.gain = compression_gain(norm, whole);
  window_.gains.push_back(now_.gain);
  window_.messages.push_back(message);
}

}  // namespace trestle
