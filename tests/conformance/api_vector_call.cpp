#include "conformance/api_vector_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {

namespace {

// A rank's blocks for different ranks begin at different elements of its infinite input.
constexpr size_t kBlockDistance = 1'000'003;

size_t first_element(int to) {
  return static_cast<size_t>(to) * kBlockDistance;
}

bool all_ranks_alike(trestleCollective_t collective) {
  return collective != trestleCollAllToAllV;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const VectorCall& call) {
  static constexpr const char* kNames[] = {"all-gather-v", "reduce-scatter-v", "all-to-all-v", "gather-v", "scatter-v"};
  static constexpr const char* kCounts[] = {"random", "many zeros", "one has all", "equal", "no elements"};
  static constexpr const char* kPlaces[] = {"NULL", "packed", "gaps", "permuted"};
  out << kNames[call.collective - trestleCollAllGatherV] << " of " << name(call.type);
  if (call.collective == trestleCollReduceScatterV) out << " " << name(call.op);
  return out << ", counts " << kCounts[static_cast<int>(call.counts)] << " up to " << call.most << ", displacements "
             << kPlaces[static_cast<int>(call.displacements)] << ", root " << call.root
             << (call.in_place ? ", in place" : "") << (call.shared_memory ? ", MemAlloc" : "") << ", seed "
             << call.seed;
}

size_t block_count(const VectorCall& call, int from, int to, int ranks) {
  const auto n = static_cast<uint64_t>(ranks);
  uint64_t which = 0;
  uint64_t of = n;
  if (all_ranks_alike(call.collective)) {
    const bool by_receiver = call.collective == trestleCollReduceScatterV || call.collective == trestleCollScatterV;
    which = static_cast<uint64_t>(by_receiver ? to : from);
  } else {
    // In place both directions of a pair have the same length.
    const int a = call.in_place ? std::min(from, to) : from;
    const int b = call.in_place ? std::max(from, to) : to;
    which = static_cast<uint64_t>(a) * n + static_cast<uint64_t>(b);
    of = n * n;
  }
  ranks::Random random{call.seed * 7919 + which};
  random.next();
  switch (call.counts) {
    case Counts::kRandom:
      return random.below(call.most + 1);
    case Counts::kManyZeros:
      return random.below(3) != 0 ? 0 : 1 + random.below(call.most);
    case Counts::kOneHasAll:
      return which == call.seed % of ? call.most : 0;
    case Counts::kEqual:
      return call.most;
    case Counts::kNone:
      break;
  }
  return 0;
}

bool VectorExecution::sends_list() const {
  return call_.collective == trestleCollAllToAllV || call_.collective == trestleCollReduceScatterV ||
         (call_.collective == trestleCollScatterV && is_root());
}

bool VectorExecution::receives_list() const {
  return call_.collective == trestleCollAllToAllV || call_.collective == trestleCollAllGatherV ||
         (call_.collective == trestleCollGatherV && is_root());
}

VectorExecution::List VectorExecution::make_list(bool sending) const {
  List list;
  for (int r = 0; r < ranks_; ++r) {
    list.counts.push_back(sending ? block_count(call_, rank_, r, ranks_) : block_count(call_, r, rank_, ranks_));
  }
  list.displs.resize(list.counts.size());
  std::vector<size_t> order(list.counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // In place both sides have the same layout.
  const bool other = sending && !call_.in_place;
  ranks::Random random{call_.seed * 31 + static_cast<uint64_t>(rank_) * 2 + (other ? 1 : 0)};
  const bool packed = call_.collective == trestleCollReduceScatterV;  // it has no displacements
  if (call_.displacements == Displacements::kPermuted && !packed) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  const bool gaps = call_.displacements >= Displacements::kGaps && !packed;
  size_t at = 0;
  for (const size_t r : order) {
    if (gaps) at += random.below(6);
    list.displs[r] = at;
    at += list.counts[r];
  }
  list.extent = at;
  return list;
}

VectorExecution::VectorExecution(const VectorCall& call, int rank, int ranks)
    : call_(call), rank_(rank), ranks_(ranks) {
  if (sends_list()) sent_ = make_list(true);
  if (receives_list()) received_ = make_list(false);
  const bool both = call.collective != trestleCollGatherV && call.collective != trestleCollScatterV;
  in_place_ = call.in_place && (both || is_root());
  const size_t size = size_of(call.type);
  const size_t sent = sent_.counts.empty() ? own_count() : sent_.extent;
  const size_t received = received_.counts.empty() ? own_count() : received_.extent;
  ranks::Random random{call.seed * 131 + static_cast<uint64_t>(rank)};
  const auto offset = [&] { return random.below(3) == 0 ? random.below(9) * size : 0; };
  const auto me = static_cast<size_t>(rank);
  const bool list_received = in_place_ && !received_.counts.empty() && sent_.counts.empty();
  const bool list_sent = in_place_ && !sent_.counts.empty() && received_.counts.empty();
  const size_t send_at = list_received ? received_.displs[me] * size : 0;
  const size_t recv_at = list_sent ? sent_.displs[me] * size : 0;
  send_ = std::make_unique<Buffer>((in_place_ ? std::max(sent, received) : sent) * size, offset(), call.shared_memory,
                                   call.seed + 1, sent_pieces(send_at));
  if (!in_place_) recv_ = std::make_unique<Buffer>(received * size, offset(), call.shared_memory, call.seed + 2);
  Buffer& recv = in_place_ ? *send_ : *recv_;
  expect_result(recv, recv_at);
  send_given_ = send_->given(send_->data() + send_at);
  recv_given_ = recv.given(recv.data() + recv_at);
  send_->hand_over();
  if (recv_) recv_->hand_over();
}

std::vector<Piece> VectorExecution::sent_pieces(size_t at) const {
  if (call_.collective == trestleCollReduceScatterV)
    return {{.at = at, .image = image_of_input(call_.type, call_.op, call_.seed, rank_, ranks_, sent_.extent)}};
  std::vector<Piece> pieces;
  if (sent_.counts.empty() && call_.collective != trestleCollScatterV)
    pieces.push_back({.at = at, .image = image_of_bits(call_.type, call_.seed, rank_, 0, own_count())});
  for (int r = 0; r < static_cast<int>(sent_.counts.size()); ++r) {
    const auto i = static_cast<size_t>(r);
    pieces.push_back({.at = at + sent_.displs[i] * size_of(call_.type),
                      .image = image_of_bits(call_.type, call_.seed, rank_, first_element(r), sent_.counts[i])});
  }
  return pieces;
}

void VectorExecution::expect_result(Buffer& buffer, size_t at) const {
  if (call_.collective == trestleCollReduceScatterV) {
    const Image result = image_of_result(call_.type, call_.op, call_.seed, ranks_,
                                         sent_.displs[static_cast<size_t>(rank_)], own_count());
    buffer.expect({at, result, call_.type, tolerance(call_.type, call_.op)});
  } else if (call_.collective == trestleCollScatterV) {
    buffer.expect(
        {.at = at, .image = image_of_bits(call_.type, call_.seed, call_.root, first_element(rank_), own_count())});
  }
  const bool to_each = call_.collective == trestleCollAllToAllV;
  for (size_t i = 0; i < received_.counts.size(); ++i) {
    buffer.expect({.at = at + received_.displs[i] * size_of(call_.type),
                   .image = image_of_bits(call_.type, call_.seed, static_cast<int>(i),
                                          to_each ? first_element(rank_) : 0, received_.counts[i])});
  }
}

trestleResult_t VectorExecution::issue(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  List sent = sent_;
  List received = received_;
  AnyCall made{call_.collective, send_given_, recv_given_, own_count(), call_.type, call_.op, call_.root};
  made.sendcounts = sent.given();
  made.sdispls = displs_of(sent);
  made.recvcounts = call_.collective == trestleCollReduceScatterV ? sent.given() : received.given();
  made.rdispls = displs_of(received);
  // Buffers that do not matter on a rank are NULL in one of the two.
  if (request == nullptr && !is_root() && call_.collective == trestleCollGatherV) made.recv = nullptr;
  if (request == nullptr && !is_root() && call_.collective == trestleCollScatterV) made.send = nullptr;
  const trestleResult_t result = request == nullptr ? ::start(made, comm, stream) : ::init(made, comm, stream, request);
  for (List* list : {&sent, &received}) {
    std::fill(list->counts.begin(), list->counts.end(), SIZE_MAX);
    std::fill(list->displs.begin(), list->displs.end(), SIZE_MAX);
  }
  return result;
}

void VectorExecution::spoil() {
  recv_->spoil();
  recv_->hand_over();
}

std::string VectorExecution::verify() const {
  send_->take_back();
  if (recv_) recv_->take_back();
  const std::string sent = send_->difference();
  const std::string received = recv_ ? recv_->difference() : "";
  if (sent.empty() && received.empty()) return "";
  return "rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ": " +
         (sent.empty() ? "receive: " + received : (in_place_ ? "in place: " : "send: ") + sent);
}

void run_and_verify(const VectorCall& call, int rank, int ranks, trestleComm_t comm) {
  VectorExecution run(call, rank, ranks);
  trestleStream_t stream = nullptr;
  const bool own_stream = call.seed % 3 == 0;
  if (own_stream) {
    ASSERT_TRUE(ranks::succeeded(trestleStreamCreate(&stream)));
  }
  ASSERT_TRUE(ranks::succeeded(run.start(comm, stream), comm)) << call;
  if (own_stream) {
    ASSERT_TRUE(ranks::succeeded(trestleStreamSynchronize(stream), comm)) << call;
    EXPECT_TRUE(ranks::succeeded(trestleStreamDestroy(stream), comm)) << call;
  } else {
    ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm)) << call;
  }
  EXPECT_EQ(run.verify(), "") << call;
}

}  // namespace api
