// The rank to blame for a passed deadline: follows chains of waiting ranks in virtual time.
#include "control_mesh/inquiry.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include "transport/transport.h"

namespace trestle {
namespace {

constexpr int32_t kRanks = 64;

using State = Answer::State;

Inquiry make_inquiry(int32_t rank) {
  std::vector<std::string> names;
  for (int32_t r = 0; r < kRanks; ++r) names.push_back("rank " + std::to_string(r) + " (host h)");
  return {rank, names};
}

Overdue overdue(int32_t awaited) {
  return {{5}, awaited, 2000 * kMs, "deadline passed"};
}

Answer waits_for(const Inquiry::Letter& letter, int32_t awaited) {
  Answer answer;
  answer.id = letter.question.id;
  answer.state = State::kActive;
  answer.calls = 6;
  answer.in = letter.question.operation;
  answer.awaited = awaited;
  answer.description = "operation 5 (all-reduce)";
  return answer;
}

Answer absent(const Inquiry::Letter& letter, uint64_t calls) {
  Answer answer;
  answer.id = letter.question.id;
  answer.calls = calls;
  return answer;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Inquiry, EndsAtTheRankThatHasNoExcuse) {
  for (const int32_t length : {1, 2, 3, 4, 5, 60}) {
    SCOPED_TRACE(length);
    Inquiry inquiry = make_inquiry(0);
    Inquiry::Letter letter = inquiry.begin(overdue(1), 0);
    for (int32_t r = 1; r < length; ++r) {
      EXPECT_EQ(letter.to, r);
      EXPECT_EQ(letter.question.whose, r - 1);
      EXPECT_EQ(letter.question.operation, OperationKey{5});
      const auto next = inquiry.answered(r, waits_for(letter, r + 1), 0);
      ASSERT_TRUE(next.has_value());
      letter = *next;
      EXPECT_FALSE(inquiry.take_verdict(1).has_value());
    }
    EXPECT_FALSE(inquiry.answered(length, absent(letter, 5), 0).has_value());
    EXPECT_EQ(inquiry.due_ns(), 0);
    const auto verdict = inquiry.take_verdict(1);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(verdict->operation, OperationKey{5});
    const std::string sentence = verdict->sentence();
    const std::string begin = "rank " + std::to_string(length) +
                              " (host h) has not called operation 5: its latest call was operation 4; deadline passed";
    EXPECT_TRUE(sentence.starts_with(begin)) << sentence;
    EXPECT_EQ(has(sentence, "; rank 1 awaits rank 2"), length > 1) << sentence;
    EXPECT_LT(sentence.size(), 250u);
    EXPECT_FALSE(inquiry.take_verdict(1).has_value()) << "told twice";
    EXPECT_EQ(inquiry.due_ns(), INT64_MAX);
  }
}

TEST(Inquiry, FollowsARankIntoAnotherOperation) {
  Inquiry inquiry = make_inquiry(0);
  const Inquiry::Letter first = inquiry.begin(overdue(1), 0);
  Answer answer = absent(first, 3);
  answer.in = OperationKey{kPointToPoint | 7, 9, true};
  answer.awaited = 9;
  const auto second = inquiry.answered(1, answer, 0);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->to, 9);
  EXPECT_EQ(second->question.whose, 1);
  EXPECT_EQ(second->question.operation, *answer.in);
  EXPECT_FALSE(inquiry.answered(9, absent(*second, 0), 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(has(sentence, "rank 1 awaits rank 9")) << sentence;
  EXPECT_TRUE(has(sentence, "rank 9 (host h) has not called the Recv that matches message 7 to rank 9 of rank 1"))
      << sentence;
}

TEST(Inquiry, FindsCircles) {
  for (const int32_t closes : {0, 1, 2}) {
    SCOPED_TRACE(closes);
    Inquiry inquiry = make_inquiry(0);
    auto letter = std::optional(inquiry.begin(overdue(1), 0));
    letter = inquiry.answered(1, waits_for(*letter, 2), 0);
    letter = inquiry.answered(2, waits_for(*letter, 3), 0);
    letter = inquiry.answered(3, waits_for(*letter, closes), 0);
    // The others have also called.
    for (; letter; letter = inquiry.answered(letter->to, waits_for(*letter, 3), 0)) EXPECT_GT(letter->to, 3);
    const std::string sentence = inquiry.take_verdict(1)->sentence();
    const char* const circles[] = {"ranks 0, 1, 2 and 3 wait", "ranks 1, 2 and 3 wait", "ranks 2 and 3 wait"};
    EXPECT_TRUE(has(sentence, circles[closes])) << sentence;
  }
}

// For example two trees at once: two ranks await each other in one tree each, and both await a third one in the other.
TEST(Inquiry, ACircleIsNoExcuseForARankThatHasNotCalled) {
  Inquiry inquiry = make_inquiry(5);
  auto letter = std::optional(inquiry.begin(overdue(6), 0));
  letter = inquiry.answered(6, waits_for(*letter, 5), 0);
  for (int32_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(letter.has_value());
    EXPECT_EQ(letter->to, r);
    EXPECT_EQ(letter->question.operation, OperationKey{5});
    letter = inquiry.answered(r, r == 2 ? absent(*letter, 5) : waits_for(*letter, 6), 0);
  }
  EXPECT_FALSE(letter.has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(sentence.starts_with("rank 2 (host h) has not called operation 5")) << sentence;
}

TEST(Inquiry, SilenceEndsItAndIsNamed) {
  Inquiry inquiry = make_inquiry(0);
  const Inquiry::Letter first = inquiry.begin(overdue(1), 0);
  const auto second = inquiry.answered(1, waits_for(first, 2), 100 * kMs);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(inquiry.due_ns(), 1100 * kMs);  // half of the timeout after the question
  EXPECT_FALSE(inquiry.take_verdict(1099 * kMs).has_value());
  auto verdict = inquiry.take_verdict(1100 * kMs);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->silent, 2);
  EXPECT_EQ(verdict->silent_ns, 1000 * kMs);
  const std::string begin = "rank 2 (host h) is frozen or very slow: it does not answer on the control mesh";
  EXPECT_EQ(verdict->sentence(), begin + "; deadline passed; rank 1 awaits rank 2");
  verdict->host_answers = true;
  EXPECT_TRUE(has(verdict->sentence(), "mesh, but its host does; ")) << verdict->sentence();
  verdict->host_answers = false;
  EXPECT_TRUE(has(verdict->sentence(), "mesh, and neither does its host; ")) << verdict->sentence();
}

// A rank that still connects answers no question, and needs a second before it can say which rank it misses.
TEST(Inquiry, OfAMakingIsPatientWhateverTheDeadline) {
  Inquiry inquiry = make_inquiry(0);
  const auto first = inquiry.begin({{0, -1, false, CallKind::kCreation}, 1, 100 * kMs, "deadline passed"}, 0);
  EXPECT_EQ(first.to, 1);
  EXPECT_FALSE(inquiry.take_verdict(1900 * kMs).has_value());
  EXPECT_TRUE(inquiry.take_verdict(2000 * kMs).has_value());
}

// Questions about splits and finalizations work like those about operations, and may lead to operations.
TEST(Inquiry, FollowsACallOverTheMesh) {
  Inquiry inquiry = make_inquiry(0);
  const OperationKey split{3, -1, false, CallKind::kSplit};
  const auto first = inquiry.begin({split, 1, 2000 * kMs, "deadline passed"}, 0);
  EXPECT_EQ(first.question.operation, split);
  Answer busy = absent(first, 0);
  busy.in = OperationKey{7};
  busy.awaited = 2;
  const auto second = inquiry.answered(1, busy, 0);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->question.operation, OperationKey{7});
  EXPECT_FALSE(inquiry.answered(2, absent(*second, 7), 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(sentence.starts_with("rank 2 (host h) has not called operation 7")) << sentence;

  const auto again = inquiry.begin({split, 1, 2000 * kMs, "deadline passed"}, 0);
  EXPECT_FALSE(inquiry.answered(1, absent(again, 0), 0).has_value());
  EXPECT_EQ(inquiry.take_verdict(1)->sentence(), "rank 1 (host h) has not called CommSplit; deadline passed");
}

// A rank that makes a communicator knows only its neighbours. The names of the others come with the answers.
TEST(Inquiry, LearnsNamesFromAnswers) {
  Inquiry inquiry(0, {"rank 0 (host h)", "rank 1 (host h)", "rank 2"});
  const auto first = inquiry.begin(overdue(1), 0);
  Answer answer = waits_for(first, 2);
  answer.awaited_name = "rank 2 (host h, pid 7)";
  ASSERT_TRUE(inquiry.answered(1, answer, 0).has_value());
  EXPECT_TRUE(inquiry.take_verdict(1000 * kMs)->sentence().starts_with("rank 2 (host h, pid 7) is frozen"));
}

TEST(Inquiry, OneCallDoesNotReplaceAnother) {
  Inquiry inquiry = make_inquiry(0);
  const auto first = inquiry.begin_if_none(overdue(1), 0);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(inquiry.begin_if_none(overdue(2), 0).has_value());
  EXPECT_FALSE(inquiry.answered(1, absent(*first, 0), 0).has_value());
  EXPECT_TRUE(inquiry.take_verdict(1).has_value()) << "the first one's";
  EXPECT_TRUE(inquiry.begin_if_none(overdue(2), 0).has_value());
}

// A wait is only said, so nobody waits for its result.
TEST(Inquiry, ADeadlineReplacesAWait) {
  Inquiry inquiry = make_inquiry(0);
  Overdue wait = overdue(1);
  wait.waited_s = 10;
  ASSERT_TRUE(inquiry.begin_if_none(wait, 0).has_value());
  EXPECT_FALSE(inquiry.begin_if_none(wait, 0).has_value());
  const auto late = inquiry.begin_if_none(overdue(2), 0);
  ASSERT_TRUE(late.has_value());
  EXPECT_FALSE(inquiry.begin_if_none(wait, 0).has_value());
  EXPECT_FALSE(inquiry.answered(2, absent(*late, 0), 0).has_value());
  const auto verdict = inquiry.take_verdict(1);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->waited_s, 0);
}

// A call waits behind one of another communicator. The next question is about that one and goes to the process that is
// awaited there. The verdict uses that process's name in this communicator.
TEST(Inquiry, FollowsAStreamIntoAnotherCommunicator) {
  const JobId other{std::byte{7}};
  Inquiry inquiry(0, {"rank 0 (host h, pid 10)", "rank 1 (host h, pid 11)", "rank 2 (host h, pid 12)"});
  const auto first = inquiry.begin(overdue(1), 0);
  EXPECT_FALSE(first.question.other_comm.has_value());
  Answer held = absent(first, 6);
  held.state = State::kQueued;
  held.in = OperationKey{70};
  held.awaited = 90;
  held.awaited_name = "rank 90 (host h, pid 12)";
  held.other_comm = OtherCommRank{other, 91};
  const auto second = inquiry.answered(1, held, 0);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->to, 2);
  EXPECT_EQ(second->question.operation, OperationKey{70});
  EXPECT_EQ(second->question.whose, 91);
  EXPECT_EQ(second->question.other_comm, (OtherCommRank{other, 90}));
  const auto verdict = inquiry.take_verdict(1000 * kMs);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->silent, 2);
  EXPECT_TRUE(verdict->sentence().starts_with("rank 2 (host h, pid 12) is frozen")) << verdict->sentence();
}

TEST(Inquiry, OfSeveralRanksInAProcessTheOtherCommunicatorsIsNamedAsThere) {
  Inquiry inquiry(0, {"rank 0 (host h, pid 10)", "rank 1 (host h, pid 11)", "rank 2 (host h, pid 11)"});
  Answer held = absent(inquiry.begin(overdue(1), 0), 6);
  held.state = State::kQueued;
  held.in = OperationKey{70};
  held.awaited = 90;
  held.awaited_name = "rank 90 (host h, pid 11)";
  held.other_comm = OtherCommRank{JobId{std::byte{7}}, 91};
  const auto second = inquiry.answered(1, held, 0);
  ASSERT_TRUE(second.has_value());
  Answer last = absent(*second, 70);
  last.other_comm = second->question.other_comm;
  EXPECT_FALSE(inquiry.answered(second->to, last, 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(sentence.starts_with("rank 90 (host h, pid 11) of another communicator has not called operation 70"))
      << sentence;
}

// Rank 1 is blocked by another call, in which it awaits this rank. This rank awaits rank 2 in that call.
TEST(Inquiry, ARankThatIsAwaitedInAnotherCallClosesNoCircle) {
  Inquiry inquiry = make_inquiry(0);
  Answer held = waits_for(inquiry.begin(overdue(1), 0), 0);
  held.state = State::kQueued;
  held.in = OperationKey{3};
  const auto own = inquiry.answered(1, held, 0);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->to, 0);
  EXPECT_EQ(own->question.operation, OperationKey{3});
  const auto third = inquiry.answered(0, waits_for(*own, 2), 0);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->to, 2);
  EXPECT_FALSE(inquiry.answered(2, absent(*third, 3), 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(sentence.starts_with("rank 2 (host h) has not called operation 3")) << sentence;
}

// What holds it up is the program's own work on its device. No rank can be asked about that.
TEST(Inquiry, NamesTheDeviceWhoseStreamHasNotComeToTheCall) {
  Inquiry inquiry = make_inquiry(0);
  Answer held = absent(inquiry.begin(overdue(1), 0), 6);
  held.state = State::kQueued;
  held.device = 3;
  EXPECT_FALSE(inquiry.answered(1, held, 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(
      sentence.starts_with("rank 1 (host h) has called operation 5, but its CUDA stream on device 3 has not "
                           "come to it: kernels, copies or waits before it there have not ended"))
      << sentence;
}

// The process has no rank here, so it cannot be asked, and the chain ends before it.
TEST(Inquiry, EndsBeforeAProcessThatItDoesNotKnow) {
  Inquiry inquiry(0, {"rank 0 (host h, pid 10)", "rank 1 (host h, pid 11)"});
  Answer held = absent(inquiry.begin(overdue(1), 0), 6);
  held.state = State::kQueued;
  held.in = OperationKey{70};
  held.awaited = 2;
  held.awaited_name = "rank 2 (host h, pid 12)";
  held.description = "operation 70, awaiting rank 2";
  held.other_comm = OtherCommRank{JobId{std::byte{7}}, 1};
  EXPECT_FALSE(inquiry.answered(1, held, 0).has_value());
  const std::string sentence = inquiry.take_verdict(1)->sentence();
  EXPECT_TRUE(
      sentence.starts_with("rank 1 (host h, pid 11) has called operation 5, but its stream has not reached it; "
                           "it is in operation 70, awaiting rank 2 of another communicator"))
      << sentence;
}

// Two inquiries of a rank at the same time, for example about an operation and a split.
TEST(Inquiry, AnswersToAnotherInquiryAreIgnored) {
  std::vector<std::string> names{"rank 0", "rank 1"};
  Inquiry one(0, names);
  Inquiry other(0, names, 1u << 31);
  const auto asked = one.begin(overdue(1), 0);
  (void)other.begin(overdue(1), 0);
  EXPECT_FALSE(other.answered(1, absent(asked, 0), 0).has_value());
  EXPECT_FALSE(other.take_verdict(1).has_value());
  EXPECT_TRUE(other.open());
  EXPECT_FALSE(one.answered(1, absent(asked, 0), 0).has_value());
  EXPECT_TRUE(one.take_verdict(1).has_value());
  EXPECT_FALSE(one.open());
}

// With a chain of any length and ranks of any speed it ends after twice the patience.
TEST(Inquiry, IsBounded) {
  Inquiry inquiry = make_inquiry(0);
  auto letter = std::optional(inquiry.begin(overdue(1), 0));
  int64_t now = 0;
  for (int32_t r = 1; r < 20 && inquiry.due_ns() > now; ++r, now += 150 * kMs) {
    letter = inquiry.answered(r, waits_for(*letter, r + 1), now);
    ASSERT_TRUE(letter.has_value());
  }
  EXPECT_LE(inquiry.due_ns(), 2000 * kMs);
  EXPECT_TRUE(inquiry.take_verdict(2000 * kMs).has_value());
}

// A rank mostly stops making calls once one of its communicators has failed.
TEST(Inquiry, WhatEndedAnotherCommunicatorOfARankThatHasNotCalledIsNamedFirst) {
  std::vector<std::string> names;
  for (int32_t r = 0; r < 3; ++r)
    names.push_back("rank " + std::to_string(r) + " (host h, pid 1" + std::to_string(r) + ")");
  const auto culprit = [&names](const std::string& failure) {
    Inquiry inquiry(0, names);
    const auto letter = inquiry.begin(overdue(1), 0);
    Answer answer = absent(letter, 0);
    answer.failure = failure;
    EXPECT_FALSE(inquiry.answered(1, answer, 1).has_value());
    return inquiry.take_verdict(2)->culprit;
  };
  // There rank 7 is rank 2 here.
  EXPECT_EQ(culprit("rank 7 (host h, pid 12) is frozen or very slow: it does not answer; deadline passed after 4s"),
            "rank 2 (host h, pid 12) is frozen or very slow: it does not answer; that has ended another communicator "
            "of rank 1 (host h, pid 11), which has not called operation 5: it has made no such call yet");
  // A process without a rank here, and this rank itself, which asks.
  for (const std::string other : {"rank 7 (host h, pid 99) died", "rank 7 (host h, pid 10) died"}) {
    EXPECT_EQ(culprit(other + "; more"),
              "rank 1 (host h, pid 11) has not called operation 5: it has made no such call yet; another communicator "
              "of it has failed: " +
                  other);
  }
}

TEST(Inquiry, StaleAndForeignAnswersAreIgnored) {
  Inquiry inquiry = make_inquiry(0);
  const Inquiry::Letter old = inquiry.begin(overdue(1), 0);
  const Inquiry::Letter now = inquiry.begin(overdue(1), 0);
  EXPECT_FALSE(inquiry.answered(1, absent(old, 0), 0).has_value());
  EXPECT_FALSE(inquiry.answered(2, absent(now, 0), 0).has_value());
  EXPECT_FALSE(inquiry.take_verdict(1).has_value());
  const auto next = inquiry.answered(1, waits_for(now, 2), 0);
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(inquiry.answered(1, waits_for(now, 2), 0).has_value()) << "the second copy of a letter";
}

TEST(Inquiry, LettersSurviveTheWire) {
  const Question question{77, {kPointToPoint | 3, 2, true}, 1, {}};
  const auto asked = decode_question(encode(question), kRanks);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->id, 77u);
  EXPECT_EQ(asked->operation, question.operation);
  EXPECT_EQ(asked->whose, 1);
  EXPECT_FALSE(asked->other_comm.has_value());
  const Question far{78, {kPointToPoint | 3, 90, true}, 91, OtherCommRank{JobId{std::byte{7}}, 92}};
  EXPECT_EQ(decode_question(encode(far), kRanks)->other_comm, far.other_comm);
  EXPECT_EQ(decode_question(encode(far), kRanks)->whose, 91);
  Answer answer;
  answer.id = 5;
  answer.state = State::kDone;
  answer.calls = 9;
  answer.in = OperationKey{8};
  answer.awaited = 63;
  answer.description = std::string(2 * kMostDescription, 'x');
  answer.awaited_name = "rank 63 (host h, pid 1)";
  answer.failure = "rank 1 died";
  answer.device = 7;
  const std::string letter = encode(answer);
  const auto got = decode_answer(letter, kRanks);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->id, 5u);
  EXPECT_EQ(got->state, State::kDone);
  EXPECT_EQ(got->calls, 9u);
  EXPECT_EQ(got->in, answer.in);
  EXPECT_EQ(got->awaited, 63);
  EXPECT_EQ(got->description.size(), kMostDescription);
  EXPECT_EQ(got->awaited_name, answer.awaited_name);
  EXPECT_EQ(got->failure, answer.failure);
  EXPECT_EQ(got->device, 7);
  EXPECT_FALSE(decode_answer(letter, 63).has_value()) << "a rank that does not exist";
  for (size_t cut = 0; cut < letter.size(); ++cut) {
    EXPECT_FALSE(decode_answer(letter.substr(0, cut), kRanks).has_value()) << cut;
    EXPECT_FALSE(decode_question(letter.substr(0, cut), kRanks).has_value()) << cut;
  }
}

}  // namespace
}  // namespace trestle
