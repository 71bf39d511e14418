// Ranks whose counts differ where only two of them know a count. All ranks get an error, and those two an error that
// names both ranks and both sizes. No rank waits for the deadline, and no byte is written beyond the expected ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/ranks.h"

namespace api {
namespace sizes_test {
namespace {

using ranks::contains;

constexpr int kRanks = 4;
constexpr int kSender = 1;
constexpr int kReceiver = 0;
constexpr size_t kSegment = 65'536;  // floats in 256 KiB, the size of a segment
constexpr size_t kMost = 20 * kSegment;

struct Sizes {
  size_t sent;
  size_t expected;
};
constexpr Sizes kSizes[] = {{3, 2}, {0, 5}, {5, 0}, {kSegment, 1}, {1, kSegment}, {2 * kSegment, kSegment}};

enum class Kind { kGatherV, kScatterV, kAllToAllV, kMessage };

// All other blocks have two elements.
trestleResult_t call(Kind kind, const Sizes& sizes, int rank, float* send, float* recv, trestleComm_t comm) {
  std::vector<size_t> sendcounts(kRanks, 2);
  std::vector<size_t> recvcounts(kRanks, 2);
  switch (kind) {
    case Kind::kGatherV:
      recvcounts[kSender] = sizes.expected;
      return trestleGatherV(send, rank == kSender ? sizes.sent : 2, recv, recvcounts.data(), nullptr, trestleFloat32,
                            kReceiver, comm, nullptr);
    case Kind::kScatterV:
      sendcounts[kReceiver] = sizes.sent;
      return trestleScatterV(send, sendcounts.data(), nullptr, recv, rank == kReceiver ? sizes.expected : 2,
                             trestleFloat32, kSender, comm, nullptr);
    case Kind::kAllToAllV:
      if (rank == kSender) sendcounts[kReceiver] = sizes.sent;
      if (rank == kReceiver) recvcounts[kSender] = sizes.expected;
      return trestleAllToAllV(send, sendcounts.data(), nullptr, recv, recvcounts.data(), nullptr, trestleFloat32, comm,
                              nullptr);
    case Kind::kMessage:
      if (rank == kSender) return trestleSend(send, sizes.sent, trestleFloat32, kReceiver, comm, nullptr);
      if (rank == kReceiver) return trestleRecv(recv, sizes.expected, trestleFloat32, kSender, comm, nullptr);
      return trestleSuccess;
  }
  return trestleInternalError;
}

// If calls are checked, a difference may be found before any data is sent. Then the sentence counts elements.
bool in_elements(const std::string& sentence, Kind kind, const Sizes& sizes) {
  return kind == Kind::kMessage && contains(sentence, "sendrecv of " + std::to_string(sizes.sent) + " float") &&
         contains(sentence, "sendrecv of " + std::to_string(sizes.expected) + " float");
}

void disagree(Kind kind, const Sizes& sizes, bool checked, int rank, trestleComm_t comm) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", " << sizes.sent << " sent, "
                                  << sizes.expected << " expected, rank " << rank << ", checked: " << checked);
  std::vector<float> send(kMost + 8, 1.0F);
  std::vector<float> recv(kMost + 8, 7.0F);
  trestleResult_t result = call(kind, sizes, rank, send.data(), recv.data(), comm);
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  // A rank whose part needed no other rank is told a moment later.
  ranks::wait_until([&] {
    return result != trestleSuccess || trestleCommGetAsyncError(comm, &result) != trestleSuccess ||
           result != trestleSuccess;
  });
  const std::string sentence = trestleGetLastError(comm);
  // Ranks that had not begun may find their connections closed before they hear the reason.
  if (rank != kSender && rank != kReceiver) return;
  ASSERT_EQ(result, trestleInvalidUsage) << sentence;
  std::vector<std::string> facts = {"rank 0", "rank 1"};
  if (!checked || !in_elements(sentence, kind, sizes)) {
    facts.push_back("sends " + std::to_string(sizes.sent * 4) + " bytes");
    facts.push_back("expects " + std::to_string(sizes.expected * 4));
  }
  for (const std::string& fact : facts) EXPECT_TRUE(contains(sentence, fact)) << fact << " in: " << sentence;
  if (rank != kReceiver) return;
  // Blocks of other ranks may have arrived: two elements each, before and after this one.
  const size_t upto = sizes.expected + 2 * (kRanks - 1);
  EXPECT_TRUE(
      std::all_of(recv.begin() + static_cast<std::ptrdiff_t>(upto), recv.end(), [](float v) { return v == 7.0F; }));
}

class ApiSizes : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ApiSizes,
                         testing::Values(Kind::kGatherV, Kind::kScatterV, Kind::kAllToAllV, Kind::kMessage));

ranks::Env environment(bool checked) {
  return {{"TRESTLE_CHECK", checked ? "1" : "0"}};
}

// tests/conformance/transport_agreement_test.cpp has all sizes on all transports.
TEST_P(ApiSizes, DifferencesAreToldToAll) {
  const struct {
    const char* transport;
    bool checked;
  } kWays[] = {{"loopback", false}, {"shm", true}, {"tcp", false}};
  for (const auto& [transport, checked] : kWays) {
    for (const Sizes& sizes : kSizes) {
      // A message of no elements is not sent.
      if (GetParam() == Kind::kMessage && (sizes.sent == 0 || sizes.expected == 0)) continue;
      SCOPED_TRACE(transport);
      ranks::on_threads(
          {.ranks = kRanks, .transport = transport},
          [&, checked = checked](int rank, trestleComm_t comm) { disagree(GetParam(), sizes, checked, rank, comm); },
          environment(checked), 50);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_P(ApiSizes, DifferencesAreToldToProcesses) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool checked : {false, true}) {
      SCOPED_TRACE(transport);
      const auto body = [&](ranks::Process& process, trestleComm_t comm) {
        disagree(GetParam(), {2 * kSegment, kSegment}, checked, process.rank, comm);
      };
      ranks::on_processes(
          {.ranks = kRanks, .transport = transport}, body, [&](int) { return environment(checked); }, 50);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Counts that all ranks know are compared before anything else.
TEST(ApiSizesOfAll, CountsThatAllKnowAreCompared) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    for (const bool scatter : {false, true}) {
      ranks::on_threads(
          {.ranks = 3, .transport = transport},
          [&](int rank, trestleComm_t comm) {
            std::vector<float> send(1000);
            std::vector<float> recv(1000);
            // The total is the same, and ranks 0 and 1 agree about their own blocks.
            const size_t counts[2][3] = {{100, 200, 300}, {100, 300, 200}};
            const size_t* mine = counts[rank == 2 ? 1 : 0];
            trestleResult_t result = scatter ? trestleReduceScatterV(send.data(), recv.data(), mine, trestleFloat32,
                                                                     trestleSum, comm, nullptr)
                                             : trestleAllGatherV(send.data(), mine[rank], recv.data(), mine, nullptr,
                                                                 trestleFloat32, comm, nullptr);
            if (result == trestleSuccess) result = trestleCommSynchronize(comm);
            ranks::wait_until([&] {
              return result != trestleSuccess || trestleCommGetAsyncError(comm, &result) != trestleSuccess ||
                     result != trestleSuccess;
            });
            const std::string sentence = trestleGetLastError(comm);
            EXPECT_EQ(result, trestleInvalidUsage) << sentence;
            EXPECT_TRUE(contains(sentence, "rank 2")) << sentence;
            EXPECT_TRUE(contains(sentence, "count")) << sentence;
          },
          {}, 50);
    }
  }
}

}  // namespace
}  // namespace sizes_test
}  // namespace api
