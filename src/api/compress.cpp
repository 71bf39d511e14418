// The C API: all-reduces of which the largest elements travel (include/trestle/compress.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "api/calls.h"
#include "api/cuda.h"
#include "api/errors.h"
#include "api/handles.h"
#include "api/versioned.h"
#include "compress/exchange/exchange.h"
#include "trestle/compress.h"

using namespace trestle;

struct trestleTopK : trestle::Handle<trestle::TopKExchange> {
  std::atomic<bool> has_device{false};  // its communicator
};

static_assert(trestleTopKStar == static_cast<int>(SparseMethod::kStar));
static_assert(trestleTopKVar == static_cast<int>(SparseMethod::kVar));
static_assert(trestleTopKExact == static_cast<int>(SparseMethod::kExact));
static_assert(trestleTopKLayerwise == static_cast<int>(SparseMethod::kLayerwise));
static_assert(trestleTopKMultiSampling == static_cast<int>(SparseMethod::kMultiSampling));
static_assert(trestleTopKRing == 1 + static_cast<int>(SparseCollective::kRing));
static_assert(trestleTopKTree == 1 + static_cast<int>(SparseCollective::kTree));
static_assert(trestleTopKAllGather == 1 + static_cast<int>(SparseCollective::kAllGather));
static_assert(trestleFloat16 == static_cast<int>(DataType::kFloat16));
static_assert(trestleFloat32 == static_cast<int>(DataType::kFloat32));
static_assert(trestleFloat64 == static_cast<int>(DataType::kFloat64));
static_assert(trestleBfloat16 == static_cast<int>(DataType::kBfloat16));
static_assert(trestleTopKKnee == static_cast<int>(RatioRule::kKnee));
// No padding: a field that is added must not lie in an older program's struct, where nobody has written it.
static_assert(offsetof(trestleTopKConfig_t, ratio) == offsetof(trestleTopKConfig_t, type) + sizeof(int));
static_assert(sizeof(trestleTopKConfig_t) == offsetof(trestleTopKConfig_t, compressWeight) + sizeof(double));

