#include "support/sim_rails.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace trestle {
namespace {

constexpr size_t kPipeBytes = 256 * 1024;
constexpr int64_t kIdleStepNs = 5'000'000;

}  // namespace

class SimRails::End final : public Rail {
 public:
  End(SimRails& net, size_t rail, int32_t rank) : net_(net), rail_(rail), rank_(rank), peers_(net.ranks_) {}

  std::string address() const override { return "rail " + std::to_string(rail_); }
  Status set_peers(const std::vector<std::string>& addresses) override {
    for (size_t i = 0; i < addresses.size(); ++i) peers_[i].reachable = !addresses[i].empty();
    return {};
  }
  uint64_t memory_bytes() const override { return 0; }
  std::string fault() const override {
    return net_.down_[rail_] ? "sim" + std::to_string(rail_) + " is down" : std::string();
  }

  Status reach(int32_t rank) override {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    CHECK(peer.reachable, "a rail is asked to reach a rank that it does not reach");
    if (net_.down_[rail_]) return events_->lost(rank, {Code::kRemoteError, "the rail is down"});
    peer.in_line = peer.connection == nullptr && net_.stopped_[rail_];
    if (peer.connection == nullptr && !peer.in_line) net_.open(rail_, rank_, rank);
    return {};
  }
  void drop(int32_t rank) override {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    std::shared_ptr<Connection>& current = net_.current(rail_, rank_, rank);
    if (peer.connection != nullptr) peer.connection->closed[rank_ > rank] = true;
    if (peer.connection == nullptr || current == peer.connection) current.reset();
    peer.connection.reset();
    peer.stream.reset();
    peer.in_line = false;
  }
  bool in_line(int32_t rank) const override { return peers_[static_cast<size_t>(rank)].in_line; }
  bool is_idle(int32_t rank) const override {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    return peer.connection != nullptr && room(rank) > 0 && !peer.stream->has_output();
  }
  Result<bool> write(int32_t rank) override;
  Result<bool> progress() override;
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override {
    for (int32_t rank = 0; rank < net_.ranks_; ++rank) {
      if (rank != rank_ && peers_[static_cast<size_t>(rank)].connection != nullptr) drop(rank);
    }
  }

 private:
  struct Peer {
    bool reachable = false;
    bool in_line = false;
    std::shared_ptr<Connection> connection;
    std::unique_ptr<FrameStream> stream;
  };
  size_t room(int32_t rank) const {
    const Connection& connection = *peers_[static_cast<size_t>(rank)].connection;
    const size_t waiting = connection.to[rank > rank_].waiting(net_.now_ns_);
    return waiting >= kPipeBytes ? 0 : kPipeBytes - waiting;
  }
  Result<bool> serve(int32_t rank);
  bool attach(int32_t rank);
  Result<bool> read(int32_t rank);
  Result<bool> lose(int32_t rank, bool in_order);

  SimRails& net_;
  const size_t rail_;
  const int32_t rank_;
  std::vector<Peer> peers_;
};

Result<bool> SimRails::End::progress() {
  bool moved = false;
  for (int32_t rank = 0; rank < net_.ranks_; ++rank) {
    if (rank != rank_ && peers_[static_cast<size_t>(rank)].reachable) moved = TRY(serve(rank)) || moved;
  }
  return moved;
}

Result<bool> SimRails::End::serve(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.in_line && !net_.stopped_[rail_]) {
    peer.in_line = false;
    net_.open(rail_, rank_, rank);
  }
  if (attach(rank)) return true;
  if (peer.connection == nullptr) return false;
  bool moved = TRY(read(rank));
  if (peer.connection != nullptr) moved = TRY(write(rank)) || moved;
  return moved;
}

// A connection that is made becomes the pair's, once the end of the last one is settled.
bool SimRails::End::attach(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const std::shared_ptr<Connection> current = net_.current(rail_, rank_, rank);
  if (peer.connection != nullptr || current == nullptr || current->attached[rank_ > rank]) return false;
  if (net_.now_ns_ < current->made_ns || current->lossy || net_.down_[rail_] || events_->peer(rank).unsettled)
    return false;
  current->attached[rank_ > rank] = true;
  peer.in_line = false;
  peer.connection = current;
  peer.stream = std::make_unique<FrameStream>(7, 7);
  events_->connected(rank);
  return true;
}

