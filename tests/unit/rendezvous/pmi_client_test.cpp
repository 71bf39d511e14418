// The client of PMI-1 against a launcher that the test simulates line by line.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "rendezvous/pmi/pmi_client.h"

namespace trestle {
namespace pmi_client_test {
namespace {

WaitLimit in_two_minutes() {
  return {monotonic_clock().now_ns() + 120 * kSecond, nullptr};
}

// The launcher's end of a connection. Its thread reads each line and sends the answer that the rule gives.
class PlayedLauncher {
 public:
  using Rule = std::function<std::string(const std::string& line)>;

  explicit PlayedLauncher(UniqueFd end, Rule rule) : end_(std::move(end)), rule_(std::move(rule)) {
    thread_ = std::thread([this] { play(); });
  }
  ~PlayedLauncher() { stop(); }

  // Returns every received line once the other end is closed.
  std::vector<std::string> stop() {
    if (thread_.joinable()) thread_.join();
    return lines_;
  }

 private:
  void play() {
    std::string line;
    while (true) {
      std::byte one{};
      if (!receive_all_before(end_.get(), {&one, 1}, in_two_minutes()).ok()) return;
      if (static_cast<char>(one) != '\n') {
        line += static_cast<char>(one);
        continue;
      }
      lines_.push_back(line);
      const std::string answer = rule_(line);
      line.clear();
      if (answer == "close") {
        end_.reset();
        return;
      }
      if (!answer.empty()) (void)send_all_before(end_.get(), std::as_bytes(std::span(answer)), in_two_minutes());
    }
  }