namespace {

constexpr size_t kMostCount = size_t{1} << 32;
constexpr size_t kMostLayers = size_t{1} << 20;
constexpr int kMostReviewSteps = 1000;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

Status in_range(const char* field, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(std::string(field) + " is " + std::to_string(value) + ": " + std::to_string(low) + " to " +
                          std::to_string(high));
}

Status check_ratio(double ratio) {
  if (ratio > 0 && ratio <= 1) return {};
  return invalid_argument("ratio is " + number(ratio) + ": above 0 and at most 1");
}

// ---- the config

// As much of the caller's struct as it knows; the rest as in the initializer.
Result<trestleTopKConfig_t> known_config(const trestleTopKConfig_t* config) {
  trestleTopKConfig_t known = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  if (config == nullptr) return known;
  TRY(check_head("", *config, offsetof(trestleTopKConfig_t, method), TRESTLE_TOP_K_CONFIG_MAGIC,
                 "TRESTLE_TOP_K_CONFIG_INITIALIZER"));
  std::memcpy(&known, config, std::min(config->size, sizeof known));
  return known;
}

Status check_numbers(const trestleTopKConfig_t& config) {
  TRY(in_range("method", config.method, trestleTopKAuto, trestleTopKMultiSampling));
  TRY(in_range("collective", config.collective, trestleTopKAny, trestleTopKAllGather));
  TRY(in_range("reviewSteps", config.reviewSteps, 1, kMostReviewSteps));
  TRY(in_range("ratioRule", config.ratioRule, trestleTopKWeighted, trestleTopKKnee));
  if (config.op != trestleSum && config.op != trestleAvg)
    return invalid_argument("op is " + std::to_string(config.op) + ": trestleSum or trestleAvg");
  if (config.type != trestleFloat32 && config.type != trestleFloat16 && config.type != trestleBfloat16 &&
      config.type != trestleFloat64) {
    return invalid_argument("type is " + std::to_string(config.type) +
                            ": trestleFloat32, trestleFloat16, trestleBfloat16 or trestleFloat64");
  }
  if (config.ratio != 0) TRY(check_ratio(config.ratio));
  for (const double weight : {config.timeWeight, config.gainWeight, config.compressWeight}) {
    if (!(weight >= 0) || !std::isfinite(weight))
      return invalid_argument("a weight is " + number(weight) + ": 0 or a positive number");
  }
  return {};
}

// Where one field does not go with another.
Status check_together(const trestleTopKConfig_t& config, size_t count) {
  const bool own = config.method >= trestleTopKExact;
  const bool gathers = config.collective == trestleTopKAllGather;
  const bool star = config.method == trestleTopKStar || config.method == trestleTopKVar;
  if (own && !gathers && config.collective != trestleTopKAny) {
    return invalid_argument(
        "collective is a ring or a tree, but with this method each rank sends elements of its own, which only an "
        "all-gather brings to all: trestleTopKAllGather or trestleTopKAny");
  }
  if (star && gathers) {
    return invalid_argument(
        "collective is trestleTopKAllGather, but Star and Var add values of the same elements: trestleTopKRing, "
        "trestleTopKTree or trestleTopKAny");
  }
  if (config.elements != 0 && (config.ratio != 0 || config.method == trestleTopKLayerwise))
    return invalid_argument("elements and ratio exclude each other, and Layerwise needs a ratio");
  if (config.elements > count)
    return invalid_argument("elements is " + std::to_string(config.elements) + ", and the gradient has " +
                            std::to_string(count));
  const bool given = config.startup >= 0 && config.perByte >= 0 && std::isfinite(config.startup + config.perByte);
  if (!given && !(config.startup < 0 && config.perByte < 0)) {
    return invalid_argument("startup is " + number(config.startup) + " and perByte " + number(config.perByte) +
                            ": both are times in seconds, or both are below 0 and measured");
  }
  return {};
}

Result<std::vector<size_t>> read_layers(const trestleTopKConfig_t& config, size_t count) {
  if (config.method != trestleTopKLayerwise) return std::vector<size_t>();
  if (config.layers == nullptr && config.layerCount != 0) return invalid_argument("layers is NULL");
  if (config.layerCount > kMostLayers)
    return invalid_argument("layerCount is " + std::to_string(config.layerCount) + ", it must be at most " +
                            std::to_string(kMostLayers));
  std::vector<size_t> layers(config.layers, config.layers + config.layerCount);
  size_t rest = count;
  for (const size_t length : layers) {
    if (length > rest) return invalid_argument("the layers are longer than the gradient of " + std::to_string(count));
    rest -= length;
  }
  if (rest != 0) {
    return invalid_argument("the layers have " + std::to_string(count - rest) + " elements, and the gradient has " +
                            std::to_string(count));
  }
  return layers;
}

Result<ExchangeArguments> read_arguments(size_t count, const trestleTopKConfig_t* given) {
  const trestleTopKConfig_t config = TRY(known_config(given));
  if (count > kMostCount)
    return invalid_argument("count is " + std::to_string(count) + ": at most 4294967296, because indices have 32 bits");
  TRY(check_numbers(config));
  TRY(check_together(config, count));
  ExchangeArguments arguments;
  ExchangeSettings& settings = arguments.settings;
  settings.count = count;
  settings.method = static_cast<SparseMethod>(config.method);
  if (config.collective != trestleTopKAny) settings.collective = static_cast<SparseCollective>(config.collective - 1);
  settings.ratio = config.ratio;
  // Rounded up, this is k for any length.
  if (config.elements != 0) settings.ratio = (static_cast<double>(config.elements) - 0.5) / static_cast<double>(count);
  if (config.startup >= 0) settings.cost = LinkCost{config.startup, config.perByte};
  settings.rule = static_cast<RatioRule>(config.ratioRule);
  settings.time_weight = config.timeWeight;
  settings.gain_weight = config.gainWeight;
  settings.compress_weight = config.compressWeight;
  settings.layers = TRY(read_layers(config, count));
  settings.review_steps = static_cast<uint32_t>(config.reviewSteps);
  arguments.type = static_cast<DataType>(config.type);
  arguments.op = static_cast<trestleRedOp_t>(config.op);
  arguments.steps = config.steps;
  return arguments;
}

// ---- calls

// Puts the function's name in front of a sentence about its arguments. A communicator's own sentences stay as they are.
Status in_function(const char* function, Status status) {
  if (status.ok()) return status;
  return Error{status.error().code, std::string(function) + ": " + status.error().message};
}

Status check_no_group(const char* function) {
  if (!Group::of_this_thread().open()) return {};
  return invalid_usage(std::string(function) +
                       " waits for its messages, and in a group they have not begun: call it after GroupEnd");
}

template <class F>
trestleResult_t with_exchange(trestleTopK_t topk, const char* function, F&& body) {
  const auto run = [&]() -> Status {
    if (topk == nullptr) return invalid_argument(std::string(function) + ": topk is NULL");
    Use use(topk);
    if (!use.alive()) return dead_handle(use, function, "compressed all-reduce");
    return body(*use.object());
  };
  return guarded(run, [topk] {
    Use use(topk);
    if (use.alive()) use.object()->end_without_memory();
  });
}

struct Buffer {
  const void* begin;
  size_t bytes;
};

bool overlap(const Buffer& a, const Buffer& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.begin);
  const auto second = reinterpret_cast<uintptr_t>(b.begin);
  return first > second ? first - second < b.bytes : second - first < a.bytes;
}