Result<bool> SimRails::End::lose(int32_t rank, bool in_order) {
  const Status status =
      in_order ? events_->ended(rank) : events_->lost(rank, {Code::kRemoteError, "the connection was reset"});
  if (!status.ok()) return status.error();
  drop(rank);
  return true;
}

Result<bool> SimRails::End::read(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const std::shared_ptr<Connection> connection = peer.connection;
  if (connection->reset) return lose(rank, false);
  Pipe& pipe = connection->to[rank_ > rank];
  bool moved = false;
  while (!pipe.chunks.empty() && pipe.chunks.front().arrives_ns <= net_.now_ns_) {
    const Chunk chunk = std::move(pipe.chunks.front());
    pipe.chunks.pop_front();
    moved = true;
    // In pieces of any size, as a socket gives them.
    for (size_t at = 0; at < chunk.bytes.size() && peer.stream != nullptr;) {
      const size_t bytes = std::min<size_t>(chunk.bytes.size() - at, 1 + net_.rng_.below(100'000));
      TRY(peer.stream->take(std::span(chunk.bytes).subspan(at, bytes), rank, *events_));
      at += bytes;
    }
    if (peer.connection != connection) return true;
  }
  if (connection->closed[rank > rank_] && pipe.chunks.empty() && !connection->lossy) return lose(rank, true);
  return moved;
}

Result<bool> SimRails::End::write(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  bool moved = false;
  std::vector<iovec> vectors(64);
  for (size_t left = room(rank); left > 0; left = room(rank)) {
    const size_t used = peer.stream->fill_output(vectors, rank, *events_);
    Chunk chunk;
    for (size_t i = 0; i < used && chunk.bytes.size() < left; ++i) {
      const auto* data = static_cast<const std::byte*>(vectors[i].iov_base);
      chunk.bytes.insert(chunk.bytes.end(), data, data + std::min(vectors[i].iov_len, left - chunk.bytes.size()));
    }
    if (chunk.bytes.empty()) return moved;
    const size_t bytes = chunk.bytes.size();
    Pipe& pipe = peer.connection->to[rank > rank_];
    pipe.free_ns = std::max(pipe.free_ns, net_.now_ns_) +
                   static_cast<int64_t>(static_cast<double>(bytes) / net_.specs_[rail_].rate);
    const auto ahead = static_cast<int64_t>(net_.specs_[rail_].burst / net_.specs_[rail_].rate);
    chunk.leaves_ns = std::max(net_.now_ns_, pipe.free_ns - ahead);
    chunk.arrives_ns = chunk.leaves_ns + net_.specs_[rail_].latency_ns;
    net_.carried_[rail_] += bytes;
    if (net_.is_silent(rail_, rank_, rank)) peer.connection->lossy = true;
    if (peer.connection->lossy) chunk.leaves_ns = chunk.arrives_ns = std::numeric_limits<int64_t>::max();
    pipe.chunks.push_back(std::move(chunk));
    peer.stream->wrote(bytes, rank, *events_);
    moved = true;
  }
  return moved;
}

size_t SimRails::Pipe::waiting(int64_t now_ns) const {
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.leaves_ns > now_ns ? chunk.bytes.size() : 0;
  return bytes;
}

SimRails::SimRails(std::vector<SimRailSpec> rails, int32_t ranks, uint64_t seed, PeerRails::Options options)
    : specs_(std::move(rails)),
      ranks_(ranks),
      rng_(seed),
      silent_(specs_.size()),
      silent_ends_(specs_.size()),
      down_(specs_.size()),
      stopped_(specs_.size()),
      carried_(specs_.size()),
      current_(specs_.size() * static_cast<size_t>(ranks * ranks)) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    RailSet set;
    for (size_t rail = 0; rail < specs_.size(); ++rail) {
      set.rails.push_back(std::make_unique<End>(*this, rail, rank));
      set.names.push_back("sim" + std::to_string(rail));
    }
    set.address = "here";
    set.paths = [this](int32_t, const std::string&) -> Result<std::vector<RailPath>> {
      std::vector<RailPath> paths;
      for (size_t rail = 0; rail < specs_.size(); ++rail) paths.push_back({rail, "there", specs_[rail].stated});
      return paths;
    };
    set.options = options;
    set.clock = this;
    EndpointConfig config;
    config.rank = rank;
    config.ranks = ranks;
    transports_.push_back(std::make_unique<RailTransport>(config, "sim", std::move(set)));
  }
  for (auto& transport : transports_) {
    const Status set = transport->set_peers(std::vector<std::string>(static_cast<size_t>(ranks), "here"), {});
    CHECK(set.ok(), "simulated rails have addresses");
  }
}

