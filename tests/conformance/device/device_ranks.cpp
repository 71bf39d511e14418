#include "conformance/device/device_ranks.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/rng.h"
#include "conformance/transport_conformance.h"
#include "engine/prepare/call_bytes.h"
#include "memory/mem_alloc.h"
#include "sched/select/select.h"
#include "unit/engine/grids.h"

namespace trestle {

namespace {

constexpr std::byte kPoison{0xab};

// drive: drives all ranks.
std::vector<std::vector<std::unique_ptr<Transport>>> make_transports(const std::string& kind, int32_t ranks,
                                                                     std::function<void()> drive) {
  const TransportRow* row = find_transport(kind).value();
  const std::string job = fresh_job();
  TransportOptions options = test_options();
  options.loopback.drive_peers = [drive = std::move(drive)] {
    drive();
    return true;
  };
  std::vector<std::vector<std::unique_ptr<Transport>>> made(static_cast<size_t>(ranks));
  std::vector<std::string> addresses;
  std::vector<std::string> names;
  for (int32_t r = 0; r < ranks; ++r) {
    made[static_cast<size_t>(r)].push_back(row->create(test_config(r, ranks, job), options).value());
    addresses.push_back(made[static_cast<size_t>(r)].front()->address());
    names.push_back(test_name(r));
  }
  for (auto& rank : made) EXPECT_TRUE(rank.front()->set_peers(addresses, names).ok());
  return made;
}

uint64_t start_of_own_block(const BlockList& list, const PrepareRequest& request, int32_t rank) {
  const auto me = static_cast<uint64_t>(rank);
  return size_of(request.type) * (list.starts.empty() ? me * request.count : list.starts[me]);
}

}  // namespace

Topology device_grid(const std::vector<int32_t>& sizes) {
  return engine_grid(sizes);
}

void fill_elements(std::byte* data, uint64_t bytes, DataType type, uint64_t seed) {
  Rng rng(seed);
  const bool floating = type >= DataType::kFloat16;
  const uint64_t size = size_of(type);
  for (uint64_t i = 0; i < bytes; ++i) {
    auto value = static_cast<uint8_t>(rng.next());
    // The last byte has the sign and the exponent: not beyond 2, so that no result is infinite.
    if (floating && i % size == size - 1) value &= 0xbf;
    data[i] = static_cast<std::byte>(value);
  }
}

Result<Schedule> schedule_of(const PrepareRequest& request, const Topology& topology, const std::string& algorithm,
                             uint32_t chunks) {
  SelectionConfig config;
  config.algo = algorithm;
  config.chunks = chunks;
  SelectionRequest what;
  what.collective = request.collective;
  what.element_bytes = static_cast<uint32_t>(size_of(request.type));
  what.bytes = vector_elements(request, topology.ranks()) * what.element_bytes;
  what.root = request.root;
  what.blocks = known_block_bytes(request);
  TRY(validate(config, topology));
  return select_schedule(what, topology, config);
}

DeviceRanks::DeviceRanks(const Topology& topology, const DeviceOptions& options)
    : topology_(topology), options_(options) {
  const int32_t ranks = topology_.ranks();
  auto transports = make_transports(options_.transport, ranks, [this] { drive(); });
  for (int32_t r = 0; r < ranks; ++r) {
    devices_.push_back(std::make_unique<PretendDevice>(r));
    if (options_.outbox_bytes == 0) continue;
    outboxes_.push_back({device(r).allocate(options_.outbox_bytes), options_.outbox_bytes, {mem_new_id(), 0}, r});
  }
  for (int32_t r = 0; r < ranks; ++r) {
    EngineConfig config;
    config.rank = r;
    config.ranks = ranks;
    config.name = test_name(r);
    config.clock = &monotonic_clock();
    config.sleeps = options_.sleeps;
    if (options_.place == MemoryPlace::kDevice) config.device = make_place(r);
    auto& own = transports[static_cast<size_t>(r)];
    set_device_paths(r, *own.front());
    std::vector<Transport*> router(static_cast<size_t>(ranks), own.front().get());
    engines_.push_back(std::make_shared<Engine>(std::move(config), std::move(own), std::move(router), nullptr));
  }
  ranks_.resize(static_cast<size_t>(ranks));
  paths_ = make_paths();
}

DevicePlace DeviceRanks::make_place(int32_t rank) {
  DevicePlace place = device(rank).place(options_.seed + static_cast<uint64_t>(rank), options_.most_delay_ns);
  if (!outboxes_.empty()) place.outbox = std::make_shared<Outbox>(outboxes_[static_cast<size_t>(rank)]);
  return place;
}

// As if every rank had a process of its own. Addresses are the same in all of them.
void DeviceRanks::set_device_paths(int32_t rank, Transport& transport) {
  if (outboxes_.empty()) return;
  for (int32_t peer = 0; peer < topology_.ranks(); ++peer) {
    if (peer == rank || !has_path(rank, peer)) continue;
    transport.set_device_path(peer,
                              {outboxes_[static_cast<size_t>(rank)].share.id, &outboxes_[static_cast<size_t>(peer)]});
  }
}

std::vector<PeerPaths> DeviceRanks::make_paths() {
  std::vector<PeerPaths> paths;
  for (int32_t r = 0; r < topology_.ranks(); ++r) {
    std::vector<PeerPath> with;
    for (int32_t peer = 0; peer < topology_.ranks(); ++peer) {
      const bool has = has_path(r, peer);
      const bool processes = options_.outbox_bytes != 0;
      const PeerPath to_itself = processes ? PeerPath::kNone : PeerPath::kSameDevice;
      const PeerPath to_others = processes ? PeerPath::kOtherProcess : PeerPath::kOtherDevice;
      with.push_back(!has ? PeerPath::kNone : peer == r ? to_itself : to_others);
      if (has && peer != r) device(r).reach(device(peer), processes || options_.open(peer));
    }
    paths.emplace_back(std::move(with));
  }
  return paths;
}

DeviceRanks::~DeviceRanks() {
  close();
}

void DeviceRanks::close() {
  for (const auto& engine : engines_) engine->close(0);
}

void DeviceRanks::lay_out(int32_t rank, const PrepareRequest& request, bool in_place) {
  Rank& at = ranks_[static_cast<size_t>(rank)];
  const bool sending = request.peer >= 0 && rank == request.root;
  const CallBytes reach = reach_of(request, sending, rank, topology_.ranks());
  at.in_place = in_place;
  at.type = request.type;
  at.sent = reach.given;
  at.received = reach.taken;
  at.send = at.recv = 0;
  const InPlaceRule rule = in_place_rule(request.collective);
  const BlockList none;
  if (!in_place) at.recv = (reach.given + 63) / 64 * 64;
  if (in_place && rule == InPlaceRule::kSentInReceived)
    at.send = start_of_own_block(request.blocks ? request.blocks->received : none, request, rank);
  if (in_place && rule == InPlaceRule::kReceivedInSent)
    at.recv = start_of_own_block(request.blocks ? request.blocks->sent : none, request, rank);
  at.bytes = std::max({at.send + at.sent, at.recv + at.received, uint64_t{1}});
  if (options_.place == MemoryPlace::kDevice) {
    at.memory = devices_[static_cast<size_t>(rank)]->allocate(at.bytes);
  } else {
    at.memory = host_.emplace_back(std::make_unique<Bytes>(at.bytes))->data();
  }
}

std::byte* DeviceRanks::bytes_of(int32_t rank, uint64_t offset) const {
  const Rank& at = ranks_[static_cast<size_t>(rank)];
  std::byte* const memory = at.memory + offset;
  return options_.place == MemoryPlace::kDevice ? devices_[static_cast<size_t>(rank)]->bytes_of(memory) : memory;
}

void DeviceRanks::fill(int32_t rank, uint64_t inputs) {
  const Rank& at = ranks_[static_cast<size_t>(rank)];
  std::fill_n(bytes_of(rank, 0), at.bytes, kPoison);
  fill_elements(bytes_of(rank, at.send), at.sent, at.type, inputs * 1000 + static_cast<uint64_t>(rank));
}

Status DeviceRanks::start(int32_t rank) {
  const Rank& at = ranks_[static_cast<size_t>(rank)];
  Engine& engine = this->engine(rank);
  const int32_t device = engine.device();
  const auto stream = std::make_shared<Stream>();
  OperationClaims claims = TRY(engine.reserve(*at.prepared, {stream}));
  streams_.push_back(stream);
  Operation* const operation = engine.acquire(at.prepared);
  const uint64_t kind = is_point_to_point(at.prepared->collective) ? kPointToPoint : 0;
  operation->bind(private_region(at.memory + at.send, at.sent, device),
                  private_region(at.memory + at.recv, at.received, device), next_number_ | kind, timeout_ns_,
                  std::move(claims));
  engine.count_pending(1);
  stream->enqueue({operation});
  return {};
}

Status DeviceRanks::begin(const DeviceCall& call) {
  const int32_t ranks = topology_.ranks();
  for (int32_t r = 0; r < ranks; ++r) {
    PrepareRequest request = call.request(r);
    request.place = options_.place;
    request.open_to_devices = options_.open(r);
    const CallBytes bytes = reach_of(request, request.peer >= 0 && r == request.root, r, ranks);
    request.in_place = call.in_place && bytes.given != 0 && bytes.taken != 0;
    PrepareContext context;
    context.topology = &topology_;
    context.rank = r;
    context.check_plans = true;
    context.segment_bytes = [](const void* most, const std::vector<int32_t>&) {
      return *static_cast<const uint64_t*>(most);
    };
    context.self = &options_.segment_bytes;
    context.bounce_bytes = options_.bounce_bytes(r);
    context.peer_paths = &paths_[static_cast<size_t>(r)];
    auto& prepared = ranks_[static_cast<size_t>(r)].prepared;
    prepared = request.peer >= 0 ? TRY(prepare_point_to_point(request, r == request.root, context))
                                 : TRY(prepare(request, call.schedule, context));
    lay_out(r, request, request.in_place);
  }
  timeout_ns_ = call.timeout_ns;
  return repeat(call.inputs);
}

Status DeviceRanks::repeat(uint64_t inputs) {
  inputs_ = inputs;
  for (int32_t r = 0; r < topology_.ranks(); ++r) fill(r, inputs);
  for (int32_t r = 0; r < topology_.ranks(); ++r) TRY(start(r));
  ++next_number_;
  return {};
}

bool DeviceRanks::drive() {
  bool moved = false;
  for (const auto& engine : engines_) moved |= engine->try_progress();
  return moved;
}

size_t DeviceRanks::pending() {
  size_t pending = 0;
  for (const auto& engine : engines_) pending += engine->pending();
  return pending;
}

bool DeviceRanks::finish() {
  while (pending() != 0) {
    if (!drive()) ::sched_yield();
  }
  bool all = true;
  for (const auto& engine : engines_) {
    if (!engine->failed()) continue;
    ADD_FAILURE() << engine->failure()->message;
    all = false;
  }
  return all;
}

std::vector<Bytes> DeviceRanks::results() const {
  std::vector<Bytes> all;
  for (int32_t r = 0; r < topology_.ranks(); ++r) {
    const std::byte* const data = bytes_of(r, ranks_[static_cast<size_t>(r)].recv);
    all.emplace_back(data, data + ranks_[static_cast<size_t>(r)].received);
  }
  return all;
}

bool DeviceRanks::inputs_unchanged() const {
  for (int32_t r = 0; r < topology_.ranks(); ++r) {
    const Rank& at = ranks_[static_cast<size_t>(r)];
    if (at.in_place || at.sent == 0) continue;
    Bytes expected(at.sent);
    fill_elements(expected.data(), at.sent, at.type, inputs_ * 1000 + static_cast<uint64_t>(r));
    if (std::memcmp(expected.data(), bytes_of(r, at.send), at.sent) != 0) return false;
  }
  return true;
}

}  // namespace trestle
