#include "conformance/api_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {

namespace {

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

Execution::Execution(const Call& call, int rank, int ranks) : call_(call), rank_(rank), ranks_(ranks) {
  const size_t size = size_of(call.type);
  const size_t sent = sent_elements(rank) * size;
  const size_t received = received_elements() * size;
  ranks::Random random{call.seed * 31 + static_cast<uint64_t>(rank)};
  const auto offset = [&] { return random.below(3) == 0 ? random.below(9) * size : 0; };
  receives_ = (call.collective != trestleCollReduce && call.collective != trestleCollGather) || rank == call.root;
  const bool gathers = call.collective == trestleCollAllGather || (call.collective == trestleCollGather && receives_);
  const bool scatters = call.collective == trestleCollReduceScatter || call.collective == trestleCollScatter;
  // In a scatter only the root has its own block in a send buffer.
  const bool in_place = call.in_place && (call.collective != trestleCollScatter || rank == call.root);
  const size_t block = call.count * size * static_cast<size_t>(rank);
  const size_t send_at = in_place && gathers ? block : 0;
  const size_t recv_at = in_place && scatters ? block : 0;
  send_ = std::make_unique<Buffer>(in_place ? std::max(sent, received) : sent, offset(), call.shared_memory,
                                   call.seed + 1, std::vector<Piece>{{.at = send_at, .image = sent_by(rank)}});
  if (!in_place) recv_ = std::make_unique<Buffer>(received, offset(), call.shared_memory, call.seed + 2);
  Buffer& recv = in_place ? *send_ : *recv_;
  if (receives_) expect_result(recv, recv_at);
  send_given_ = send_->given(send_->data() + send_at);
  recv_given_ = recv.given(recv.data() + recv_at);
  hand_over();
}

void Execution::hand_over() {
  send_->hand_over();
  if (recv_) recv_->hand_over();
}

size_t Execution::sent_elements(int rank) const {
  const bool all = call_.collective == trestleCollReduceScatter || call_.collective == trestleCollAllToAll ||
                   (call_.collective == trestleCollScatter && rank == call_.root);
  return call_.count * static_cast<size_t>(all ? ranks_ : 1);
}

size_t Execution::received_elements() const {
  const bool all = call_.collective == trestleCollAllGather || call_.collective == trestleCollAllToAll ||
                   (call_.collective == trestleCollGather && rank_ == call_.root);
  return call_.count * static_cast<size_t>(all ? ranks_ : 1);
}

Image Execution::sent_by(int rank) const {
  if (!reduces(call_.collective)) return image_of_bits(call_.type, call_.seed, rank, 0, sent_elements(rank));
  return image_of_input(call_.type, call_.op, call_.seed, rank, ranks_, sent_elements(rank));
}

void Execution::expect_result(Buffer& buffer, size_t at) const {
  const size_t block = call_.count * size_of(call_.type);
  const size_t mine = static_cast<size_t>(rank_) * block;
  if (reduces(call_.collective)) {
    const Image all = image_of_result(call_.type, call_.op, call_.seed, ranks_, 0, sent_elements(rank_));
    const bool scatters = call_.collective == trestleCollReduceScatter;
    buffer.expect({at, all.part(scatters ? mine : 0, block), call_.type, tolerance(call_.type, call_.op)});
    return;
  }
  if (call_.collective == trestleCollBroadcast || call_.collective == trestleCollScatter) {
    const bool scatters = call_.collective == trestleCollScatter;
    buffer.expect({.at = at, .image = sent_by(call_.root).part(scatters ? mine : 0, block)});
    return;
  }
  const size_t from = call_.collective == trestleCollAllToAll ? mine : 0;
  for (int r = 0; r < ranks_; ++r)
    buffer.expect({.at = at + static_cast<size_t>(r) * block, .image = sent_by(r).part(from, block)});
}

AnyCall Execution::made() const {
  return {call_.collective, send_given_, recv_given_, call_.count, call_.type, call_.op, call_.root};
}

trestleResult_t Execution::start(trestleComm_t comm, trestleStream_t stream) {
  AnyCall made = this->made();
  // Passes NULL for buffers that do not matter on a rank.
  if (call_.seed % 2 == 0 && !call_.in_place && has_root(call_.collective) && rank_ != call_.root) {
    const bool sends = call_.collective == trestleCollReduce || call_.collective == trestleCollGather;
    if (sends) {
      made.recv = nullptr;
    } else {
      made.send = nullptr;
    }
  }
  return ::start(made, comm, stream);
}

trestleResult_t Execution::init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return ::init(made(), comm, stream, request);
}

void Execution::spoil() {
  recv_->spoil();
  hand_over();
}

std::string Execution::verify() {
  send_->take_back();
  if (recv_) recv_->take_back();
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
