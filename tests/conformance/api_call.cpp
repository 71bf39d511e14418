#include "conformance/api_call.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ostream>

#include "conformance/api_values.h"
#include "support/device_memory.h"
#include "support/ranks.h"

namespace api {

namespace {

constexpr size_t kGuard = 192;

bool has_root(trestleCollective_t collective) {
  return collective == trestleCollBroadcast || collective == trestleCollReduce || collective == trestleCollGather ||
         collective == trestleCollScatter;
}

}  // namespace

bool reduces(trestleCollective_t collective) {
  return collective == trestleCollAllReduce || collective == trestleCollReduceScatter ||
         collective == trestleCollReduce;
}

std::string to_string(const Call& call) {
  static constexpr const char* kNames[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce",
                                           "all-to-all", "send/recv",      "barrier",    "gather",    "scatter"};
  std::string text = std::string(kNames[call.collective]) + " of " + std::to_string(call.count) + " " + name(call.type);
  if (reduces(call.collective)) text += " " + name(call.op);
  if (has_root(call.collective)) text += ", root " + std::to_string(call.root);
  return text + (call.in_place ? ", in place" : "") + (call.shared_memory ? ", MemAlloc" : "") + ", seed " +
         std::to_string(call.seed);
}

std::ostream& operator<<(std::ostream& out, const Call& call) {
  return out << to_string(call);
}

Buffer::Buffer(size_t bytes, size_t offset, bool shared_memory, uint64_t seed)
    : start_(kGuard + offset), bytes_(bytes), shared_memory_(shared_memory), picture_(start_ + bytes + kGuard) {
  if (shared_memory_) {
    void* memory = nullptr;
    EXPECT_TRUE(ranks::succeeded(trestleMemAlloc(&memory, picture_.size())));
    all_ = static_cast<std::byte*>(memory);
  } else {
    all_ = static_cast<std::byte*>(std::aligned_alloc(64, (picture_.size() + 63) / 64 * 64));
  }
  const size_t words = picture_.size() / sizeof(uint64_t);
  fill_bits(picture_.data(), trestleUint64, seed, 99, 0, words);
  fill_bits(picture_.data() + words * sizeof(uint64_t), trestleUint8, seed, 99, 0, picture_.size() % sizeof(uint64_t));
  if (all_ == nullptr) std::abort();
  std::memcpy(all_, picture_.data(), picture_.size());
  if (device_memory::is_wanted()) device_ = device_memory::allocate(picture_.size());
}

void Buffer::hand_over() {
  if (device_ != nullptr) device_memory::copy(device_, all_, picture_.size());
}

void Buffer::take_back() {
  if (device_ != nullptr) device_memory::copy(all_, device_, picture_.size());
}

Buffer::~Buffer() {
  if (device_ != nullptr) device_memory::free(device_);
  if (shared_memory_) {
    EXPECT_TRUE(ranks::succeeded(trestleMemFree(all_)));
  } else {
    std::free(all_);
  }
}

void Buffer::expect_unchanged() {
  std::memcpy(picture_.data(), all_, picture_.size());
}

std::string Buffer::difference() const {
  if (std::memcmp(all_, picture_.data(), picture_.size()) == 0) return "";
  size_t at = 0;
  while (all_[at] == picture_[at]) ++at;
  const char* where = at < start_ ? "before the buffer" : at >= start_ + bytes_ ? "behind the buffer" : "in the buffer";
  return std::string("wrong byte ") + where + ", offset " +
         std::to_string(static_cast<int64_t>(at) - static_cast<int64_t>(start_)) + " of " + std::to_string(bytes_);
}

Execution::Execution(const Call& call, int rank, int ranks) : call_(call), rank_(rank), ranks_(ranks) {
  const size_t size = size_of(call.type);
  const size_t sent = sent_elements() * size;
  const size_t received = received_elements() * size;
  ranks::Random random{call.seed * 31 + static_cast<uint64_t>(rank)};
  const auto offset = [&] { return random.below(3) == 0 ? random.below(9) * size : 0; };
  receives_ = (call.collective != trestleCollReduce && call.collective != trestleCollGather) || rank == call.root;
  const bool gathers = call.collective == trestleCollAllGather || (call.collective == trestleCollGather && receives_);
  // In a scatter only the root has its own block in a send buffer.
  const bool in_place = call.in_place && (call.collective != trestleCollScatter || rank == call.root);
  const size_t block = call.count * size * static_cast<size_t>(rank);
  send_ =
      std::make_unique<Buffer>(in_place ? std::max(sent, received) : sent, offset(), call.shared_memory, call.seed + 1);
  send_at_ = send_->data() + (in_place && gathers ? block : 0);
  fill_send(send_at_);
  send_->expect_unchanged();
  if (in_place) {
    const bool scatters = call.collective == trestleCollReduceScatter || call.collective == trestleCollScatter;
    const size_t at = scatters ? block : 0;
    recv_at_ = send_->data() + at;
    recv_picture_ = send_->picture() + at;
  } else {
    recv_ = std::make_unique<Buffer>(received, offset(), call.shared_memory, call.seed + 2);
    recv_at_ = recv_->data();
    recv_picture_ = recv_->picture();
  }
  if (receives_) paint_result();
  send_given_ = send_->given(send_at_);
  recv_given_ = recv_ ? recv_->given(recv_at_) : send_->given(recv_at_);
  hand_over();
}

void Execution::hand_over() {
  send_->hand_over();
  if (recv_) recv_->hand_over();
}

size_t Execution::sent_elements() const {
  const bool all = call_.collective == trestleCollReduceScatter || call_.collective == trestleCollAllToAll ||
                   (call_.collective == trestleCollScatter && rank_ == call_.root);
  return call_.count * static_cast<size_t>(all ? ranks_ : 1);
}

size_t Execution::received_elements() const {
  const bool all = call_.collective == trestleCollAllGather || call_.collective == trestleCollAllToAll ||
                   (call_.collective == trestleCollGather && rank_ == call_.root);
  return call_.count * static_cast<size_t>(all ? ranks_ : 1);
}

void Execution::fill_send(std::byte* to) const {
  if (reduces(call_.collective)) {
    fill_input(to, call_.type, call_.op, call_.seed, rank_, ranks_, 0, sent_elements());
  } else {
    fill_bits(to, call_.type, call_.seed, rank_, 0, sent_elements());
  }
}

void Execution::paint_result() {
  const size_t count = call_.count;
  const auto at = [&](int block) { return recv_picture_ + static_cast<size_t>(block) * count * size_of(call_.type); };
  const auto mine = static_cast<size_t>(rank_) * count;
  switch (call_.collective) {
    case trestleCollAllReduce:
    case trestleCollReduce:
      return fill_reduced(recv_picture_, call_.type, call_.op, call_.seed, ranks_, 0, count);
    case trestleCollReduceScatter:
      return fill_reduced(recv_picture_, call_.type, call_.op, call_.seed, ranks_, mine, count);
    case trestleCollBroadcast:
      return fill_bits(recv_picture_, call_.type, call_.seed, call_.root, 0, count);
    case trestleCollScatter:
      return fill_bits(recv_picture_, call_.type, call_.seed, call_.root, mine, count);
    case trestleCollGather:
    case trestleCollAllGather:
      for (int r = 0; r < ranks_; ++r) fill_bits(at(r), call_.type, call_.seed, r, 0, count);
      return;
    default:
      for (int r = 0; r < ranks_; ++r) fill_bits(at(r), call_.type, call_.seed, r, mine, count);
  }
}

trestleResult_t Execution::start(trestleComm_t comm, trestleStream_t stream) {
  // Passes NULL for buffers that do not matter on a rank.
  const bool spare = call_.seed % 2 == 0 && !call_.in_place;
  switch (call_.collective) {
    case trestleCollAllReduce:
      return trestleAllReduce(send_given_, recv_given_, call_.count, call_.type, call_.op, comm, stream);
    case trestleCollReduceScatter:
      return trestleReduceScatter(send_given_, recv_given_, call_.count, call_.type, call_.op, comm, stream);
    case trestleCollAllGather:
      return trestleAllGather(send_given_, recv_given_, call_.count, call_.type, comm, stream);
    case trestleCollBroadcast:
      return trestleBroadcast(spare && rank_ != call_.root ? nullptr : send_given_, recv_given_, call_.count,
                              call_.type, call_.root, comm, stream);
    case trestleCollReduce:
      return trestleReduce(send_given_, spare && rank_ != call_.root ? nullptr : recv_given_, call_.count, call_.type,
                           call_.op, call_.root, comm, stream);
    case trestleCollGather:
      return trestleGather(send_given_, spare && rank_ != call_.root ? nullptr : recv_given_, call_.count, call_.type,
                           call_.root, comm, stream);
    case trestleCollScatter:
      return trestleScatter(spare && rank_ != call_.root ? nullptr : send_given_, recv_given_, call_.count, call_.type,
                            call_.root, comm, stream);
    default:
      return trestleAllToAll(send_given_, recv_given_, call_.count, call_.type, comm, stream);
  }
}

trestleResult_t Execution::init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  const size_t count = call_.count;
  switch (call_.collective) {
    case trestleCollAllReduce:
      return trestleAllReduceInit(send_given_, recv_given_, count, call_.type, call_.op, comm, stream, request);
    case trestleCollReduceScatter:
      return trestleReduceScatterInit(send_given_, recv_given_, count, call_.type, call_.op, comm, stream, request);
    case trestleCollAllGather:
      return trestleAllGatherInit(send_given_, recv_given_, count, call_.type, comm, stream, request);
    case trestleCollBroadcast:
      return trestleBroadcastInit(send_given_, recv_given_, count, call_.type, call_.root, comm, stream, request);
    case trestleCollReduce:
      return trestleReduceInit(send_given_, recv_given_, count, call_.type, call_.op, call_.root, comm, stream,
                               request);
    case trestleCollGather:
      return trestleGatherInit(send_given_, recv_given_, count, call_.type, call_.root, comm, stream, request);
    case trestleCollScatter:
      return trestleScatterInit(send_given_, recv_given_, count, call_.type, call_.root, comm, stream, request);
    default:
      return trestleAllToAllInit(send_given_, recv_given_, count, call_.type, comm, stream, request);
  }
}

