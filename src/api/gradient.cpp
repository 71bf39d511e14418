// The C API: schedulers of gradients (include/trestle/gradient.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>

#include "api/collectives.h"
#include "api/config.h"
#include "api/cuda.h"
#include "api/errors.h"
#include "api/gradient_links.h"
#include "api/user_code.h"
#include "api/versioned.h"
#include "gradient/executor/scheduler.h"
#include "trestle/gradient.h"

using namespace trestle;

struct trestleGrad : trestle::Handle<trestle::GradientScheduler> {
  std::atomic<bool> has_device{false};  // one of its communicators
};

static_assert(trestleGradAllowStale == static_cast<int>(kLibertyStale));
static_assert(trestleGradAllowCompression == static_cast<int>(kLibertyCompress));

namespace {

constexpr int kMostLinks = 16;
constexpr size_t kMostTraceEvents = size_t{1} << 24;
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 62;

// Puts the function's name in front of the sentence of a failure. But if the scheduler has failed, that is why the call
// fails.
Status in_function(const char* function, GradientScheduler& scheduler, Status status) {
  if (auto failure = scheduler.failure()) return *std::move(failure);
  const std::string in = std::string(function) + ": ";
  if (status.error().message.starts_with(in)) return status;
  return Error{status.error().code, in + status.error().message};
}

// The communicators' own sentences name a function already.
Status in_create(const Error& error) {
  if (error.code != Code::kInvalidArgument || !error.message.starts_with("the communicator of link")) return error;
  return invalid_argument("GradCreate: " + error.message);
}

template <class F>
Status on_scheduler(trestleGrad_t grad, const char* function, F&& body) {
  if (grad == nullptr) return invalid_argument(std::string(function) + ": grad is NULL");
  Use use(grad);
  if (!use.alive()) return dead_handle(use, function, "scheduler");
  Status status = body(*use.object());
  return status.ok() ? Status() : in_function(function, *use.object(), std::move(status));
}

template <class F>
trestleResult_t with_scheduler(trestleGrad_t grad, const char* function, F&& body) {
  return guarded([&] { return on_scheduler(grad, function, body); });
}

// For collective calls.
template <class F>
trestleResult_t with_all_ranks(trestleGrad_t grad, const char* function, F&& body) {
  return guarded([&] { return on_scheduler(grad, function, body); },
                 [grad] {
                   Use use(grad);
                   if (use.alive()) use.object()->fail_without_memory();
                 });
}

// ---- the config

// The program's update, as it may fail the scheduler.
template <class Update>
UpdateFunction contained(Update update) {
  const auto thrown = [](const std::string& what) {
    return Error{Code::kInvalidUsage, "the update function of a trestleGradConfig_t threw an exception (" + what + ")"};
  };
  return [=](uint32_t tensor, uint64_t offset, uint64_t count, const std::byte* gradient, std::byte* parameter,
             const ResultAge& age) -> Status {
    try {
      const InUserCode now(UserCode::kUpdate);
      update(static_cast<int>(tensor), offset, count, gradient, parameter, age);
      return {};
    } catch (const std::exception& exception) {
      return thrown(exception.what());
    } catch (...) {
      return thrown("not a std::exception");
    }
  };
}

UpdateFunction read_update(const trestleGradConfig_t& config) {
  void* const context = config.updateContext;
  if (covers(config, config.updateMerged) && config.updateMerged != nullptr) {
    return contained([update = config.updateMerged, context](int tensor, size_t offset, size_t count,
                                                             const void* gradient, void* parameter,
                                                             const ResultAge& age) {
      update(context, tensor, offset, count, gradient, parameter, static_cast<int>(age.batches),
             static_cast<int>(age.oldest));
    });
  }
  if (config.update == nullptr) return nullptr;
  return contained([update = config.update, context](int tensor, size_t offset, size_t count, const void* gradient,
                                                     void* parameter, const ResultAge&) {
    update(context, tensor, offset, count, gradient, parameter);
  });
}

Result<GradientSettings> read_gradient_config(const trestleGradConfig_t* config) {
  GradientSettings settings;
  settings.op = trestleSum;
  if (config == nullptr) return settings;
  TRY(check_head("GradCreate: the config's ", *config, offsetof(trestleGradConfig_t, op), TRESTLE_GRAD_CONFIG_MAGIC,
                 "TRESTLE_GRAD_CONFIG_INITIALIZER"));
  if (covers(*config, config->op)) settings.op = config->op;
  if (settings.op != trestleSum && settings.op != trestleAvg)
    return invalid_argument("GradCreate: op is " + std::to_string(settings.op) + ": trestleSum or trestleAvg");
  if (covers(*config, config->allow)) settings.liberties = config->allow;
  if ((settings.liberties & ~uint32_t{kLibertyStale | kLibertyCompress}) != 0)
    return invalid_argument("GradCreate: allow has bits that are not of trestleGradAllow_t");
  if (covers(*config, config->updateContext)) settings.update = read_update(*config);
  if (covers(*config, config->updateMerged) && config->updateMerged != nullptr && config->update != nullptr)
    return invalid_argument("GradCreate: the config has both update and updateMerged: one of them");
  const int count_nans = covers(*config, config->countNans) ? config->countNans : 0;
  if (count_nans != 0 && count_nans != 1)
    return invalid_argument("GradCreate: countNans is " + std::to_string(count_nans) + ": 0 or 1");
  settings.count_nans = count_nans == 1;
  return settings;
}

Result<TensorEntry> read_tensor(const char* name, size_t count, int type, void* gradient, void* parameter,
                                bool updates) {
  TensorEntry tensor;
  if (name == nullptr) return invalid_argument("GradRegister: name is NULL");
  tensor.name = name;
  tensor.type = TRY(checked_type("GradRegister", type));
  tensor.count = count;
  if (count > kMostTensorBytes / size_of(tensor.type))
    return invalid_argument("GradRegister: count is " + std::to_string(count) + ", more than any memory holds");
  tensor.gradient = static_cast<std::byte*>(gradient);
  if (updates) tensor.parameter = static_cast<std::byte*>(parameter);
  if (updates && parameter == nullptr && count != 0)
    return invalid_argument("GradRegister: parameter is NULL, and the config has an update function that writes it");
  return tensor;
}

// The convention of the functions that write a text.
Status write_text(const std::string& value, char* text, size_t* size) {
  const size_t room = *size;
  *size = value.size() + 1;
  if (text == nullptr) return {};
  if (room < *size) {
    return invalid_argument("the text needs " + std::to_string(*size) + " bytes, and there is room for " +
                            std::to_string(room));
  }
  std::memcpy(text, value.c_str(), *size);
  return {};
}

MessageCost cost_of(const trestleGradCost_t& cost) {
  return {cost.startup, cost.perByte};
}

// All of its first version.
Status check_loss(const trestleGradLoss_t* loss) {
  constexpr size_t kAll = offsetof(trestleGradLoss_t, mean) + sizeof(int);
  if (loss == nullptr) return invalid_argument("loss is NULL");
  TRY(check_head("", *loss, kAll, TRESTLE_GRAD_LOSS_MAGIC, "TRESTLE_GRAD_LOSS_INITIALIZER"));
  if (covers(*loss, loss->reserved) && loss->reserved != 0)
    return invalid_argument("reserved is " + std::to_string(loss->reserved) + ": 0");
  return {};
}

Result<PreserverModel> read_loss(const trestleGradLoss_t& loss) {
  for (const double value :
       {loss.loss, loss.leastLoss, loss.rate, loss.drift, loss.deviation, loss.batch, loss.epsilon}) {
    if (!std::isfinite(value)) return invalid_argument("a number of the loss is not finite");
  }
  if (loss.batch <= 0) return invalid_argument("batch is " + std::to_string(loss.batch) + ": more than 0");
  if (loss.deviation < 0 || loss.epsilon < 0) return invalid_argument("deviation or epsilon is negative");
  if (loss.mean != 0 && loss.mean != 1) return invalid_argument("mean is " + std::to_string(loss.mean) + ": 0 or 1");
  return PreserverModel{loss.loss,
                        loss.leastLoss,
                        loss.rate,
                        loss.drift,
                        loss.deviation,
                        loss.batch,
                        loss.mean == 1 ? MergedUpdate::kMean : MergedUpdate::kSum,
                        loss.epsilon};
}

}  // namespace

