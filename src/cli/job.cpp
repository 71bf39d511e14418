#include "cli/job.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"

namespace trestle {
namespace {

// Makes a topology file that only this process sees, because the library takes topologies as files.
Result<UniqueFd> memory_file(const std::string& text) {
  UniqueFd file(::memfd_create("topology", MFD_CLOEXEC));
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Error{Code::kSystemError, std::string("a file in memory cannot be made: ") + std::strerror(errno)};
  }
  return file;
}

}  // namespace

Topology flat_topology(int ranks) {
  Topology topology;
  Dimension& all = topology.dimensions.emplace_back();
  all.size = ranks;
  all.bandwidth_mbps = 1000;
  all.latency_ns = 0;
  return topology;
}

Status said(trestleResult_t result, trestleComm_t comm) {
  if (result == trestleSuccess) return {};
  const std::string sentence = trestleGetLastError(comm);
  return Error{static_cast<Code>(result), sentence.empty() ? trestleGetErrorString(result) : sentence};
}

Result<Job> Job::join(const Topology& topology) {
  Job job;
  job.topology_ = topology;
  TRY(said(trestleLauncherInfo(&job.rank_, &job.ranks_, nullptr), nullptr));
  const UniqueFd file = TRY(memory_file(to_json(topology)));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.dims = "";
  config.transport = "auto";
  config.topoFile = path.c_str();
  const trestleUniqueId launchers{};
  TRY(said(trestleCommInitRankConfig(&job.comm_, job.ranks_, launchers, job.rank_, &config), nullptr));
  return job;
}

Job::Job(Job&& other) noexcept
    : comm_(std::exchange(other.comm_, nullptr)),
      rank_(other.rank_),
      ranks_(other.ranks_),
      topology_(std::move(other.topology_)) {}

Job::~Job() {
  if (comm_ != nullptr) trestleCommDestroy(comm_);
}

Status Job::barrier() const {
  TRY(said(trestleBarrier(comm_, nullptr), comm_));
  return synchronize();
}

Result<std::vector<std::string>> Job::all_gather(const std::string& mine) const {
  constexpr size_t kBytes = 1024;
  CHECK(mine.size() < kBytes, "a text that is too long for its record");
  std::vector<char> send(kBytes);
  std::vector<char> received(kBytes * static_cast<size_t>(ranks_));
  mine.copy(send.data(), mine.size());
  TRY(said(trestleAllGather(send.data(), received.data(), kBytes, trestleUint8, comm_, nullptr), comm_));
  TRY(synchronize());
  std::vector<std::string> texts;
  for (size_t at = 0; at < received.size(); at += kBytes) texts.emplace_back(received.data() + at);
  return texts;
}

Status Job::largest(std::vector<int64_t>& values) const {
  TRY(said(trestleAllReduce(values.data(), values.data(), values.size(), trestleInt64, trestleMax, comm_, nullptr),
           comm_));
  return synchronize();
}

}  // namespace trestle
