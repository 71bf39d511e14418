#include "conformance/transport_conformance.h"

#include <sched.h>

#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "base/hash.h"

namespace trestle {
namespace {

constexpr int64_t kHangNs = 60'000'000'000;  // ends a test that hangs; no working machine comes near it

// Lengths of `count` pieces, some of them empty, whose sum is `bytes`.
std::vector<size_t> cut(size_t bytes, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<size_t> lengths(count, 0);
  for (size_t i = 0; i + 1 < count; ++i) {
    lengths[i] = rng.below(2 * (bytes / count) + 1);
    lengths[i] = std::min(lengths[i], bytes);
    bytes -= lengths[i];
  }
  lengths[count - 1] = bytes;
  return lengths;
}

}  // namespace

std::string fresh_job() {
  static std::atomic<int> count{0};
  return "7e57" + std::to_string(monotonic_clock().now_ns()) + "x" + std::to_string(count++);
}

std::string test_name(int32_t rank) {
  return "rank " + std::to_string(rank) + " (host test, pid 1)";
}

EndpointConfig test_config(int32_t rank, int32_t ranks, const std::string& job) {
  EndpointConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.job = job;
  config.secret.assign(32, std::byte{0x5a});
  for (int32_t r = 0; r < ranks; ++r) config.peer_names.push_back(test_name(r));
  config.eager_bytes = kTestEager;
  return config;
}

TransportOptions test_options() {
  TransportOptions options;
  options.tcp.socket_ifname = "=lo";
  options.tcp.socket_family = "AF_INET";
  options.tcp.congestion = "cubic";
  return options;
}

Endpoints::Endpoints(const std::string& transport, int32_t ranks, uint64_t eager_bytes) {
  const TransportRow* row = find_transport(transport).value();
  const std::string job = fresh_job();
  std::vector<std::string> addresses;
  std::vector<std::string> names;
  for (int32_t r = 0; r < ranks; ++r) {
    EndpointConfig config = test_config(r, ranks, job);
    config.eager_bytes = eager_bytes;
    auto made = row->create(config, test_options());
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    transports_.push_back(std::move(made).value());
    addresses.push_back(transports_.back()->address());
    EXPECT_LE(addresses.back().size(), 512u);
    names.push_back(test_name(r));
  }
  for (auto& endpoint : transports_) EXPECT_TRUE(endpoint->set_peers(addresses, names).ok());
}

bool drive_until(const std::function<Status()>& step, const std::function<bool()>& done) {
  const int64_t start_ns = monotonic_clock().now_ns();
  for (uint64_t round = 0; !done(); ++round) {
    if (Status status = step(); !status.ok()) {
      ADD_FAILURE() << status.error().message;
      return false;
    }
    if (round % 64 != 63) continue;
    ::sched_yield();
    if (monotonic_clock().now_ns() - start_ns < kHangNs) continue;
    ADD_FAILURE() << "it hangs";
    return false;
  }
  return true;
}

bool Endpoints::drive(const std::function<bool()>& done) {
  const auto step = [this]() -> Status {
    for (auto& endpoint : transports_) {
      if (endpoint != nullptr) TRY(endpoint->progress());
    }
    return {};
  };
  return drive_until(step, done);
}

bool Endpoints::drive_rounds(int rounds) {
  return drive([&rounds] { return rounds-- == 0; });
}

Error Endpoints::drive_to_error(int32_t rank) {
  Error error{Code::kSuccess, ""};
  const auto step = [&]() -> Status {
    for (int32_t r = 0; r < size(); ++r) {
      if (transports_[r] == nullptr) continue;
      auto moved = transports_[r]->progress();
      if (!moved.ok() && r == rank) error = moved.error();
    }
    return {};
  };
  (void)drive_until(step, [&] { return error.code != Code::kSuccess; });
  return error;
}

std::vector<std::byte> content(const MessageTag& tag, size_t bytes) {
  Rng rng(MessageTagHash{}(tag) + bytes);
  std::vector<std::byte> data(bytes);
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = rng.next();
    std::memcpy(&data[at], &word, std::min<size_t>(8, bytes - at));
  }
  return data;
}

Outgoing::Outgoing(int32_t peer, const MessageTag& tag, size_t bytes, size_t pieces) {
  const std::vector<std::byte> all = content(tag, bytes);
  size_t at = 0;
  for (const size_t length : cut(bytes, pieces, tag.operation * 31 + bytes)) {
    memory_.emplace_back(all.begin() + at, all.begin() + at + length);
    pieces_.push_back({memory_.back().data(), length});
    at += length;
  }
  request.peer = peer;
  request.tag = tag;
  request.pieces = pieces_;
  request.bytes = bytes;
}

void Outgoing::overwrite() {
  for (auto& piece : memory_) std::fill(piece.begin(), piece.end(), std::byte{0xee});
}

Incoming::Incoming(int32_t peer, const MessageTag& tag, size_t bytes, size_t pieces) {
  if (pieces > 0) {
    for (const size_t length : cut(bytes, pieces, tag.operation * 37 + bytes)) {
      memory_.emplace_back(length);
      pieces_.push_back({memory_.back().data(), length});
    }
  }
  request.peer = peer;
  request.tag = tag;
  request.pieces = pieces_;
  request.bytes = bytes;
}

std::vector<std::byte> Incoming::data() const {
  std::vector<std::byte> all;
  for (const auto& piece : memory_) all.insert(all.end(), piece.begin(), piece.end());
  for (const ConstPiece& piece : request.view) all.insert(all.end(), piece.data, piece.data + piece.bytes);
  return all;
}

::testing::AssertionResult Incoming::right() const {
  if (!done()) return ::testing::AssertionFailure() << "the receive is not done";
  if (data() == content(request.tag, request.bytes)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "message " << request.tag.operation << " of " << request.bytes
                                       << " bytes has other contents, or " << data().size() << " bytes";
}

template <class Message, class Try>
void post_until_taken(Endpoints& endpoints, Message& message, Try attempt) {
  bool taken = false;
  (void)endpoints.drive([&] {
    Result<bool> posted = attempt(message.request);
    if (!posted.ok()) ADD_FAILURE() << posted.error().message;
    taken = !posted.ok() || posted.value();
    return taken;
  });
}

void post(Endpoints& endpoints, int32_t rank, Outgoing& message) {
  post_until_taken(endpoints, message, [&](SendRequest& request) { return endpoints[rank].post_send(request); });
}

void post(Endpoints& endpoints, int32_t rank, Incoming& message) {
  post_until_taken(endpoints, message, [&](RecvRequest& request) { return endpoints[rank].post_recv(request); });
}

void TransportTest::SetUp() {
  const Status usable = find_transport(GetParam()).value()->probe();
  if (!usable.ok()) GTEST_SKIP() << usable.error().message;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const TransportRow& row : transports()) names.emplace_back(row.name);
  return names;
}

}  // namespace trestle
