// The C API: configuration of single calls, as a scope of the calling thread.
#include "api/call_config.h"

#include <algorithm>
#include <cstddef>

#include "api/errors.h"
#include "api/versioned.h"

using namespace trestle;

namespace {

struct Scope {
  SharedOptions options;
  int64_t timeout_ns = -1;
};
thread_local std::vector<Scope> scopes;  // the last one is in effect

Status check_given(const trestleCallConfig_t* config) {
  if (config == nullptr) return invalid_argument("CallConfigPush: config is NULL");
  TRY(check_head("CallConfigPush: ", *config, offsetof(trestleCallConfig_t, algo), TRESTLE_CALL_CONFIG_MAGIC,
                 "TRESTLE_CALL_CONFIG_INITIALIZER"));
  if (covers(*config, config->reserved) && config->reserved != 0)
    return invalid_argument("CallConfigPush: reserved is " + std::to_string(config->reserved) + ": 0");
  return {};
}

// `outer`, overridden by the fields that the caller's struct defines.
Result<Scope> scope_of(const trestleCallConfig_t& config, const Scope& outer) {
  constexpr int64_t kLongestMs = int64_t{1} << 40;
  constexpr int kMostChunks = 1024;
  Scope scope = outer;
  CallOptions options = outer.options ? *outer.options.options : CallOptions();
  if (covers(config, config.algo) && config.algo != nullptr) options.algorithm = config.algo;
  if (covers(config, config.sched) && config.sched != nullptr) options.schedule = config.sched;
  if (covers(config, config.timeoutMs) && config.timeoutMs >= 0)
    scope.timeout_ns = std::min(config.timeoutMs, kLongestMs) * 1'000'000;
  if (covers(config, config.chunks) && config.chunks != TRESTLE_CONFIG_UNDEF_INT) {
    if (config.chunks < 0 || config.chunks > kMostChunks)
      return invalid_argument("CallConfigPush: chunks is " + std::to_string(config.chunks) + ": 0 to 1024");
    options.chunks = config.chunks;
  }
  if (covers(config, config.deterministic) && config.deterministic != TRESTLE_CONFIG_UNDEF_INT) {
    if (config.deterministic != 0 && config.deterministic != 1)
      return invalid_argument("CallConfigPush: deterministic is " + std::to_string(config.deterministic) + ": 0 or 1");
    options.deterministic = config.deterministic == 1;
  }
  options.seal();
  scope.options = {};
  if (!options.text.empty()) scope.options.options = std::make_shared<const CallOptions>(std::move(options));
  return scope;
}

}  // namespace

namespace trestle {

void apply_call_config(Call& call) {
  if (scopes.empty()) return;
  call.timeout_ns = scopes.back().timeout_ns;
  if (call.request.peer < 0) call.request.options = scopes.back().options;
}

}  // namespace trestle

extern "C" {

trestleResult_t trestleCallConfigPush(const trestleCallConfig_t* config) {
  return guarded([&]() -> Status {
    TRY(check_given(config));
    scopes.push_back(TRY(scope_of(*config, scopes.empty() ? Scope() : scopes.back())));
    return {};
  });
}

trestleResult_t trestleCallConfigPop(void) {
  return guarded([]() -> Status {
    if (scopes.empty()) return invalid_usage("CallConfigPop without CallConfigPush");
    scopes.pop_back();
    return {};
  });
}

}  // extern "C"
