// TRESTLE_TRANSPORT may name any row of the table of transports, and messages then use that transport. An added row
// becomes one of the cases (docs/extending.md).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/config/config.h"
#include "base/log.h"
#include "base/transport_kinds.h"
#include "comm/communicator/communicator.h"
#include "support/log_lines.h"
#include "transport/catalog.h"

namespace trestle {
namespace communicator_transport_test {
namespace {

using Ranks = std::vector<std::shared_ptr<Communicator>>;
constexpr size_t kElements = 100'000;  // too many for the board

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const TransportFacts& row : transport_kinds()) all.emplace_back(row.name);
  return all;
}

class CommunicatorTransport : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Status usable = find_transport(GetParam()).value()->probe();
    if (!usable.ok()) GTEST_SKIP() << usable.error().message;
    process_config();  // sets the log at its first call
  }
};
INSTANTIATE_TEST_SUITE_P(All, CommunicatorTransport, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

void submit(const Ranks& ranks, size_t rank, Call call, const std::vector<int32_t>& from, std::vector<int32_t>& to) {
  call.request.type = DataType::kInt32;
  call.request.count = kElements;
  call.send = from.data();
  call.recv = to.data();
  const Status submitted = ranks[rank]->submit(call, ranks[rank]->own_stream());
  ASSERT_TRUE(submitted.ok()) << submitted.error().message;
}

TEST_P(CommunicatorTransport, IsUsedWhereTheVariableNamesIt) {
  const LogLines lines(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kP2p));
  const auto settings =
      make_settings(parse_config({{"TRESTLE_CALIBRATE", "off"}, {"TRESTLE_TRANSPORT", GetParam()}}), {});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  auto made = Communicator::create_all(2, settings.value());
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Ranks ranks = std::move(made).value();
  std::vector<int32_t> data(kElements);
  std::iota(data.begin(), data.end(), 7);
  std::vector<std::vector<int32_t>> sums(2, std::vector<int32_t>(kElements));
  std::vector<int32_t> arrived(kElements);
  std::vector<int32_t> none;

  for (const size_t rank : {0, 1}) submit(ranks, rank, {}, data, sums[rank]);
  Call message;
  message.request.collective = Collective::kSendRecv;
  message.request.peer = 0;
  submit(ranks, 1, message, none, arrived);
  message.request.peer = 1;
  message.sending = true;
  submit(ranks, 0, message, data, none);
  for (const auto& rank : ranks) ASSERT_TRUE(rank->synchronize(nullptr).ok());
  for (const auto& rank : ranks) rank->destroy(1000);

  EXPECT_EQ(arrived, data);
  for (int32_t& value : data) value *= 2;
  for (const auto& sum : sums) EXPECT_EQ(sum, data);
  const std::string text = lines.text();
  for (const char* end : {"first message to rank 1", "first message from rank 0"}) {
    const size_t line = text.find(end);
    ASSERT_NE(line, std::string::npos) << text;
    const std::string said = text.substr(line, text.find('\n', line) - line);
    EXPECT_NE(said.find(" goes over " + GetParam() + ", long blocks"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace communicator_transport_test
}  // namespace trestle
