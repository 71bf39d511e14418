// Handshake: two ends of a stream prove to each other that they know the job's secret, before any other byte is
// trusted.
//
// A value owned by the connection's owner, one thread. A pure state machine without I/O: send outgoing(), read at most
// wanted() bytes, pass them to received(). So it never reads anything that follows the handshake. HandshakeExchange
// does that over a socket.
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
// not given up meanwhile. Without it an acceptor could not distinguish a connected peer from one that went away before
// it read the proof. So a side that gives up must tell its reason to every peer that may count on it. For the initiator
// these are the peers to which it has sent the acknowledgement. For the acceptor these are the peers that have proved
// themselves (peer_proved()), because the acknowledgement may be on its way. The acknowledgement costs the initiator no
// round trip: its first data may follow at once. It needs no MAC: the initiator's proof covers the acceptor's fresh
// nonce and so has shown who the peer is. An attacker that could change later bytes of the unsigned stream could also
// change the data after them. An initiator may keep the acknowledgement in outgoing() until it has read something of
// its own after the proof, for example a verdict; wanted() is 0 meanwhile.
//
// All messages have a fixed size. The MAC is BLAKE2b (RFC 7693, keyed, 32 bytes; libsodium's crypto_generichash) under
// a key derived from the secret. Both nonces are fresh and covered by both MACs, so a recorded handshake cannot be
// replayed. The MACs also cover the roles, so bytes cannot be reflected to their sender. The acceptor proves itself
// last: a stranger that connects gets no MAC on which it could guess a weak secret. MACs are compared in constant time.
// An empty secret proves nothing but takes the same path. The stream itself is neither encrypted nor signed.
//
// Without libsodium every handshake fails with an error that says so (handshake_probe).
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
  std::array<std::byte, 16> job{};  // distinguishes two jobs on one port; not secret
  int32_t rank = 0;                 // this rank; 0 or more
};

// What the connection is for. A proof for one purpose is not valid for another.
enum class Purpose : uint8_t { kRendezvous = 1, kControl = 2, kTcp = 3, kShm = 4, kControlMove = 5 };
enum class Role : uint8_t { kInitiator = 1, kAcceptor = 2 };

// Success, or kInvalidUsage "not built: libsodium was not found".
Status handshake_probe();

// The version of the handshake and of all that follows it. 2: messages carry the check of their operation; 3: the
// acknowledgement; 4: that check has 48 bits; 5: a rank that is asked about a call also tells of another communicator's
// failure; 7: frames of the control mesh are acknowledged; 8: a rank asks the other one to end a silent rail; 9: ranks
// learn the rails of their neighbours where they meet; 10: the plans of `pairwise` exchange halves; 11: the
// rendezvous draws the communicator's number.
inline constexpr uint16_t kHandshakeVersion = 11;
inline constexpr size_t kHelloBytes = 72;
inline constexpr size_t kProofBytes = 40;
inline constexpr size_t kAcknowledgementBytes = 8;
inline constexpr size_t kHandshakeNonceBytes = 32;

class Handshake {
 public:
  // `expected_peer_rank`: any other rank is an error. The peer is told which rank we want, and refuses if it is another
  // one. `or_for`: an acceptor takes connections for this purpose, too.
  Handshake(Role role, Purpose purpose, const Credentials& credentials,
            std::optional<int32_t> expected_peer_rank = std::nullopt, std::optional<Purpose> or_for = std::nullopt);
  ~Handshake();

  // The bytes to send next; empty: none now. After a failure it may hold a last message that tells the peer the reason.
  // Send that if it does not block, then close.
  std::span<const std::byte> outgoing() const { return {out_.data() + out_at_, out_bytes_ - out_at_}; }
  void sent(size_t bytes);

  // Number of bytes to read next, never more. 0: none before outgoing() is sent, or the handshake is done or failed.
  size_t wanted() const;
  // Takes 1..wanted() received bytes. kRemoteError says why: not a Trestle peer, another version, purpose, job or rank,
  // or a peer that does not know the secret. Such an error is final.
  Status received(std::span<const std::byte> data);

  // Both sides have proved themselves, and the acknowledgement is sent (initiator) or read (acceptor).
  bool done() const { return state_ == State::kDone && out_at_ == out_bytes_; }
  // The peer's proof has been verified. If an acceptor has also sent all of outgoing(), the peer may count on the
  // connection.
  bool peer_proved() const { return state_ == State::kAcknowledgement || state_ == State::kDone; }
  // The peer's rank: claimed once its hello has arrived (for error messages), proved when peer_proved(); -1 before.
  int32_t peer_rank() const { return peer_rank_; }
  // What the connection is for: of an acceptor of two purposes, the peer's once its hello has arrived. The proofs cover
  // it.
  Purpose purpose() const { return purpose_; }
  // After a failure: one side's proof was wrong. The secrets differ, and trying again will not help. Only a hint if the
  // peer reported it.
  bool secret_differs() const { return secret_differs_; }
  // After a failure: the peer belongs to another job. Only a hint if the peer reported it.
  bool job_differs() const { return job_differs_; }
  // After a failure: the peer speaks another version of the protocol.
  bool version_differs() const { return version_differs_; }

 private:
  // The message that is awaited. An initiator goes from kProof to kDone.
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
  Purpose purpose_;
  const std::optional<Purpose> or_for_;
  const std::array<std::byte, 16> job_;
  const int32_t rank_;
  const int32_t expected_;  // -1: any
  Hash32 key_{};            // derived from the secret, which is not kept
  State state_ = State::kHello;
  int32_t peer_rank_ = -1;
  bool secret_differs_ = false;
  bool job_differs_ = false;
  bool version_differs_ = false;
  std::array<std::byte, kHandshakeNonceBytes> nonce_{};
  std::array<std::byte, kHelloBytes> mine_{};  // hellos as they were on the wire
  std::array<std::byte, kHelloBytes> theirs_{};
  std::array<std::byte, kHelloBytes> in_{};
  size_t in_bytes_ = 0;
  std::array<std::byte, kHelloBytes> out_{};
  size_t out_bytes_ = 0;
  size_t out_at_ = 0;
};

// Derives another key from the same secret for another use; `label` names the use. 32 bytes; empty without libsodium.
std::vector<std::byte> derive_secret(std::span<const std::byte> secret, std::string_view label);

// The job id for a communicator's name: equal names give equal ids. Not secret, and not derived from a secret.
std::array<std::byte, 16> job_id(std::string_view name);

}  // namespace trestle
