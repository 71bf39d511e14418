#include "perf/report/json_report.h"

#include <unistd.h>

#include <ctime>
#include <string_view>

#include "perf/report/json.h"

namespace trestle::perf {
namespace {

std::string local_time() {
  const std::string stamp = row_timestamp();
  return stamp.substr(stamp.find_first_not_of(' '));
}

// The variables that affect a run, in the order of the environment. A secret's value is left out.
void write_environment(Json& json) {
  json.key("env").open('[');
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("TRESTLE_") && !text.starts_with("NCCL_")) continue;
    json.text(text.starts_with("TRESTLE_SECRET=") ? "TRESTLE_SECRET=(set)" : text);
  }
  json.close(']');
}

void write_half(Json& json, const char* key, const Half& half, bool cpu_time) {
  json.key(key).open('{');
  json.key(cpu_time ? "cpu_time" : "time").number(half.time_us);
  json.key("alg_bw").number(half.algbw).key("bus_bw").number(half.busbw);
  json.key("nwrong").integer(half.wrong);
  if (half.calls) {
    json.key("host_us").number(half.calls->host_us);
    json.key("issue_us").number(half.calls->issue_us);
    json.key("launch_us").number(half.calls->launch_us);
  }
  json.close('}');
}

void write_compared(Json& json, const std::vector<JsonReport::Compared>& compared) {
  json.open('[');
  for (const JsonReport::Compared& of : compared) {
    json.open('{').key("backend").text(of.backend).key("bandwidth").number(of.mean_busbw);
    json.key("time_ratio").number(of.time_ratio).close('}');
  }
  json.close(']');
}

void write_iterations(Json& json, const char* key, const Half& half, int skipped) {
  const Tails& tails = *half.tails;
  json.key(key).open('{').key("skipped_iterations").integer(skipped);
  json.key("min_us").number(tails.min).key("max_us").number(tails.max).key("avg_us").number(tails.mean);
  json.key("p50_us").number(tails.p50).key("p95_us").number(tails.p95).key("p99_us").number(tails.p99);
  json.key("stdev_us").number(tails.deviation).key("cv_pct").number(tails.cv_percent);
  json.key("times_us").numbers(half.iterations_us).key("per_process_max_times_us").open('[');
  for (const std::vector<double>& process : half.process_iterations_us) json.numbers(process);
  json.close(']').close('}');
}

void write_settings(Json& json, const Options& options) {
  json.key("nthreads").integer(options.threads).key("ngpus").integer(options.ranks_per_thread);
  json.key("minimum_bytes").integer(options.min_bytes);
  json.key("maximum_bytes").integer(options.max_bytes);
  const bool multiplies = options.step_factor > 1;
  json.key(multiplies ? "step_factor" : "step_bytes");
  json.integer(multiplies ? options.step_factor : static_cast<int64_t>(options.step_bytes));
  json.key("warmup_iters").integer(options.warmup_iters).key("iterations").integer(options.iters);
  json.key("aggregated_iterations").integer(options.agg_iters).key("validation").integer(options.checks);
  json.key("graph").integer(0).key("blocking_collectives").integer(options.blocking);
  json.key("per_iter_timing").truth(options.per_iteration).key("per_iter_skip").integer(options.skipped_iterations);
  json.key("parallel_init").truth(options.parallel_init);
}

constexpr const char* kNoConfig = ",\n\"config\":null,\n\"results\":[";
constexpr const char* kNoEnd =
    "\n],\n\"out_of_bounds\":null,\n\"average_bus_bandwidth\":null,\n\"errors\":[\"the run has not "
    "ended\"],\n\"end_time\":null}\n";

}  // namespace

JsonReport::JsonReport(int argc, char** argv, std::string program, JsonFile file)
    : program_(std::move(program)), file_(std::move(file)) {
  Json json;
  json.open('{').key("version").integer(3).key("start_time").text(local_time()).key("args").open('[');
  // Processes that -P starts have "-P 0" after the user's arguments.
  const bool started = argc > 4 && std::string_view(argv[argc - 2]) == "-P" && std::string_view(argv[argc - 1]) == "0";
  for (int i = 0; i < argc - (started ? 2 : 0); ++i) json.text(argv[i]);
  json.close(']');
  write_environment(json);
  json.key("trestle_version").integer(TRESTLE_VERSION_CODE);
  append(json.str(), std::string(kNoConfig) + kNoEnd);
}

