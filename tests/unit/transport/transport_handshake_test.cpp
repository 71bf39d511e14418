// The handshake accepts a peer that knows the secret and no other, whatever bytes arrive.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "transport/auth/handshake.h"

namespace trestle {
namespace transport_handshake_test {
namespace {

Credentials credentials(int32_t rank, const std::string& secret = "open sesame", const std::string& job = "job") {
  const auto bytes = std::as_bytes(std::span(secret.data(), secret.size()));
  return {{bytes.begin(), bytes.end()}, job_id(job), rank};
}

using Bytes = std::vector<std::byte>;

// Takes the bytes that one side has to send.
Bytes said(Handshake& from) {
  const Bytes bytes(from.outgoing().begin(), from.outgoing().end());
  from.sent(bytes.size());
  return bytes;
}

// Gives them to the other side in slices of at most `slice` bytes.
Status hear(Handshake& to, std::span<const std::byte> bytes, size_t slice = 1000) {
  while (!bytes.empty() && to.wanted() > 0) {
    const auto part = bytes.first(std::min({bytes.size(), to.wanted(), slice}));
    if (Status status = to.received(part); !status.ok()) return status;
    bytes = bytes.subspan(part.size());
  }
  return {};
}

struct Outcome {
  Status initiator;
  Status acceptor;
};

// Runs the whole conversation. `change` may tamper with each message (its number, its bytes).
Outcome converse(Handshake& initiator, Handshake& acceptor, const std::function<void(int, Bytes&)>& change = {},
                 size_t slice = 1000) {
  Outcome outcome;
  for (int message = 0; message < 5; ++message) {
    const bool forth = message % 2 == 0;
    Bytes bytes = said(forth ? initiator : acceptor);
    if (change) change(message, bytes);
    Status& status = forth ? outcome.acceptor : outcome.initiator;
    status = hear(forth ? acceptor : initiator, bytes, slice);
    if (!status.ok()) {
      // Delivers the last message of the side that refuses.
      Status& other = forth ? outcome.initiator : outcome.acceptor;
      other = hear(forth ? initiator : acceptor, said(forth ? acceptor : initiator));
      break;
    }
  }
  return outcome;
}

TEST(Handshake, EqualSecretsProveEachOther) {
  for (const size_t slice : {1, 7, 1000}) {
    Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(3), 5);
    Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(5));
    EXPECT_EQ(acceptor.wanted(), kHelloBytes);
    EXPECT_EQ(initiator.wanted(), 0u) << "before its hello is sent";
    const Outcome outcome = converse(initiator, acceptor, {}, slice);
    EXPECT_TRUE(outcome.initiator.ok() && outcome.acceptor.ok());
    EXPECT_TRUE(initiator.done() && acceptor.done());
    EXPECT_EQ(initiator.peer_rank(), 5);
    EXPECT_EQ(acceptor.peer_rank(), 3);
    EXPECT_EQ(initiator.wanted(), 0u);
    EXPECT_EQ(acceptor.wanted(), 0u) << "what follows the handshake must not be read by it";
  }
}

struct Refusal {
  const char* what;
  Purpose purpose;
  Credentials credentials;
  std::optional<int32_t> wanted;
  const char* sentence;  // part of the sentence of one side
};

TEST(Handshake, EveryDifferenceIsSaid) {
  const Refusal kCases[] = {
      {"another secret", Purpose::kTcp, credentials(0, "open barley"), 1, "secret"},
      {"no secret", Purpose::kTcp, credentials(0, ""), 1, "secret"},
      {"another job", Purpose::kTcp, credentials(0, "open sesame", "other"), 1, "job"},
      {"another purpose", Purpose::kControl, credentials(0), 1, "purpose"},
      {"another rank wanted", Purpose::kTcp, credentials(0), 2, "rank"},
  };
  for (const Refusal& c : kCases) {
    Handshake initiator(Role::kInitiator, c.purpose, c.credentials, c.wanted);
    Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
    const Outcome outcome = converse(initiator, acceptor);
    EXPECT_FALSE(initiator.done()) << c.what;
    EXPECT_FALSE(acceptor.done()) << c.what;
    ASSERT_FALSE(outcome.acceptor.ok()) << c.what;
    EXPECT_NE(outcome.acceptor.error().message.find(c.sentence), std::string::npos) << outcome.acceptor.error().message;
    ASSERT_FALSE(outcome.initiator.ok()) << c.what << ": the other side is told";
    EXPECT_NE(outcome.initiator.error().message.find(c.sentence), std::string::npos)
        << outcome.initiator.error().message;
    EXPECT_EQ(outcome.acceptor.error().code, Code::kRemoteError);
  }
}

TEST(Handshake, AnUnexpectedRankIsRefusedByEitherSide) {
  Handshake initiator(Role::kInitiator, Purpose::kShm, credentials(3));
  Handshake acceptor(Role::kAcceptor, Purpose::kShm, credentials(5), 4);
  const Outcome outcome = converse(initiator, acceptor);
  ASSERT_FALSE(outcome.acceptor.ok());
  EXPECT_NE(outcome.acceptor.error().message.find("rank 3, not rank 4"), std::string::npos);
}

// Flips one bit anywhere in any message. The side that reads it must refuse.
TEST(Handshake, NoBitMayChange) {
  const size_t kBytes[] = {kHelloBytes, kHelloBytes, kProofBytes, kProofBytes, kAcknowledgementBytes};
  for (int message = 0; message < 5; ++message) {
    for (size_t at = 0; at < kBytes[message]; ++at) {
      Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
      Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
      (void)converse(initiator, acceptor, [&](int number, Bytes& data) {
        if (number == message && at < data.size()) data[at] ^= std::byte{1};
      });
      EXPECT_TRUE(message == 4 || !initiator.done()) << "message " << message << ", byte " << at;
      EXPECT_FALSE(acceptor.done()) << "message " << message << ", byte " << at;
    }
  }
}

TEST(Handshake, ItsOwnBytesSentBackAreRefused) {
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0));
  EXPECT_FALSE(hear(initiator, said(initiator)).ok());

  // A stranger mirrors an acceptor: it makes an initiator's hello and proof from the acceptor's.
  Handshake victim(Role::kAcceptor, Purpose::kTcp, credentials(1));
  Handshake oracle(Role::kAcceptor, Purpose::kTcp, credentials(1));
  Handshake honest(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  const Bytes hello = said(honest);
  ASSERT_TRUE(hear(victim, hello).ok());
  ASSERT_TRUE(hear(oracle, hello).ok());
  (void)said(oracle);
  ASSERT_TRUE(hear(honest, said(victim)).ok());
  const Bytes proof = said(honest);
  // A proof for one connection is worthless on another one, even with the same rank at the same time.
  EXPECT_FALSE(hear(oracle, proof).ok());
  EXPECT_TRUE(hear(victim, proof).ok());
}