Status check_buffers(const void* gradient, const void* residual, const void* result, const TopKExchange& exchange) {
  if (exchange.count() == 0) return {};
  if (gradient == nullptr) return invalid_argument("gradient is NULL");
  if (residual == nullptr) return invalid_argument("residual is NULL");
  if (result == nullptr) return invalid_argument("result is NULL");
  const size_t bytes = exchange.count() * size_of(exchange.type());
  const Buffer given = {gradient, bytes}, taken = {result, bytes};
  const Buffer kept = {residual, exchange.count() * size_of(exchange.sum_type())};
  if (overlap(kept, given)) return invalid_argument("residual and gradient overlap in memory");
  if (overlap(kept, taken)) return invalid_argument("residual and result overlap in memory");
  if (result != gradient && overlap(given, taken))
    return invalid_argument("gradient and result overlap in memory without being equal");
  return {};
}

// Elements are selected by the host.
Status check_places(const void* gradient, const void* residual, const void* result) {
  TRY(check_for_host("gradient", gradient));
  TRY(check_for_host("residual", residual));
  return check_for_host("result", result);
}

trestleTopKStats_t stats_of(const ExchangeStatistics& now) {
  trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
  stats.steps = now.steps;
  stats.method = static_cast<int>(now.plan.method);
  stats.collective = 1 + static_cast<int>(now.plan.collective);
  stats.elements = now.plan.elements;
  stats.ratio = now.plan.ratio;
  stats.measures = now.measures ? 1 : 0;
  stats.root = now.root;
  stats.gain = now.gain;
  stats.meanGain = now.mean_gain;
  stats.lastNans = now.last_nans;
  stats.nans = now.nans;
  stats.sent = now.sent;
  stats.compressNs = now.compress_ns;
  stats.exchangeNs = now.exchange_ns;
  stats.changes = now.plan_changes;
  stats.gainChanges = now.gain_changes;
  stats.linkChanges = now.link_changes;
  stats.startup = now.cost.startup_s;
  stats.perByte = now.cost.per_byte_s;
  return stats;
}

}  // namespace

