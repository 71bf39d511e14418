#include "conformance/api_space.h"

#include <algorithm>
#include <array>

namespace api {

namespace {

struct Shape {
  int ranks;
  const char* dims;
  const char* hosts = "";
};
constexpr std::array<Shape, 14> kShapes = {{{1, ""},
                                            {2, ""},
                                            {3, "3"},
                                            {4, "4"},
                                            {4, "2x2"},
                                            {5, ""},
                                            {6, "3x2"},
                                            {6, "2x3"},
                                            {7, "7"},
                                            {8, "8"},
                                            {8, "4x2"},
                                            {8, "2x4"},
                                            {8, "2x2x2"},
                                            {8, "", "aaabbbbb"}}};
constexpr std::array<const char*, 4> kTransports = {"loopback", "shm", "tcp", "shm,tcp"};
constexpr std::array<const char*, 12> kAlgorithms = {"",       "ring",  "direct",   "hd",    "rd",    "tree",
                                                     "dbtree", "mixed", "binomial", "bruck", "chain", "pairwise"};
constexpr std::array<int, 5> kChunkCounts = {-1, 1, 2, 5, 16};
constexpr std::array<size_t, 5> kCounts = {0, 1, 7, 1009, 30'011};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

// The first `count` of comma-separated names.
std::string first_names(const std::string& names, std::ptrdiff_t count) {
  size_t end = 0;
  for (; end < names.size(); ++end) {
    if (names[end] == ',' && --count == 0) break;
  }
  return names.substr(0, end);
}

}  // namespace

std::vector<int> factor_sizes() {
  std::vector<int> sizes(kFactors);
  sizes[kShape] = static_cast<int>(kShapes.size());
  sizes[kTransport] = static_cast<int>(kTransports.size());
  sizes[kAlgorithm] = static_cast<int>(kAlgorithms.size());
  sizes[kChunks] = static_cast<int>(kChunkCounts.size());
  sizes[kCollective] = static_cast<int>(std::size(kEvenCollectives));
  sizes[kType] = trestleNumTypes;
  sizes[kOp] = trestleNumOps;
  sizes[kInPlace] = 2;
  sizes[kCount] = static_cast<int>(kCounts.size());
  return sizes;
}

bool is_allowed(const Choice& choice) {
  const std::string dims = kShapes[static_cast<size_t>(choice[kShape])].dims;
  const std::string transport = kTransports[static_cast<size_t>(choice[kTransport])];
  if (transport.find(',') != std::string::npos && dims.find('x') == std::string::npos) return false;
  return reduces(kEvenCollectives[static_cast<size_t>(choice[kCollective])]) || choice[kOp] == 0;
}

std::string algorithm_rules(const std::string& algorithm, const std::string& dims) {
  if (algorithm.empty()) return "";
  const auto dimensions = 1 + std::count(dims.begin(), dims.end(), 'x');
  if (algorithm == "mixed") {
    return "allreduce:" + first_names("ring,rd,tree", dimensions) +
           ";broadcast:" + first_names("tree,direct,ring", dimensions) +
           ";reduce:" + first_names("direct,dbtree,ring", dimensions) +
           ";alltoall:" + first_names("bruck,direct,bruck", dimensions);
  }
  if (algorithm == "binomial") return "gather:binomial;scatter:binomial";
  const bool halves = is_one_of(algorithm, {"ring", "direct", "hd"});
  const bool rooted = is_one_of(algorithm, {"ring", "direct", "tree", "dbtree"});
  // One name per dimension asks for phases on each of them.
  const std::string all = first_names(algorithm + "," + algorithm + "," + algorithm, dimensions);
  if (algorithm == "chain") return "broadcast:" + all + ";reduce:" + all;
  if (algorithm == "bruck") return "alltoall:*bruck;allgather:" + all + ";allgatherv:" + all;
  if (algorithm == "pairwise") return "alltoall:" + all + ";alltoallv:*pairwise";
  std::string rules = "allreduce:" + all;
  if (halves) rules += ";reducescatter:" + all + ";reducescatterv:" + all;
  if (halves || algorithm == "rd") rules += ";allgather:" + all + ";allgatherv:" + all;
  if (rooted) rules += ";broadcast:" + all + ";reduce:" + all;
  if (algorithm == "direct") rules += ";alltoall:" + all + ";gather:direct;scatter:direct";
  return rules;
}

ranks::Settings settings_of(const Choice& choice) {
  const Shape& shape = kShapes[static_cast<size_t>(choice[kShape])];
  ranks::Settings settings;
  settings.ranks = shape.ranks;
  settings.dims = shape.dims;
  settings.transport = kTransports[static_cast<size_t>(choice[kTransport])];
  settings.hosts = shape.hosts;
  if (!settings.hosts.empty() && settings.transport != "tcp") {
    settings.processes = settings.transport == "shm";
    settings.transport = "auto";
  }
  settings.algo = algorithm_rules(kAlgorithms[static_cast<size_t>(choice[kAlgorithm])], shape.dims);
  settings.chunks = kChunkCounts[static_cast<size_t>(choice[kChunks])];
  settings.peer_paths = (choice[kAlgorithm] + choice[kChunks]) % 2 == 0;
  return settings;
}

Call call_of(const Choice& choice, uint64_t seed) {
  Call call;
  call.collective = kEvenCollectives[static_cast<size_t>(choice[kCollective])];
  call.type = static_cast<trestleDataType_t>(choice[kType]);
  call.op = static_cast<trestleRedOp_t>(choice[kOp]);
  call.in_place = choice[kInPlace] != 0;
  call.count = kCounts[static_cast<size_t>(choice[kCount])];
  call.root = static_cast<int>(seed % static_cast<uint64_t>(kShapes[static_cast<size_t>(choice[kShape])].ranks));
  call.seed = seed;
  call.shared_memory = seed % 7 == 0;
  return call;
}

}  // namespace api