TEST(Handshake, AReplayIsRefused) {
  std::vector<Bytes> recorded;
  {
    Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
    Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
    (void)converse(initiator, acceptor, [&](int, Bytes& data) { recorded.push_back(data); });
    ASSERT_TRUE(acceptor.done());
  }
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  ASSERT_TRUE(hear(acceptor, recorded[0]).ok());
  (void)said(acceptor);
  EXPECT_FALSE(hear(acceptor, recorded[2]).ok());
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  (void)said(initiator);
  ASSERT_TRUE(hear(initiator, recorded[1]).ok());
  (void)said(initiator);
  EXPECT_FALSE(hear(initiator, recorded[3]).ok());
}

TEST(Handshake, GarbageIsRefusedAtItsFirstByte) {
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  const std::string request = "GET / HTTP/1.1\r\n";
  const Status status = acceptor.received(std::as_bytes(std::span(request.data(), 1)));
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(acceptor.outgoing().empty()) << "a stranger learns nothing";
  EXPECT_EQ(acceptor.wanted(), 0u);
}

// The acceptor does not count on an initiator that gives up before it has read the acceptor's proof.
TEST(Handshake, TheAcceptorIsDoneWithTheAcknowledgement) {
  Handshake initiator(Role::kInitiator, Purpose::kControl, credentials(0), 1);
  Handshake acceptor(Role::kAcceptor, Purpose::kControl, credentials(1));
  ASSERT_TRUE(hear(acceptor, said(initiator)).ok());
  ASSERT_TRUE(hear(initiator, said(acceptor)).ok());
  EXPECT_FALSE(acceptor.peer_proved());
  ASSERT_TRUE(hear(acceptor, said(initiator)).ok());
  EXPECT_TRUE(acceptor.peer_proved());
  const Bytes proof = said(acceptor);
  EXPECT_FALSE(acceptor.done()) << "its proof is on its way, and the initiator may be gone";
  EXPECT_EQ(acceptor.wanted(), kAcknowledgementBytes);

  ASSERT_TRUE(hear(initiator, proof).ok());
  EXPECT_TRUE(initiator.peer_proved());
  EXPECT_FALSE(initiator.done()) << "before it has said so";
  EXPECT_EQ(initiator.wanted(), 0u) << "what is behind the proof is not the handshake's";
  Bytes last = said(initiator);
  EXPECT_TRUE(initiator.done());
  last.push_back(std::byte{42});  // its first data follows directly
  ASSERT_TRUE(hear(acceptor, last).ok());
  EXPECT_TRUE(acceptor.done());
  EXPECT_EQ(acceptor.wanted(), 0u);
}

