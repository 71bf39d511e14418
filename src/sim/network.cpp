#include "sim/network.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace trestle {

namespace {

bool older(const MessageTag& a, const MessageTag& b) {
  return std::tie(a.operation, a.phase, a.offset, a.message) < std::tie(b.operation, b.phase, b.offset, b.message);
}

// Copies the sender's pieces into the receiver's.
void move_bytes(const SendRequest& send, const RecvRequest& recv) {
  size_t piece = 0, at = 0;
  for (const ConstPiece& source : send.pieces) {
    for (size_t done = 0; done < source.bytes;) {
      while (recv.pieces[piece].bytes == at) {
        ++piece;
        at = 0;
      }
      const size_t take = std::min(source.bytes - done, recv.pieces[piece].bytes - at);
      std::memcpy(recv.pieces[piece].data + at, source.data + done, take);
      done += take;
      at += take;
    }
  }
}

}  // namespace

// The transport of one simulated rank: posts go to the network, nothing else.
class SimTransport : public Transport {
 public:
  SimTransport(SimNetwork& network, int32_t rank) : network_(network), rank_(rank) {}
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest& request) override {
    request.state = RequestState::kPending;
    network_.post({rank_, request.peer, request.tag}, &request, nullptr);
    return true;
  }
  Result<bool> post_recv(RecvRequest& request) override {
    request.state = RequestState::kPending;
    network_.post({request.peer, rank_, request.tag}, nullptr, &request);
    return true;
  }
  void release(RecvRequest& request) override {
    auto* send = static_cast<SendRequest*>(request.transport.pointer[0]);
    if (send != nullptr) send->state = RequestState::kDone;
    request.transport.pointer[0] = nullptr;
  }
  Result<bool> progress() override { return false; }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override {}

 private:
  SimNetwork& network_;
  const int32_t rank_;
};

SimNetwork::SimNetwork(const Topology& topology, std::vector<SimLink> links, SimFaults faults, VirtualClock& clock)
    : topology_(topology),
      specs_(std::move(links)),
      faults_(faults),
      clock_(clock),
      rng_(faults.seed),
      bytes_sent_(specs_.size()) {
  CHECK(specs_.size() == topology.dimensions.size(), "one link per dimension");
  links_.resize(static_cast<size_t>(topology.ranks()) * specs_.size());
}

std::unique_ptr<Transport> SimNetwork::make_transport(int32_t rank) {
  return std::make_unique<SimTransport>(*this, rank);
}

uint8_t SimNetwork::dimension_between(int32_t a, int32_t b) const {
  for (auto d = static_cast<uint8_t>(specs_.size()); d-- > 0;) {
    if (topology_.coordinate(a, d) != topology_.coordinate(b, d)) return d;
  }
  return 0;
}

void SimNetwork::post(const Key& key, SendRequest* send, RecvRequest* recv) {
  auto& message = open_[key];
  if (!message) message = std::make_unique<Message>(Message{key.tag, key.from, key.to, nullptr, nullptr});
  if (send != nullptr) message->send = send;
  if (recv != nullptr) message->recv = recv;
  if (message->send == nullptr || message->recv == nullptr) return;
  CHECK(message->send->bytes == message->recv->bytes, "both sides of a message must have the same size");
  const uint8_t dimension = dimension_between(key.from, key.to);
  link(key.from, dimension).waiting.push_back(message.get());
  // Not at once: of all that is posted at this instant the oldest goes first.
  happen_at(clock_.now_ns(), [this, from = key.from, dimension] { start_next(from, dimension); });
}

void SimNetwork::start_next(int32_t rank, uint8_t dimension) {
  Link& out = link(rank, dimension);
  if (out.busy || out.waiting.empty()) return;
  const auto next = std::min_element(out.waiting.begin(), out.waiting.end(),
                                     [](const Message* a, const Message* b) { return older(a->tag, b->tag); });
  Message* message = *next;
  out.waiting.erase(next);
  out.busy = true;
  const SimLink& spec = specs_[dimension];
  bytes_sent_[dimension] += message->send->bytes;
  const auto takes = static_cast<int64_t>(message->send->bytes * 8000 / spec.bandwidth_mbps);
  const auto jitter = faults_.most_jitter_ns == 0 ? 0 : static_cast<int64_t>(rng_.below(faults_.most_jitter_ns + 1));
  const int64_t free_ns = clock_.now_ns() + takes;
  happen_at(free_ns, [this, rank, dimension] {
    link(rank, dimension).busy = false;
    start_next(rank, dimension);
  });
  happen_at(free_ns + static_cast<int64_t>(spec.latency_ns) + jitter, [this, message] { arrive(message); });
}

void SimNetwork::arrive(Message* message) {
  SendRequest& send = *message->send;
  RecvRequest& recv = *message->recv;
  if (recv.pieces.empty()) {
    recv.view.assign(send.pieces.begin(), send.pieces.end());
    recv.transport.pointer[0] = &send;  // done when the view is released
  } else {
    move_bytes(send, recv);
    send.state = RequestState::kDone;
  }
  recv.state = RequestState::kDone;
  open_.erase(Key{message->from, message->to, message->tag});
}

void SimNetwork::happen_at(int64_t time_ns, std::function<void()> action) {
  happenings_.push({time_ns, created_++, std::move(action)});
}

bool SimNetwork::step() {
  if (happenings_.empty()) return false;
  const int64_t time_ns = happenings_.top().time_ns;
  clock_.advance_to(time_ns);
  while (!happenings_.empty() && happenings_.top().time_ns == time_ns) {
    const auto action = happenings_.top().action;
    happenings_.pop();
    action();
  }
  return true;
}

}  // namespace trestle
