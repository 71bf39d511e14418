#include "sim/network.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/rail_links.h"
#include "sim/work_queue.h"
#include "transport/agreement.h"
#include "transport/pieces.h"

namespace trestle {

namespace {

template <class Request>
void complete(Request& request) {
  request.state = RequestState::kDone;
  if (request.touched != nullptr) *request.touched = true;
}

}  // namespace

// The transport of one simulated rank. It passes posts on to the network.
class SimTransport : public Transport {
 public:
  SimTransport(SimNetwork& network, int32_t rank) : network_(network), rank_(rank) {}
  ~SimTransport() override { network_.transports_[rank_] = nullptr; }
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest& request) override {
    request.state = RequestState::kPending;
    SimTransport* const peer = network_.transports_[request.peer];
    const bool agreed = peer == nullptr || peer->hear(rank_, request.tag);
    if (is_notice(request.tag)) {
      request.state = RequestState::kDone;
    } else if (agreed) {
      network_.post(rank_, request.peer, request.tag, &request, nullptr);
    }
    return true;
  }
  Result<bool> post_recv(RecvRequest& request) override {
    request.state = RequestState::kPending;
    network_.post(request.peer, rank_, request.tag, nullptr, &request);
    return true;
  }
  void release(RecvRequest& request) override { network_.released(request); }
  Result<bool> progress() override {
    if (error_) return *error_;
    return false;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override {}

  void fail(const Error& error) {
    if (!error_) error_ = error;
    network_.wake(rank_);
  }
  // Sizes differ: a caller's mistake, which the receiver reports.
  void differ(const SendRequest& send, const RecvRequest& recv) {
    const auto name = [&](int32_t rank) {
      return agreement_ != nullptr ? agreement_->name(rank) : "rank " + std::to_string(rank);
    };
    fail(different_sizes(name(recv.peer), name(rank_), send.tag, send.bytes, recv.tag, recv.bytes));
  }

 private:
  // Compares the peer's operation with this rank's, without latency. Returns false if they differ.
  bool hear(int32_t from, const MessageTag& tag) {
    if (agreement_ == nullptr || agreement_->heard(from, tag)) return true;
    fail(agreement_->error());
    return false;
  }

  SimNetwork& network_;
  const int32_t rank_;
  std::optional<Error> error_;
};

bool SimNetwork::Waiting::operator>(const Waiting& other) const {
  return std::tie(operation, order, offset, created) >
         std::tie(other.operation, other.order, other.offset, other.created);
}

SimNetwork::SimNetwork(const Topology& topology, std::vector<SimLink> links, const SimFaults& faults, bool data,
                       VirtualClock& clock)
    : topology_(topology),
      specs_(std::move(links)),
      faults_(faults),
      data_(data),
      clock_(clock),
      rng_(faults.seed),
      resource_free_ps_(topology.ranks()),
      awake_(topology.ranks(), false),
      bytes_sent_(specs_.size()),
      busy_ps_(specs_.size()) {
  CHECK(specs_.size() == topology.dimensions.size(), "one link per dimension");
  links_.resize(static_cast<size_t>(topology.ranks()) * specs_.size());
  transports_.resize(topology.ranks());
  work_queues_.resize(topology.ranks());
  for (const SlowRank& slow : faults_.slow_ranks) {
    for (uint8_t d = 0; d < specs_.size(); ++d) links_[link_index(slow.rank, d)].percent = slow.percent;
  }
  for (const SlowLink& slow : faults_.slow_links) {
    Link& link = links_[link_index(slow.rank, slow.dimension)];
    link.percent = link.percent * slow.percent / 100;
  }
  for (const DeadLink& dead : faults_.dead_links) {
    events_.push({dead.at_ns * kPsPerNs, created_++, link_index(dead.rank, dead.dimension), Kind::kLinkDeath});
  }
  const auto has_rails = [](const SimLink& spec) { return !spec.rails.empty(); };
  if (std::any_of(specs_.begin(), specs_.end(), has_rails)) rails_ = std::make_unique<SimRailLinks>(*this);
}

SimNetwork::~SimNetwork() = default;

std::vector<SimRailCount> SimNetwork::rail_counts(uint8_t dimension) const {
  return rails_ == nullptr ? std::vector<SimRailCount>{} : rails_->counts(dimension);
}

void SimNetwork::fail(const Error& error) {
  for (SimTransport* const transport : transports_) {
    if (transport != nullptr) transport->fail(error);
  }
}

std::unique_ptr<Transport> SimNetwork::make_transport(int32_t rank) {
  auto transport = std::make_unique<SimTransport>(*this, rank);
  transports_[rank] = transport.get();
  return transport;
}

void SimNetwork::set_seniority(uint64_t operation, std::vector<uint32_t> seniority) {
  times_[operation].resize(seniority.size());
  seniority_[operation] = std::move(seniority);
}

uint8_t SimNetwork::dimension_between(int32_t a, int32_t b) const {
  for (auto d = static_cast<uint8_t>(specs_.size()); d-- > 0;) {
    if (topology_.coordinate(a, d) != topology_.coordinate(b, d)) return d;
  }
  return 0;
}

void SimNetwork::wake(int32_t rank) {
  if (awake_[rank]) return;
  awake_[rank] = true;
  awake_list_.push_back(rank);
}

void SimNetwork::take_awake(std::vector<int32_t>& ranks) {
  ranks.clear();
  ranks.swap(awake_list_);
  for (const int32_t rank : ranks) awake_[rank] = false;
}

void SimNetwork::post(int32_t from, int32_t to, const MessageTag& tag, SendRequest* send, RecvRequest* recv) {
  const uint32_t index = messages_.find_or_add(from, to, tag);
  SimMessage& message = messages_[index];
  if (send != nullptr) message.send = send;
  if (recv != nullptr) message.recv = recv;
  if (send != nullptr && from == 0) note(message, true);
  if (message.send == nullptr || message.recv == nullptr) return;
  if (sizes_differ(message.send->tag, message.send->bytes, message.recv->tag, message.recv->bytes)) {
    if (transports_[to] != nullptr) transports_[to]->differ(*message.send, *message.recv);
    return;
  }
  message.dimension = dimension_between(from, to);
  const auto known = seniority_.find(tag.operation);
  const uint64_t phase =
      known == seniority_.end() || tag.phase >= known->second.size() ? tag.phase : known->second[tag.phase];
  const uint32_t link = link_index(from, message.dimension);
  const Waiting waiting{tag.operation, phase << 32 | message.send->step, tag.offset, created_++, index};
  if (specs_[message.dimension].rails.empty()) {
    links_[link].waiting.push(waiting);
  } else {
    rails_->post(link, waiting);
  }
  let_choose(link);
}

// The link chooses later: first all posts of this instant are made, and the oldest of them must go first.
void SimNetwork::let_choose(uint32_t link) {
  if (links_[link].choosing || links_[link].busy) return;
  links_[link].choosing = true;
  free_links_.push_back(link);
}

void SimNetwork::schedule_work(int32_t rank, uint64_t time_ps) {
  events_.push({time_ps, created_++, static_cast<uint32_t>(rank), Kind::kWorkEnd});
}

uint64_t SimNetwork::link_ps(const Link& link, const SimMessage& message, uint64_t bytes, uint64_t mbps,
                             bool first) const {
  const SimLink& spec = specs_[message.dimension];
  uint64_t ps = bytes * kPsPerByteAtOneMbps / mbps;
  if (first) ps += spec.message_ns * kPsPerNs;
  if (spec.reduce_mbps != 0 && message.recv->pieces.empty()) ps += bytes * kPsPerByteAtOneMbps / spec.reduce_mbps;
  return ps * link.percent / 100;
}

uint64_t SimNetwork::leave_ps(const SimMessage& message, uint64_t bytes, uint64_t left_ps) {
  const SimLink& spec = specs_[message.dimension];
  if (spec.resource == kNoSimResource) return left_ps;
  std::vector<uint64_t>& resources = resource_free_ps_[message.from];
  if (resources.size() <= spec.resource) resources.resize(spec.resource + size_t{1}, 0);
  uint64_t& free_ps = resources[spec.resource];
  free_ps = std::max(free_ps, clock_.now_ps()) + bytes * spec.resource_ps_per_byte;
  return std::max(left_ps, free_ps);
}

void SimNetwork::choose(uint32_t index) {
  Link& link = links_[index];
  link.choosing = false;
  if (!specs_[index % specs_.size()].rails.empty()) {
    if (!link.dead) rails_->choose(index);
    return;
  }
  if (link.busy || link.dead || link.waiting.empty()) return;
  const uint32_t which = link.waiting.top().message;
  link.waiting.pop();
  const SimMessage& message = messages_[which];
  const SimLink& spec = specs_[message.dimension];
  const uint64_t bytes = message.send->bytes;
  const uint64_t now_ps = clock_.now_ps();
  const uint64_t left_ps = leave_ps(message, bytes, now_ps + link_ps(link, message, bytes, spec.bandwidth_mbps, true));
  link.busy = true;
  ++messages_sent_;
  bytes_sent_[message.dimension] += bytes;
  busy_ps_[message.dimension] += left_ps - now_ps;
  const uint64_t jitter_ns = faults_.most_jitter_ns == 0 ? 0 : rng_.below(faults_.most_jitter_ns + 1);
  events_.push({left_ps, created_++, index, Kind::kLinkFree});
  events_.push({left_ps + (spec.latency_ns + jitter_ns) * kPsPerNs, created_++, which, Kind::kArrival});
}

void SimNetwork::happen(const Event& event) {
  switch (event.kind) {
    case Kind::kLinkFree:
      links_[event.what].busy = false;
      if (!links_[event.what].waiting.empty()) let_choose(event.what);
      break;
    case Kind::kArrival:
      arrive(event.what, true);
      break;
    case Kind::kLinkDeath:
      links_[event.what].dead = true;
      break;
    case Kind::kWorkEnd:
      if (work_queues_[event.what] != nullptr) work_queues_[event.what]->end_first();
      break;
    case Kind::kRail:
      rails_->happen(event.rail_kind, event.what);
      break;
  }
}

void SimNetwork::arrive(uint32_t index, bool copy) {
  const SimMessage message = messages_[index];
  if (links_[link_index(message.from, message.dimension)].dead) return;
  SendRequest& send = *message.send;
  RecvRequest& recv = *message.recv;
  if (message.from == 0 || message.to == 0) note(message, false);
  if (recv.pieces.empty()) {
    if (data_) recv.view.assign(send.pieces.begin(), send.pieces.end());
    recv.transport.pointer[0] = &send;  // done when the view is released
    recv.transport.word[0] = static_cast<uint64_t>(message.from);
  } else {
    if (data_ && copy) copy_pieces(send.pieces, recv.pieces);
    complete(send);
    wake(message.from);
  }
  complete(recv);
  wake(message.to);
  messages_.erase(index);
}

void SimNetwork::released(RecvRequest& request) {
  auto* send = static_cast<SendRequest*>(request.transport.pointer[0]);
  request.transport.pointer[0] = nullptr;
  if (send == nullptr) return;
  complete(*send);
  wake(static_cast<int32_t>(request.transport.word[0]));
}

void SimNetwork::note(const SimMessage& message, bool posted) {
  const auto known = times_.find(message.tag.operation);
  if (known == times_.end() || message.tag.phase >= known->second.size()) return;
  SimPhaseTimes& times = known->second[message.tag.phase];
  if (posted && !times.any) times.first_posted_ps = clock_.now_ps();
  times.any = true;
  if (!posted) times.last_arrival_ps = clock_.now_ps();
}

bool SimNetwork::step() {
  for (size_t i = 0; i < free_links_.size(); ++i) choose(free_links_[i]);
  free_links_.clear();
  if (events_.empty()) return false;
  const uint64_t time_ps = events_.top().time_ps;
  clock_.advance_to_ps(time_ps);
  while (!events_.empty() && events_.top().time_ps == time_ps) {
    const Event event = events_.top();
    events_.pop();
    happen(event);
  }
  return true;
}

}  // namespace trestle
