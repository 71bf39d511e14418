// Handshake: two ends of a stream prove to each other that they know the job's secret, before any other byte is
// believed.
//
// Value of whoever owns the connection, one thread. A pure state machine without I/O: send outgoing(), read at most
// wanted() bytes, hand them to received(); so nothing that follows the handshake is ever read by it.
//
//   initiator                                      acceptor
//   hello: magic, version, purpose, role, job,
//          own rank, wanted rank, nonce     ---->
//                                           <----  hello: the same
//   proof: MAC("initiator", both hellos)    ---->
//                                           <----  proof: MAC("acceptor", both hellos)
//   acknowledgement: 8 fixed bytes          ---->
//
// The acknowledgement says that the initiator counts on the connection: it has verified the acceptor's proof and has
// not given up meanwhile. Without it an acceptor could not tell a peer that it has from one that went away before it
// read the proof. So whoever gives up owes its reason to every peer that may count on it: the initiator to those to
// which it has sent the acknowledgement, the acceptor to those that have proved themselves (peer_proved()), because
// the acknowledgement may be on its way. It costs the initiator no round trip: its first data may follow at once. It
// needs no MAC: the initiator's proof, which covers the acceptor's fresh nonce, has shown who is there, and what could
// change later bytes of the unsigned stream could also change the data behind it. An initiator may keep
// it in outgoing() until it has read something of its own behind the proof, a verdict say; wanted() is 0 meanwhile.
//
// All messages have a fixed size. The MAC is BLAKE2b (RFC 7693, keyed, 32 bytes; libsodium's crypto_generichash) under
// a key derived from the secret. Both nonces are fresh and under both MACs, so a recorded conversation is worth
// nothing; the roles are under the MACs, so bytes sent back to their sender are worth nothing. The acceptor proves
// itself last: a stranger that connects learns no MAC on which a weak secret could be guessed. Compared in constant
// time. An empty secret proves nothing but takes the same path. The stream itself is neither encrypted nor signed.
//
// Without libsodium every handshake fails with a sentence that says so (handshake_probe).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/auth/crypto.h"

namespace trestle {

struct Credentials {
  std::vector<std::byte> secret;
  std::array<std::byte, 16> job{};  // tells two jobs on one port apart; not secret
  int32_t rank = 0;                 // own; 0 or more
};

// What the connection is for; a proof for one purpose is worth nothing for another.
enum class Purpose : uint8_t { kRendezvous = 1, kControl = 2, kTcp = 3, kShm = 4 };
enum class Role : uint8_t { kInitiator = 1, kAcceptor = 2 };

// Success, or kInvalidUsage "not built: libsodium was not found".
Status handshake_probe();

// Also of what travels behind it. 2: messages carry the check of their operation; 3: the acknowledgement; 4: that check
// has 48 bits.
inline constexpr uint16_t kHandshakeVersion = 4;
inline constexpr size_t kHelloBytes = 72;
inline constexpr size_t kProofBytes = 40;
inline constexpr size_t kAcknowledgementBytes = 8;
inline constexpr size_t kHandshakeNonceBytes = 32;

class Handshake {
 public:
  // `expected_peer_rank`: an error if the peer is any other rank; the peer is told whom we want and refuses if it is
  // not.
  Handshake(Role role, Purpose purpose, const Credentials& credentials,
            std::optional<int32_t> expected_peer_rank = std::nullopt);
  ~Handshake();

  // What is to be sent next; empty: nothing now. After a failure it may hold a last message that tells the peer the
  // reason: send it if that does not block, then close.
  std::span<const std::byte> outgoing() const { return {out_.data() + out_at_, out_bytes_ - out_at_}; }
  void sent(size_t bytes);

  // Bytes to read next, never more; 0: none before outgoing() is sent, or done, or failed.
  size_t wanted() const;
  // 1..wanted() bytes as they came. kRemoteError with a sentence: not a Trestle peer, another version, purpose, job or
  // rank, or a peer that does not know the secret. Such an error is final.
  Status received(std::span<const std::byte> data);

  // Both sides have proved themselves, and the acknowledgement is sent (initiator) or read (acceptor).
  bool done() const { return state_ == State::kDone && out_at_ == out_bytes_; }
  // The peer's proof has been verified. As soon as an acceptor has also sent all of outgoing(), the peer may count on
  // the connection.
  bool peer_proved() const { return state_ == State::kAcknowledgement || state_ == State::kDone; }
  // The peer's rank: as claimed once its hello is here (for sentences), proved when peer_proved(); -1 before.
  int32_t peer_rank() const { return peer_rank_; }
  // After a failure: one side's proof was wrong. The secrets differ, and trying again will not help. A hint where the
  // peer says so.
  bool secret_differs() const { return secret_differs_; }

 private:
  // What is awaited: an initiator goes from kProof to kDone.
  enum class State : uint8_t { kHello, kProof, kAcknowledgement, kDone, kFailed };

  void put_hello(uint8_t refusal);
  void put_proof(uint8_t refusal);
  void put_acknowledgement(uint8_t refusal);
  Status take_hello();
  Status take_proof();
  Status take_acknowledgement();
  Hash32 proof_of(Role by) const;
  Error fail(std::string sentence, uint8_t refusal = 0);

  const Role role_;
  const Purpose purpose_;
  const std::array<std::byte, 16> job_;
  const int32_t rank_;
  const int32_t expected_;  // -1: any
  Hash32 key_{};            // derived from the secret, which is not kept
  State state_ = State::kHello;
  int32_t peer_rank_ = -1;
  bool secret_differs_ = false;
  std::array<std::byte, kHandshakeNonceBytes> nonce_{};
  std::array<std::byte, kHelloBytes> mine_{};  // hellos as they were on the wire
  std::array<std::byte, kHelloBytes> theirs_{};
  std::array<std::byte, kHelloBytes> in_{};
  size_t in_bytes_ = 0;
  std::array<std::byte, kHelloBytes> out_{};
  size_t out_bytes_ = 0;
  size_t out_at_ = 0;
};

// A key of its own for another use of the same secret; `label` says which. 32 bytes; empty if libsodium is not there.
std::vector<std::byte> derive_secret(std::span<const std::byte> secret, std::string_view label);

// The job id of a communicator's name: equal names, equal ids. Not a secret and not derived from one.
std::array<std::byte, 16> job_id(std::string_view name);

}  // namespace trestle