  UniqueFd end_;
  const Rule rule_;
  std::vector<std::string> lines_;
  std::thread thread_;
};

// Hydra's answers, with `value` under the key.
std::string hydra(const std::string& line, const std::string& value = "place") {
  if (line.starts_with("cmd=initack")) return "cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n";
  if (line.starts_with("cmd=init")) return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_7_0\n";
  if (line.starts_with("cmd=put")) return "cmd=put_result rc=0 msg=success\n";
  if (line == "cmd=barrier_in") return "cmd=barrier_out\n";
  if (line.starts_with("cmd=get")) return "cmd=get_result rc=0 msg=success value=" + value + "\n";
  return "cmd=finalize_ack\n";
}

struct Played {
  Result<std::string> result{Error{Code::kInternalError, "did not run"}};
  std::vector<std::string> lines;  // as read by the launcher
};

Played exchange(const std::string& text, const PlayedLauncher::Rule& rule, const WaitLimit& limit = in_two_minutes()) {
  int pair[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  UniqueFd mine(pair[0]);
  PlayedLauncher launcher(UniqueFd(pair[1]), rule);
  LauncherSpace space;
  space.kind = LauncherSpace::Kind::kPmi;
  space.pmi_fd = mine.get();
  Played played;
  played.result = exchange_over_pmi(space, text, limit);
  mine.reset();
  played.lines = launcher.stop();
  return played;
}

std::string sentence(const Played& played) {
  return played.result.ok() ? "success: " + played.result.value() : played.result.error().message;
}

TEST(PmiClient, RankZeroPutsAndAllGet) {
  const auto zero = exchange("place", [](const std::string& line) { return hydra(line); });
  ASSERT_TRUE(zero.result.ok()) << sentence(zero);
  EXPECT_EQ(zero.result.value(), "place");
  const std::string key = " kvsname=kvs_7_0 key=trestle-meeting-place";
  EXPECT_EQ(zero.lines, (std::vector<std::string>{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                                                  "cmd=put" + key + " value=place", "cmd=barrier_in", "cmd=get" + key,
                                                  "cmd=finalize"}));
  const auto other = exchange("", [](const std::string& line) { return hydra(line); });
  EXPECT_EQ(sentence(other), "success: place");
  for (const std::string& line : other.lines) EXPECT_FALSE(line.starts_with("cmd=put")) << line;
}

TEST(PmiClient, AnswersMayComeInPieces) {
  UniqueFd ends[2];
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ends[0].reset(pair[0]);
  ends[1].reset(pair[1]);
  // All answers are there before the first question. The last one is incomplete.
  const std::string all =
      hydra("cmd=init") + hydra("cmd=get_my_kvsname") + hydra("cmd=barrier_in") + "cmd=get_result value=pla";
  ASSERT_TRUE(send_all_before(ends[1].get(), std::as_bytes(std::span(all)), in_two_minutes()).ok());
  std::thread rest([&] {
    std::byte last{};
    std::string line;  // the question of the last answer
    while (!line.starts_with("cmd=get ")) {
      line.clear();
      while (receive_all_before(ends[1].get(), {&last, 1}, in_two_minutes()).ok() && static_cast<char>(last) != '\n')
        line += static_cast<char>(last);
    }
    const std::string end = "ce rc=0\ncmd=finalize_ack\n";
    (void)send_all_before(ends[1].get(), std::as_bytes(std::span(end)), in_two_minutes());
  });
  LauncherSpace space;
  space.kind = LauncherSpace::Kind::kPmi;
  space.pmi_fd = ends[0].get();
  const auto result = exchange_over_pmi(space, "", in_two_minutes());
  ends[0].reset();
  rest.join();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value(), "place");
}

TEST(PmiClient, ARefusalIsQuotedWithoutTheSecret) {
  const auto version = exchange("secret", [](const std::string& line) {
    return line.starts_with("cmd=init ") ? "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n" : hydra(line);
  });
  EXPECT_NE(sentence(version).find("answered 'cmd=response_to_init pmi_version=2"), std::string::npos)
      << sentence(version);
  const auto full = exchange("secret", [](const std::string& line) {
    return line.starts_with("cmd=put") ? "cmd=put_result rc=-1 msg=no_room\n" : hydra(line);
  });
  EXPECT_NE(sentence(full).find("msg=no_room"), std::string::npos) << sentence(full);
  EXPECT_EQ(sentence(full).find("value=secret"), std::string::npos) << sentence(full);
}

TEST(PmiClient, ALauncherThatEndsIsSaid) {
  const auto played = exchange(
      "x", [](const std::string& line) { return line == "cmd=barrier_in" ? std::string("close") : hydra(line); });
  ASSERT_FALSE(played.result.ok());
  EXPECT_EQ(played.result.error().code, Code::kRemoteError);
  EXPECT_NE(sentence(played).find("PMI_FD="), std::string::npos) << sentence(played);
  EXPECT_NE(sentence(played).find("closed the connection"), std::string::npos) << sentence(played);
}

TEST(PmiClient, ALineWithoutAnEndIsNoAnswer) {
  const auto played = exchange("x", [](const std::string&) { return std::string(100'000, 'x'); });
  EXPECT_NE(sentence(played).find("without an end"), std::string::npos) << sentence(played);
}

TEST(PmiClient, TheBarrierEndsAtTheDeadlineAndIsExplained) {
  const WaitLimit soon{monotonic_clock().now_ns() + kSecond / 5, nullptr};
  const auto played = exchange(
      "x", [](const std::string& line) { return line == "cmd=barrier_in" ? std::string() : hydra(line); }, soon);
  ASSERT_FALSE(played.result.ok());
  EXPECT_EQ(played.result.error().code, Code::kTimeout);
  // A busy machine may reach the deadline before the barrier. Then the error is that the launcher did not answer.
  if (!played.lines.empty() && played.lines.back() == "cmd=barrier_in") {
    EXPECT_NE(sentence(played).find("MASTER_ADDR"), std::string::npos) << sentence(played);
  }
}

TEST(PmiClient, AnAbortEndsTheWait) {
  std::atomic<bool> aborted{false};
  const WaitLimit limit{monotonic_clock().now_ns() + 120 * kSecond, &aborted};
  const auto played = exchange(
      "x",
      [&](const std::string& line) {
        if (line == "cmd=barrier_in") aborted = true;
        return line == "cmd=barrier_in" ? std::string() : hydra(line);
      },
      limit);
  ASSERT_FALSE(played.result.ok());
  EXPECT_EQ(played.result.error().code, Code::kAborted);
}

TEST(PmiClient, ADescriptorThatIsNoSocketIsExplained) {
  LauncherSpace space;
  space.kind = LauncherSpace::Kind::kPmi;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  for (const int64_t descriptor : {int64_t{read_end.get()}, int64_t{1'000'000}}) {
    space.pmi_fd = descriptor;
    const auto result = exchange_over_pmi(space, "x", in_two_minutes());
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kInvalidUsage);
    EXPECT_NE(result.error().message.find("PMI_FD=" + std::to_string(descriptor)), std::string::npos);
    EXPECT_NE(result.error().message.find("MASTER_ADDR"), std::string::npos) << result.error().message;
  }
}

TEST(PmiClient, APortIsConnectedTo) {
  SocketAddress any = parse_address("127.0.0.1:1").value();
  any.set_port(0);
  const Listener listener = listen_tcp_at(any).value();
  LauncherSpace space;
  space.kind = LauncherSpace::Kind::kPmi;
  space.rank = 1;
  space.pmi_port = format_address(listener.address);
  std::unique_ptr<PlayedLauncher> launcher;
  std::thread acceptor([&] {
    Result<UniqueFd> end = accept_before(listener.fd.get(), in_two_minutes());
    ASSERT_TRUE(end.ok());
    launcher =
        std::make_unique<PlayedLauncher>(std::move(end).value(), [](const std::string& line) { return hydra(line); });
  });
  const auto result = exchange_over_pmi(space, "", in_two_minutes());
  acceptor.join();
  const std::vector<std::string> lines = launcher->stop();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value(), "place");
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.front(), "cmd=initack pmiid=1");
  EXPECT_EQ(lines.back(), "cmd=finalize");
}

}  // namespace
}  // namespace pmi_client_test
}  // namespace trestle
