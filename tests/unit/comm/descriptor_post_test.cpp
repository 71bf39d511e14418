// Descriptors that ranks pass to each other: each arrives at its rank and stands for the same file; what strangers send
// does not.
#include "comm/setup/descriptor_post.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "transport/socket/socket.h"

namespace trestle {
namespace descriptor_post_test {
namespace {

constexpr const char* kJob = "0123456789abcdef0123456789abcdef";

ino_t file_of(int descriptor) {
  struct stat info {};
  EXPECT_EQ(::fstat(descriptor, &info), 0);
  return info.st_ino;
}

UniqueFd new_file() {
  return UniqueFd(::memfd_create("passed", MFD_CLOEXEC));
}

struct Posts : testing::Test {
  std::unique_ptr<DescriptorPost> first = DescriptorPost::open(kJob, 0).value();
  std::unique_ptr<DescriptorPost> second = DescriptorPost::open(kJob, 1).value();
};

TEST_F(Posts, PassWhatIsSent) {
  const UniqueFd outbox = new_file();
  const UniqueFd board = new_file();
  ASSERT_TRUE(first->send(second->address(), Parcel::kOutbox, outbox.get()).ok());
  ASSERT_TRUE(first->send(second->address(), Parcel::kBoard, board.get()).ok());
  second->collect();
  const UniqueFd passed = second->take(0, Parcel::kOutbox);
  ASSERT_TRUE(passed);
  EXPECT_NE(passed.get(), outbox.get());
  EXPECT_EQ(file_of(passed.get()), file_of(outbox.get()));
  EXPECT_EQ(::fcntl(passed.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(file_of(second->take(0, Parcel::kBoard).get()), file_of(board.get()));
  EXPECT_FALSE(second->take(0, Parcel::kBoard)) << "once";
  EXPECT_FALSE(second->take(1, Parcel::kOutbox)) << "nobody has sent that";
}

// The sender may have ended before the receiver looks.
TEST_F(Posts, KeepWhatWasSentByOneThatIsGone) {
  const UniqueFd file = new_file();
  ASSERT_TRUE(first->send(second->address(), Parcel::kOutbox, file.get()).ok());
  first.reset();
  second->collect();
  EXPECT_TRUE(second->take(0, Parcel::kOutbox));
}

TEST_F(Posts, SayThatNobodyIsThere) {
  const UniqueFd file = new_file();
  const std::string gone = second->address();
  second.reset();
  const Status sent = first->send(gone, Parcel::kOutbox, file.get());
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, Code::kRemoteError);
}

TEST_F(Posts, AreNotConfusedByStrangers) {
  const UniqueFd file = new_file();
  const std::array<std::byte, 3> few{};
  const std::array<std::byte, 64> many{};
  const std::array<int, 2> two{file.get(), file.get()};
  const UniqueFd silent = connect_unix(second->address()).value();
  const UniqueFd talks = connect_unix(second->address()).value();
  ASSERT_TRUE(send_with_descriptors(talks.get(), few, {}).ok());
  const UniqueFd passes = connect_unix(second->address()).value();
  ASSERT_TRUE(send_with_descriptors(passes.get(), many, two).ok());
  ASSERT_TRUE(first->send(second->address(), Parcel::kOutbox, file.get()).ok());
  second->collect();
  EXPECT_TRUE(second->take(0, Parcel::kOutbox));
}

TEST_F(Posts, TakeNothingFromOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const UniqueFd file = new_file();
    const bool refused = ::setresuid(kNobody, kNobody, kNobody) == 0 &&
                         !first->send(second->address(), Parcel::kOutbox, file.get()).ok();
    const UniqueFd connection = connect_unix(second->address()).value();
    const std::array<std::byte, 8> label{};  // rank 0, an outbox
    const int descriptor = file.get();
    const bool sent = send_with_descriptors(connection.get(), label, std::span(&descriptor, 1)).ok();
    ::_exit(refused && sent ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it gives its memory to a process of another user";
  second->collect();
  EXPECT_FALSE(second->take(0, Parcel::kOutbox));
}

}  // namespace
}  // namespace descriptor_post_test
}  // namespace trestle