void Execution::spoil() {
  const size_t bytes = receives_ ? received_elements() * size_of(call_.type) : 0;
  for (size_t i = 0; i < bytes; ++i) recv_at_[i] = ~recv_picture_[i];
  hand_over();
}

std::string Execution::verify() {
  send_->take_back();
  if (recv_) recv_->take_back();
  const uint64_t off = receives_ && reduces(call_.collective) ? tolerance(call_.type, call_.op) : 0;
  for (size_t i = 0; off != 0 && i < received_elements(); ++i) {
    const uint64_t got = load(call_.type, recv_at_, i);
    const uint64_t wanted = load(call_.type, recv_picture_, i);
    if (distance(call_.type, got, wanted) > off) break;  // the comparison of bytes below reports it
    store(call_.type, recv_picture_, i, got);
  }
  const std::string sent = send_->difference();
  const std::string received = recv_ ? recv_->difference() : "";
  if (sent.empty() && received.empty()) return "";
  return "rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ", " + to_string(call_) + ": " +
         (sent.empty() ? "receive: " + received : (call_.in_place ? "in place: " : "send: ") + sent);
}

void run_and_verify(const Call& call, int rank, int ranks, trestleComm_t comm) {
  Execution run(call, rank, ranks);
  trestleStream_t stream = nullptr;
  const uint64_t way = call.seed % 3;
  if (way == 0) {
    ASSERT_TRUE(ranks::succeeded(trestleStreamCreate(&stream)));
  }
  const trestleResult_t started = run.start(comm, stream);
  EXPECT_TRUE(ranks::succeeded(started, comm)) << call;
  trestleResult_t waited = trestleSuccess;
  if (way == 0) {
    waited = trestleStreamSynchronize(stream);
    EXPECT_TRUE(ranks::succeeded(trestleStreamDestroy(stream), comm)) << call;
  } else {
    waited = trestleCommSynchronize(comm);
  }
  EXPECT_TRUE(ranks::succeeded(waited, comm)) << call;
  if (started == trestleSuccess && waited == trestleSuccess) {
    EXPECT_EQ(run.verify(), "");
  }
}

}  // namespace api
