#include "perf/driver/ranks.h"

#include <trestle/cuda.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

// While one exists, this thread's collectives choose their algorithm freely. TRESTLE_ALGO is for the measured calls. It
// often names an algorithm that cannot serve the driver's own calls.
class FreeAlgorithm {
 public:
  FreeAlgorithm() {
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.algo = "";
    require(trestleCallConfigPush(&config));
  }
  FreeAlgorithm(const FreeAlgorithm&) = delete;
  FreeAlgorithm& operator=(const FreeAlgorithm&) = delete;
  ~FreeAlgorithm() { require(trestleCallConfigPop()); }
};

// The stream for the driver's own collectives, which are on host memory. On a GPU's stream they would hold that stream.
trestleStream_t own_stream(const RankState& state) {
  return state.gpu == nullptr ? state.stream : nullptr;
}

void wait_on(trestleStream_t stream, trestleComm_t comm) {
  require(stream != nullptr ? trestleStreamSynchronize(stream) : trestleCommSynchronize(comm), comm);
}

}  // namespace

void join(std::vector<trestleComm_t>& comms, int first_rank, int nranks, const trestleUniqueId& id,
          const trestleConfig_t& config, const std::vector<int>& devices) {
  const auto one = [&](size_t i) {
    trestleConfig_t own = config;
    if (!devices.empty()) own.device = devices[i];
    require(trestleCommInitRankConfig(&comms[i], nranks, id, first_rank + static_cast<int>(i), &own));
  };
  // Joining blocks until all ranks are there, so each rank of this thread needs a thread of its own for it.
  std::vector<std::thread> others;
  for (size_t i = 1; i < comms.size(); ++i) others.emplace_back(one, i);
  one(0);
  for (std::thread& other : others) other.join();
}

Ranks::Ranks(const Layout& layout, const Options& options, int first_rank, const std::vector<trestleComm_t>& comms,
             bool prints, const std::vector<std::unique_ptr<Gpu>>& gpus)
    : layout_(layout), options_(options), prints_(prints), states_(comms.size()) {
  for (size_t i = 0; i < comms.size(); ++i) {
    states_[i].rank = first_rank + static_cast<int>(i);
    states_[i].comm = comms[i];
  }
  if (combine(gpus.empty() ? 0 : 1, Combine::kMin) > 0) put_on(gpus);
  for (RankState& state : states_) {
    if (options.null_stream) continue;
    if (state.gpu == nullptr) {
      require(trestleStreamCreate(&state.stream), state.comm);
      continue;
    }
    state.cuda_stream = state.gpu->make_stream();
    require(trestleStreamWrapCuda(&state.stream, state.cuda_stream), state.comm);
  }
}

void Ranks::put_on(const std::vector<std::unique_ptr<Gpu>>& gpus) {
  for (size_t i = 0; i < states_.size(); ++i) states_[i].gpu = gpus[i].get();
}

Ranks::~Ranks() {
  for (RankState& state : states_) {
    if (state.stream != nullptr) require(trestleStreamDestroy(state.stream), state.comm);
    if (state.cuda_stream != nullptr) state.gpu->destroy_stream(state.cuda_stream);
    require(trestleCommDestroy(state.comm));
  }
}

template <class Call>
void Ranks::together(Call call) {
  const FreeAlgorithm scope;
  const bool group = states_.size() > 1;
  if (group) require(trestleGroupStart());
  for (size_t i = 0; i < states_.size(); ++i) require(call(i, own_stream(states_[i])), states_[i].comm);
  if (group) require(trestleGroupEnd());
  for (const RankState& state : states_) wait_on(own_stream(state), state.comm);
}

void Ranks::wait() {
  for (const RankState& state : states_) wait_on(state.stream, state.comm);
}

void Ranks::barrier() {
  together([this](size_t i, trestleStream_t stream) { return trestleBarrier(states_[i].comm, stream); });
}

double Ranks::combine(double value, Combine how) {
  return combine(std::vector<double>{value}, how).front();
}

std::vector<double> Ranks::combine(const std::vector<double>& values, Combine how) {
  std::vector<std::vector<double>> mine(states_.size(), values), all(states_.size(), values);
  // A thread's value counts once, however many ranks the thread has.
  for (size_t i = 1; i < mine.size() && how == Combine::kSum; ++i) mine[i].assign(values.size(), 0.0);
  const trestleRedOp_t op = how == Combine::kSum ? trestleSum : how == Combine::kMin ? trestleMin : trestleMax;
  together([&](size_t i, trestleStream_t stream) {
    return trestleAllReduce(mine[i].data(), all[i].data(), values.size(), trestleFloat64, op, states_[i].comm, stream);
  });
  return all[0];
}

std::vector<std::vector<double>> Ranks::gather(const std::vector<double>& values) {
  const size_t nranks = static_cast<size_t>(layout_.nranks());
  std::vector<std::vector<double>> all(states_.size(), std::vector<double>(values.size() * nranks));
  together([&](size_t i, trestleStream_t stream) {
    return trestleAllGather(values.data(), all[i].data(), values.size(), trestleFloat64, states_[i].comm, stream);
  });
  std::vector<std::vector<double>> ranks;
  for (size_t rank = 0; rank < nranks; ++rank) {
    const auto first = all[0].begin() + static_cast<std::ptrdiff_t>(rank * values.size());
    ranks.emplace_back(first, first + static_cast<std::ptrdiff_t>(values.size()));
  }
  return ranks;
}

void Ranks::broadcast(void* data, size_t bytes) {
  const char* const from = static_cast<const char*>(data);
  std::vector<std::vector<char>> mine(states_.size(), std::vector<char>(from, from + bytes));
  together([&](size_t i, trestleStream_t stream) {
    return trestleBroadcast(mine[i].data(), mine[i].data(), bytes, trestleUint8, 0, states_[i].comm, stream);
  });
  std::memcpy(data, mine[0].data(), bytes);
}

double Ranks::average(double time) {
  switch (options_.average) {
    case 0:
      return time;  // only rank 0's time is printed
    case 2:
      return combine(time, Combine::kMin);
    case 3:
      return combine(time, Combine::kMax);
    default:
      return combine(time, Combine::kSum) / (layout_.processes * layout_.threads);
  }
}

std::vector<std::string> Ranks::gather(const std::vector<std::string>& texts) {
  const size_t nranks = static_cast<size_t>(layout_.nranks());
  std::vector<std::string> mine(states_.size(), std::string(kTextBytes, '\0'));
  std::vector<std::string> all(states_.size(), std::string(kTextBytes * nranks, '\0'));
  for (size_t i = 0; i < texts.size(); ++i) texts[i].copy(mine[i].data(), kTextBytes - 1);
  together([&](size_t i, trestleStream_t stream) {
    return trestleAllGather(mine[i].data(), all[i].data(), kTextBytes, trestleUint8, states_[i].comm, stream);
  });
  std::vector<std::string> gathered;
  for (size_t rank = 0; rank < nranks; ++rank) gathered.emplace_back(all[0].data() + rank * kTextBytes);
  return gathered;
}

}  // namespace trestle::perf