TEST(Handshake, AnOlderVersionIsRefused) {
  for (const int version : {2, 3, 4}) {
    Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
    Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
    const Outcome outcome = converse(initiator, acceptor, [version](int number, Bytes& data) {
      if (number == 0) data[8] = static_cast<std::byte>(version);
    });
    ASSERT_FALSE(outcome.acceptor.ok());
    EXPECT_EQ(outcome.acceptor.error().message, "the peer speaks version " + std::to_string(version) +
                                                    " of the protocol, this side version " +
                                                    std::to_string(kHandshakeVersion));
    EXPECT_TRUE(acceptor.version_differs());
  }
}

// The side that is refused reads the other version in the acceptor's hello, whose beginning means the same in all
// versions.
TEST(Handshake, BothSidesSayWhichVersionsMet) {
  Handshake initiator(Role::kInitiator, Purpose::kRendezvous, credentials(0));
  Handshake acceptor(Role::kAcceptor, Purpose::kRendezvous, credentials(1));
  const std::string sentence =
      "the peer speaks version 200 of the protocol, this side version " + std::to_string(kHandshakeVersion);
  const auto of_version_200 = [](Handshake& side) {
    Bytes hello = said(side);
    EXPECT_EQ(hello.at(8), static_cast<std::byte>(kHandshakeVersion));
    hello.at(8) = std::byte{200};
    return hello;
  };
  const Status refused = hear(acceptor, of_version_200(initiator));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, sentence);
  const Status told = hear(initiator, of_version_200(acceptor));
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().message, sentence);
  EXPECT_TRUE(initiator.version_differs());
}

// Both proofs cover the purpose, so a side that expects another one refuses, and a changed one does not pass.
TEST(Handshake, AnAcceptorOfTwoPurposesTakesEach) {
  const auto acceptor_of_two = [] {
    return Handshake(Role::kAcceptor, Purpose::kControl, credentials(1), std::nullopt, Purpose::kControlMove);
  };
  for (const Purpose purpose : {Purpose::kControl, Purpose::kControlMove}) {
    Handshake initiator(Role::kInitiator, purpose, credentials(0), 1);
    Handshake acceptor = acceptor_of_two();
    const Outcome outcome = converse(initiator, acceptor);
    EXPECT_TRUE(outcome.initiator.ok() && outcome.acceptor.ok());
    EXPECT_TRUE(acceptor.done());
    EXPECT_EQ(acceptor.purpose(), purpose);
  }
  Handshake other(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  Handshake refusing = acceptor_of_two();
  EXPECT_FALSE(converse(other, refusing).acceptor.ok());
  Handshake initiator(Role::kInitiator, Purpose::kControl, credentials(0), 1);
  Handshake acceptor = acceptor_of_two();
  const Outcome changed = converse(initiator, acceptor, [](int number, Bytes& data) {
    if (number == 0) data[10] = static_cast<std::byte>(Purpose::kControlMove);
  });
  EXPECT_FALSE(changed.initiator.ok());
  EXPECT_FALSE(acceptor.peer_proved());
}

// If there is no acknowledgement, its message carries the reason.
TEST(Handshake, AProofThatIsRefusedIsSaid) {
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  const Outcome outcome = converse(initiator, acceptor, [](int number, Bytes& data) {
    if (number == 3) data.back() ^= std::byte{1};
  });
  ASSERT_FALSE(outcome.initiator.ok());
  ASSERT_FALSE(outcome.acceptor.ok());
  EXPECT_NE(outcome.acceptor.error().message.find("secret"), std::string::npos) << outcome.acceptor.error().message;
  EXPECT_TRUE(acceptor.secret_differs());
}

TEST(Handshake, HalfOfItIsNotDone) {
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  const Bytes hello = said(initiator);
  ASSERT_TRUE(hear(acceptor, std::span(hello).first(kHelloBytes - 1)).ok());
  EXPECT_TRUE(acceptor.outgoing().empty());
  EXPECT_EQ(acceptor.wanted(), 1u);
  EXPECT_FALSE(acceptor.done());
}

TEST(Handshake, AStrangerLearnsNoMacBeforeItHasProvedItself) {
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0, "guess"), 1);
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  std::vector<Bytes> from_acceptor;
  (void)converse(initiator, acceptor, [&](int number, Bytes& data) {
    if (number % 2 == 1) from_acceptor.push_back(data);
  });
  ASSERT_EQ(from_acceptor.size(), 1u) << "only the hello, which has no MAC";
  EXPECT_EQ(from_acceptor[0].size(), kHelloBytes);
}

TEST(Handshake, DerivedSecretsDiffer) {
  const Bytes secret(32, std::byte{7});
  EXPECT_EQ(derive_secret(secret, "a"), derive_secret(secret, "a"));
  EXPECT_NE(derive_secret(secret, "a"), derive_secret(secret, "b"));
  EXPECT_NE(derive_secret(secret, "a"), derive_secret(Bytes(31, std::byte{7}), "a"));
  EXPECT_EQ(derive_secret(secret, "a").size(), 32u);
  EXPECT_NE(job_id("a"), job_id("b"));
}

}  // namespace
}  // namespace transport_handshake_test
}  // namespace trestle