void JsonReport::append(const std::string& text, const std::string& tail) {
  if (problem_.empty()) problem_ = file_.append(text, tail);
}

void JsonReport::begin(const Options& options, const std::vector<Device>& devices, const Creation& creation) {
  Json json;
  json.open('{');
  write_settings(json, options);
  json.key("comm_init_ms").number(creation.seconds * 1e3);
  json.key("comm_memory_bytes").integer(creation.memory_bytes);
  json.key("devices").open('[');
  for (const Device& device : devices) {
    json.open('{').key("rank").integer(device.rank).key("group").integer(device.group);
    json.key("pid").integer(device.process_id).key("hostname").text(device.host);
    json.key("device").integer(device.device).key("device_hex").text(device.bus);
    json.key("device_info").text(device.info).close('}');
  }
  json.close(']').close('}');
  const std::lock_guard lock(mutex_);
  if (finished_) return;  // another thread has failed
  begun_ = true;
  append(",\n\"config\":" + json.str() + ",\n\"results\":[", kNoEnd);
}

void JsonReport::row(const RowHead& head, const Half& out_of_place, const Half* in_place, const Options& options) {
  Json json;
  json.open('{').key("size").integer(head.size_bytes);
  json.key("count").integer(head.count).key("type").text(head.type);
  json.key("redop").text(head.op).key("root").integer(head.root);
  if (head.backend != nullptr) json.key("backend").text(head.backend);
  write_half(json, "out_of_place", out_of_place, options.report_cpu_time);
  if (in_place != nullptr) {
    write_half(json, "in_place", *in_place, options.report_cpu_time);
  } else {
    json.key("in_place").null();
  }
  if (out_of_place.tails) write_iterations(json, "out_of_place_per_iter", out_of_place, options.skipped_iterations);
  if (in_place != nullptr && in_place->tails)
    write_iterations(json, "in_place_per_iter", *in_place, options.skipped_iterations);
  json.key("actual_iterations").integer(options.iters).key("experiment_name").text(program_).close('}');
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (!begun_) append(kNoConfig, kNoEnd);
  append((has_rows_ ? ",\n" : "\n") + json.str(), kNoEnd);
  begun_ = has_rows_ = true;
}

void JsonReport::rails(const std::vector<RailRow>& rows) {
  Json json;
  write_rails(json, rows);
  const std::lock_guard lock(mutex_);
  rails_ = json.str();
}

std::string JsonReport::finish(const End& end) {
  const std::lock_guard lock(mutex_);
  if (finished_) return "";
  finished_ = true;
  std::string tail = begun_ ? "" : kNoConfig;
  Json json;
  json.open('{').key("count").integer(end.failed_checks);
  json.key("okay").truth(end.failed_checks == 0).close('}');
  tail += "\n],\n\"out_of_bounds\":" + json.str();
  Json bandwidth;
  bandwidth.open('{').key("bandwidth").number(end.mean_busbw);
  bandwidth.key("okay").truth(!busbw_fails(end.mean_busbw, end.min_busbw)).close('}');
  tail += ",\n\"average_bus_bandwidth\":" + bandwidth.str();
  if (!end.compared.empty()) {
    Json compared;
    write_compared(compared, end.compared);
    tail += ",\n\"compared\":" + compared.str();
  }
  if (!rails_.empty()) tail += ",\n\"rails\":" + rails_;
  Json errors;
  errors.open('[');
  if (!end.error.empty()) errors.text(end.error);
  errors.close(']');
  Json time;
  time.text(local_time());
  append("", tail + ",\n\"errors\":" + errors.str() + ",\n\"end_time\":" + time.str() + "}\n");
  return problem_;
}

}  // namespace trestle::perf