SimRails::~SimRails() = default;

std::shared_ptr<SimRails::Connection>& SimRails::current(size_t rail, int32_t a, int32_t b) {
  const auto ranks = static_cast<size_t>(ranks_);
  return current_[(rail * ranks + static_cast<size_t>(std::min(a, b))) * ranks + static_cast<size_t>(std::max(a, b))];
}

std::shared_ptr<SimRails::Connection> SimRails::open(size_t rail, int32_t a, int32_t b) {
  std::shared_ptr<Connection>& pair = current(rail, a, b);
  if (pair != nullptr && !pair->closed[0] && !pair->closed[1] && !pair->reset) return pair;
  pair = std::make_shared<Connection>();
  pair->rank[0] = std::min(a, b);
  pair->rank[1] = std::max(a, b);
  pair->rail = rail;
  pair->made_ns = now_ns_ + 3 * specs_[rail].latency_ns;
  pair->lossy = is_silent(rail, a, b);
  return pair;
}

void SimRails::reset(size_t rail) {
  const size_t pairs = current_.size() / specs_.size();
  for (size_t i = 0; i < pairs; ++i) {
    const auto& connection = current_[rail * pairs + i];
    if (connection != nullptr && connection->attached[0] && connection->attached[1]) connection->reset = true;
  }
}

bool SimRails::is_silent(size_t rail, int32_t a, int32_t b) const {
  return silent_[rail] || silent_ends_[rail].contains(a) || silent_ends_[rail].contains(b);
}

void SimRails::delay(size_t rail, int32_t a, int32_t b, int64_t by_ns) {
  const auto& connection = current(rail, a, b);
  if (connection == nullptr || connection->lossy || now_ns_ < connection->delayed_ns + 2 * by_ns) return;
  connection->delayed_ns = now_ns_;
  for (Pipe& pipe : connection->to) {
    for (Chunk& chunk : pipe.chunks) chunk.arrives_ns += chunk.arrives_ns > now_ns_ ? by_ns : 0;
  }
}

void SimRails::reset(size_t rail, int32_t a, int32_t b) {
  const auto& connection = current(rail, a, b);
  if (connection != nullptr && connection->attached[0] && connection->attached[1]) connection->reset = true;
}

Status SimRails::step(int32_t frozen) {
  bool moved = false;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (rank == frozen) continue;
    Result<bool> result = (*this)[rank].progress();
    if (!result.ok()) return std::move(result).error();
    moved = moved || result.value();
  }
  if (!moved) pass_time();
  return {};
}

// To the next arrival, or to the moment at which a pipe has room; at most kIdleStepNs on, for what waits for the clock.
void SimRails::pass_time() {
  int64_t next = now_ns_ + kIdleStepNs;
  for (const auto& connection : current_) {
    if (connection == nullptr) continue;
    if (connection->made_ns > now_ns_) next = std::min(next, connection->made_ns);
    for (const Pipe& pipe : connection->to) {
      if (pipe.chunks.empty()) continue;
      // Data that has arrived already waits for a rank that is not driven.
      const auto comes = std::find_if(pipe.chunks.begin(), pipe.chunks.end(),
                                      [this](const Chunk& chunk) { return chunk.arrives_ns > now_ns_; });
      if (comes != pipe.chunks.end()) next = std::min(next, comes->arrives_ns);
      const auto waits = std::find_if(pipe.chunks.begin(), pipe.chunks.end(),
                                      [this](const Chunk& chunk) { return chunk.leaves_ns > now_ns_; });
      if (waits != pipe.chunks.end()) next = std::min(next, waits->leaves_ns);
    }
  }
  now_ns_ = next;
  for (auto& transport : transports_) transport->look_everywhere();
}

}  // namespace trestle