extern "C" {

trestleResult_t trestleGradCreate(trestleGrad_t* grad, const trestleComm_t* comms, int links,
                                  const trestleGradConfig_t* config) {
  return guarded([&]() -> Status {
    if (grad == nullptr) return invalid_argument("GradCreate: grad is NULL");
    if (comms == nullptr || links < 1) return invalid_argument("GradCreate: at least one communicator is needed");
    if (links > kMostLinks) {
      return invalid_argument("GradCreate: " + std::to_string(links) + " links: at most " + std::to_string(kMostLinks));
    }
    for (int link = 0; link < links; ++link) {
      if (comms[link] == nullptr)
        return invalid_argument("GradCreate: the communicator is NULL (link " + std::to_string(link) + ")");
    }
    GradientSettings settings = TRY(read_gradient_config(config));
    ReservedHandle<trestleGrad> handle;
    const std::vector<trestleComm_t> all(comms, comms + links);
    std::unique_ptr<LinkAccess> access = TRY(make_link_access(all));
    Result<std::shared_ptr<GradientScheduler>> scheduler =
        GradientScheduler::make(all, std::move(settings), std::move(access));
    if (!scheduler.ok()) return in_create(scheduler.error());
    trestleGrad* const made = handle.take(std::move(scheduler).value());
    made->has_device = std::ranges::any_of(all, has_device);
    *grad = made;
    return {};
  });
}

trestleResult_t trestleGradDestroy(trestleGrad_t grad) {
  return guarded([&]() -> Status {
    if (grad == nullptr) return invalid_argument("GradDestroy: grad is NULL");
    {
      const Use use(grad);
      if (!use.alive()) return dead_handle(use, "GradDestroy", "scheduler");
      if (!end_handle(grad)) return dead_handle(false, "GradDestroy", "scheduler", "destroyed");
    }
    // Calls that have begun go on. The scheduler's thread still works for those that wait.
    wait_for_users(grad);
    const std::shared_ptr<GradientScheduler> scheduler = std::move(grad->object);
    HandlePool<trestleGrad>::process().bury(grad);
    scheduler->drain();
    return {};
  });
}

trestleResult_t trestleGradRegister(trestleGrad_t grad, const char* name, size_t count, trestleDataType_t type,
                                    void* gradient, void* parameter, int* tensor) {
  return with_scheduler(grad, "GradRegister", [&](GradientScheduler& scheduler) -> Status {
    if (tensor == nullptr) return invalid_argument("tensor is NULL");
    TensorEntry entry = TRY(read_tensor(name, count, static_cast<int>(type), gradient, parameter, scheduler.updates()));
    // Gradients are copied, and parameters updated, by the host.
    if (grad->has_device && count != 0) {
      TRY(check_for_host("gradient", gradient));
      if (scheduler.updates()) TRY(check_for_host("parameter", parameter));
    }
    *tensor = static_cast<int>(TRY(scheduler.add(std::move(entry))));
    return {};
  });
}

trestleResult_t trestleGradProfileBegin(trestleGrad_t grad) {
  return with_scheduler(grad, "GradProfileBegin",
                        [](GradientScheduler& scheduler) { return scheduler.profile_begin(); });
}

trestleResult_t trestleGradProfileEnd(trestleGrad_t grad) {
  return with_all_ranks(grad, "GradProfileEnd", [](GradientScheduler& scheduler) { return scheduler.profile_end(); });
}

trestleResult_t trestleGradSetTimes(trestleGrad_t grad, const double* forward, const double* backward,
                                    const trestleGradCost_t* allReduce, const trestleGradCost_t* reduceScatter,
                                    const trestleGradCost_t* allGather) {
  return with_scheduler(grad, "GradSetTimes", [&](GradientScheduler& scheduler) -> Status {
    const size_t tensors = scheduler.tensors();
    if (allReduce == nullptr || reduceScatter == nullptr || allGather == nullptr)
      return invalid_argument("a cost is NULL");
    if (tensors != 0 && (forward == nullptr || backward == nullptr)) return invalid_argument("the times are NULL");
    return scheduler.set_times(std::vector<double>(forward, forward + tensors),
                               std::vector<double>(backward, backward + tensors),
                               {cost_of(*allReduce), cost_of(*reduceScatter), cost_of(*allGather)});
  });
}

trestleResult_t trestleGradSetLinkRatios(trestleGrad_t grad, const double* ratios, int links) {
  return with_scheduler(grad, "GradSetLinkRatios", [&](GradientScheduler& scheduler) -> Status {
    if (ratios == nullptr) return invalid_argument("ratios is NULL");
    if (links < 1 || static_cast<size_t>(links) != scheduler.links()) {
      return invalid_argument(std::to_string(links) + " ratios, and the scheduler has " +
                              std::to_string(scheduler.links()) + " links");
    }
    return scheduler.set_link_ratios(std::vector<double>(ratios, ratios + links));
  });
}

trestleResult_t trestleGradSetLoss(trestleGrad_t grad, const trestleGradLoss_t* loss) {
  return with_scheduler(grad, "GradSetLoss", [&](GradientScheduler& scheduler) -> Status {
    std::optional<PreserverModel> model;
    if (loss != nullptr) {
      TRY(check_loss(loss));
      model = TRY(read_loss(*loss));
    }
    scheduler.set_loss(model);
    return {};
  });
}

trestleResult_t trestleGradMeasureLoss(trestleGrad_t grad, trestleGradLoss_t* loss) {
  return with_all_ranks(grad, "GradMeasureLoss", [&](GradientScheduler& scheduler) -> Status {
    Status asked = check_loss(loss);  // a refusal concerns the other ranks too
    const double batch = asked.ok() ? loss->batch : 0;
    if (asked.ok() && (!(batch > 0) || !std::isfinite(batch)))
      asked = invalid_argument("batch is " + std::to_string(batch) + ": finite and more than 0");
    const LossEstimate estimate = TRY(scheduler.measure_loss(batch, asked));
    loss->drift = estimate.drift;
    loss->deviation = estimate.deviation;
    return {};
  });
}

trestleResult_t trestleGradProfileJson(trestleGrad_t grad, char* text, size_t* size) {
  return with_scheduler(grad, "GradProfileJson", [&](GradientScheduler& scheduler) -> Status {
    if (size == nullptr) return invalid_argument("size is NULL");
    return write_text(TRY(scheduler.profile_json()), text, size);
  });
}

trestleResult_t trestleGradPlan(trestleGrad_t grad, const char* policy) {
  return with_all_ranks(grad, "GradPlan", [&](GradientScheduler& scheduler) { return scheduler.plan(policy); });
}

trestleResult_t trestleGradPlanJson(trestleGrad_t grad, char* text, size_t* size) {
  return with_scheduler(grad, "GradPlanJson", [&](GradientScheduler& scheduler) -> Status {
    if (size == nullptr) return invalid_argument("size is NULL");
    return write_text(TRY(scheduler.plan_json()), text, size);
  });
}

trestleResult_t trestleGradSimulate(trestleGrad_t grad, const char* policy, double* seconds) {
  return with_scheduler(grad, "GradSimulate", [&](GradientScheduler& scheduler) -> Status {
    if (policy == nullptr) return invalid_argument("policy is NULL");
    if (seconds == nullptr) return invalid_argument("seconds is NULL");
    *seconds = TRY(scheduler.simulate(policy));
    return {};
  });
}

[[gnu::hot]] trestleResult_t trestleGradReady(trestleGrad_t grad, int tensor, void* gradient) {
  return with_scheduler(grad, "GradReady", [&](GradientScheduler& scheduler) -> Status {
    if (grad->has_device) TRY(check_for_host("gradient", gradient));
    return scheduler.ready(tensor, static_cast<std::byte*>(gradient));
  });
}

trestleResult_t trestleGradWaitParam(trestleGrad_t grad, int tensor) {
  return with_scheduler(grad, "GradWaitParam", [&](GradientScheduler& scheduler) { return scheduler.wait(tensor); });
}

trestleResult_t trestleGradStepEnd(trestleGrad_t grad) {
  return with_scheduler(grad, "GradStepEnd", [](GradientScheduler& scheduler) { return scheduler.end_step(); });
}

trestleResult_t trestleGradSynchronize(trestleGrad_t grad) {
  return with_scheduler(grad, "GradSynchronize", [](GradientScheduler& scheduler) { return scheduler.synchronize(); });
}

trestleResult_t trestleGradBatches(trestleGrad_t grad, int tensor, int* batches, int* age) {
  return with_scheduler(grad, "GradBatches", [&](GradientScheduler& scheduler) -> Status {
    const ResultAge result = TRY(scheduler.age(tensor));
    if (batches != nullptr) *batches = static_cast<int>(result.batches);
    if (age != nullptr) *age = static_cast<int>(result.oldest);
    return {};
  });
}

trestleResult_t trestleGradDrain(trestleGrad_t grad, int* batches) {
  return with_all_ranks(grad, "GradDrain", [&](GradientScheduler& scheduler) -> Status {
    const uint32_t brought = TRY(scheduler.bring_in());
    if (batches != nullptr) *batches = static_cast<int>(brought);
    return {};
  });
}

trestleResult_t trestleGradGetStats(trestleGrad_t grad, trestleGradStats_t* stats) {
  return with_scheduler(grad, "GradGetStats", [&](GradientScheduler& scheduler) -> Status {
    constexpr size_t kHead = offsetof(trestleGradStats_t, steps);
    if (stats == nullptr) return invalid_argument("stats is NULL");
    TRY(check_head("", *stats, kHead, TRESTLE_GRAD_STATS_MAGIC, "TRESTLE_GRAD_STATS_INITIALIZER"));
    const SchedulerStatistics now = scheduler.statistics();
    trestleGradStats_t all = TRESTLE_GRAD_STATS_INITIALIZER;
    all.steps = now.steps;
    all.messages = now.messages;
    all.bytes = now.bytes;
    all.copiedBytes = now.copied_bytes;
    all.waitNs = now.wait_ns;
    all.lastStepNs = now.last_step_ns;
    all.plannedNs = now.planned_ns;
    all.plans = now.plans;
    all.age = now.age;
    all.nans = now.nans;
    all.delayedUpdates = now.delayed_updates;
    all.delayedBatches = now.delayed_batches;
    all.pendingBatches = now.pending_batches;
    all.ageSum = now.age_sum;
    all.oldestAge = now.oldest_age;
    all.ratio = now.ratio;
    all.gain = now.gain;
    all.compressedElements = now.compressed_elements;
    all.sentElements = now.sent_elements;
    all.compressNs = now.compress_ns;
    copy_known(*stats, all, kHead);
    return {};
  });
}

trestleResult_t trestleGradTraceBegin(trestleGrad_t grad, size_t events) {
  return with_scheduler(grad, "GradTraceBegin", [&](GradientScheduler& scheduler) -> Status {
    if (events > kMostTraceEvents) {
      return invalid_argument(std::to_string(events) + " events: at most " + std::to_string(kMostTraceEvents));
    }
    return scheduler.trace_begin(events);
  });
}

trestleResult_t trestleGradTraceJson(trestleGrad_t grad, char* text, size_t* size) {
  return with_scheduler(grad, "GradTraceJson", [&](GradientScheduler& scheduler) -> Status {
    if (size == nullptr) return invalid_argument("size is NULL");
    return write_text(TRY(scheduler.trace_json()), text, size);
  });
}

}  // extern "C"
