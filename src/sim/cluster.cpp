#include "sim/cluster.h"

#include <algorithm>

namespace trestle {

SimCluster::SimCluster(const Topology& topology, const SimOptions& options)
    : topology_(topology),
      options_(options),
      network_(std::make_unique<SimNetwork>(topology, options.links, options.faults, clock_)) {
  const int32_t ranks = topology_.ranks();
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<std::unique_ptr<Transport>> transports;
    transports.push_back(network_->make_transport(r));
    std::vector<Transport*> router(ranks, transports[0].get());
    EngineConfig config;
    config.rank = r;
    config.ranks = ranks;
    config.name = "rank " + std::to_string(r);
    config.clock = &clock_;
    engines_.push_back(std::make_shared<Engine>(std::move(config), std::move(transports), std::move(router), nullptr));
  }
}

uint64_t SimCluster::segment_bytes(const void* self, const std::vector<int32_t>&) {
  return static_cast<const SimCluster*>(self)->options_.segment_bytes;
}

Status SimCluster::start(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts) {
  const uint64_t first_number = next_number_;
  next_number_ += calls.size();
  streams_.assign(engines_.size(), {});
  for (size_t r = 0; r < engines_.size(); ++r) {
    const PrepareContext context{&topology_, static_cast<int32_t>(r), options_.check_plans, &segment_bytes, this};
    const size_t started = starts.empty() ? calls.size() : starts[r].size();
    for (size_t i = 0; i < started; ++i) {
      const size_t index = starts.empty() ? i : starts[r][i];
      const SimCall& call = calls[index];
      auto prepared = TRY(prepare(call.request, call.schedule, context));
      Operation* operation = engines_[r]->acquire(prepared);
      operation->bind(call.buffers[r].send, call.buffers[r].recv, first_number + index, 0);
      engines_[r]->count_pending(1);
      streams_[r].push_back(std::make_shared<Stream>());
      streams_[r].back()->enqueue({operation});
    }
  }
  return {};
}

bool SimCluster::all_done() const {
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->pending() == 0; });
}

Status SimCluster::stuck() const {
  std::string text;
  for (const auto& engine : engines_) {
    if (engine->pending() == 0) continue;
    text += (text.empty() ? "" : " | rank " + std::to_string(&engine - engines_.data()) + ": ") +
            engine->oldest_operation();
  }
  if (text.empty()) return {};
  return Error{Code::kInternalError, "nothing moves any more: " + text};
}

Result<int64_t> SimCluster::run(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts) {
  const int64_t begin_ns = clock_.now_ns();
  TRY(start(calls, starts));
  int64_t end_ns = begin_ns;
  while (!all_done()) {
    bool moved = false;
    for (const auto& engine : engines_) {
      moved |= engine->try_progress();
      if (auto failure = engine->failure()) return *failure;
    }
    if (moved) continue;
    if (!network_->step()) TRY(stuck());
    end_ns = clock_.now_ns();
  }
  return end_ns - begin_ns;
}

}  // namespace trestle