extern "C" {

trestleResult_t trestleTopKCreate(trestleTopK_t* topk, trestleComm_t comm, size_t count,
                                  const trestleTopKConfig_t* config) {
  const auto end = [comm] { fail_without_memory(comm); };
  const auto create = [&]() -> Status {
    if (comm == nullptr) return invalid_argument("TopKCreate: comm is NULL");
    TRY(check_no_group("TopKCreate"));
    Result<ExchangeArguments> arguments = read_arguments(count, config);
    Status own = arguments.ok() ? Status() : in_function("TopKCreate", arguments.error());
    if (topk == nullptr) own = invalid_argument("TopKCreate: topk is NULL");
    ReservedHandle<trestleTopK> handle;
    ExchangeArguments known = arguments.ok() ? std::move(arguments).value() : ExchangeArguments();
    known.end_without_memory = end;
    trestleTopK* const made = handle.take(TRY(TopKExchange::make(comm, std::move(known), own)));
    made->has_device = has_device(comm);
    *topk = made;
    return {};
  };
  return guarded(create, end);
}

trestleResult_t trestleTopKDestroy(trestleTopK_t topk) {
  return guarded([&]() -> Status {
    if (topk == nullptr) return invalid_argument("TopKDestroy: topk is NULL");
    {
      const Use use(topk);
      if (!use.alive()) return dead_handle(use, "TopKDestroy", "compressed all-reduce");
      if (!end_handle(topk)) return dead_handle(false, "TopKDestroy", "compressed all-reduce", "destroyed");
    }
    // Calls that have begun go on.
    wait_for_users(topk);
    const std::shared_ptr<TopKExchange> exchange = std::move(topk->object);
    HandlePool<trestleTopK>::process().bury(topk);
    return {};
  });
}

trestleResult_t trestleAllReduceTopK(const void* gradient, void* residual, void* result, trestleTopK_t topk) {
  return with_exchange(topk, "AllReduceTopK", [&](TopKExchange& exchange) -> Status {
    TRY(check_no_group("AllReduceTopK"));
    TRY(in_function("AllReduceTopK", check_buffers(gradient, residual, result, exchange)));
    if (topk->has_device && exchange.count() != 0)
      TRY(in_function("AllReduceTopK", check_places(gradient, residual, result)));
    return exchange.step(static_cast<const std::byte*>(gradient), static_cast<std::byte*>(residual),
                         static_cast<std::byte*>(result));
  });
}

trestleResult_t trestleTopKFit(trestleTopK_t topk) {
  return with_exchange(topk, "TopKFit", [&](TopKExchange& exchange) -> Status {
    TRY(check_no_group("TopKFit"));
    return exchange.fit({});
  });
}

trestleResult_t trestleTopKSetRatio(trestleTopK_t topk, double ratio) {
  return with_exchange(topk, "TopKSetRatio", [&](TopKExchange& exchange) -> Status {
    TRY(check_no_group("TopKSetRatio"));
    return exchange.set_ratio(ratio, in_function("TopKSetRatio", check_ratio(ratio)));
  });
}

trestleResult_t trestleTopKChooseRatio(trestleTopK_t topk, const trestleTopKSample_t* samples, int count,
                                       double* ratio) {
  return with_exchange(topk, "TopKChooseRatio", [&](TopKExchange& exchange) -> Status {
    if (samples == nullptr || count < 1) return invalid_argument("TopKChooseRatio: at least one sample is needed");
    if (ratio == nullptr) return invalid_argument("TopKChooseRatio: ratio is NULL");
    std::vector<RatioSample> read;
    for (int i = 0; i < count; ++i) read.push_back({samples[i].ratio, samples[i].gain, samples[i].seconds});
    const Result<RatioChoice> choice = exchange.best_ratio(std::move(read));
    if (!choice.ok()) return in_function("TopKChooseRatio", choice.error());
    *ratio = choice.value().ratio;
    return {};
  });
}

trestleResult_t trestleTopKGetStats(trestleTopK_t topk, trestleTopKStats_t* stats) {
  return with_exchange(topk, "TopKGetStats", [&](TopKExchange& exchange) -> Status {
    constexpr size_t kHead = offsetof(trestleTopKStats_t, steps);
    if (stats == nullptr) return invalid_argument("TopKGetStats: stats is NULL");
    TRY(in_function("TopKGetStats",
                    check_head("", *stats, kHead, TRESTLE_TOP_K_STATS_MAGIC, "TRESTLE_TOP_K_STATS_INITIALIZER")));
    copy_known(*stats, stats_of(exchange.statistics()), kHead);
    return {};
  });
}

}  // extern "C"
