#include "transport/auth/handshake.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace trestle {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'R', 'E', 'S', 'T', 'L', 'E', '\n'};

// Offsets in a hello. The first ten bytes keep their meaning in every version.
constexpr size_t kVersionAt = 8;
constexpr size_t kPurposeAt = 10;
constexpr size_t kRoleAt = 11;
constexpr size_t kRefusalAt = 12;
constexpr size_t kRankAt = 16;
constexpr size_t kWantedAt = 20;
constexpr size_t kJobAt = 24;
constexpr size_t kNonceAt = 40;
static_assert(kNonceAt + kHandshakeNonceBytes == kHelloBytes);

// Offsets in a proof: refusal, 7 zero bytes, the MAC.
constexpr size_t kMacAt = 8;
static_assert(kMacAt + sizeof(Hash32) == kProofBytes);

// An acknowledgement: refusal, then these bytes.
constexpr std::array<char, kAcknowledgementBytes - 1> kAcknowledged = {'c', 'o', 'u', 'n', 't', 'e', 'd'};

// Why the peer was refused: a hint for the peer's error message. It must not be used for anything else.
enum Refusal : uint8_t { kNone, kVersion, kPurpose, kJob, kRank, kSecret };

const char* refusal_sentence(uint8_t refusal) {
  switch (refusal) {
    case kVersion:
      return "the peer refused the connection: it speaks another version of the protocol";
    case kPurpose:
      return "the peer refused the connection: its port serves another purpose";
    case kJob:
      return "the peer refused the connection: it belongs to another job";
    case kRank:
      return "the peer refused the connection: it is not the rank that was wanted, or wants another one";
    case kSecret:
      return "the peer refused the connection: it has another secret";
  }
  return "the peer refused the connection";
}

template <class T>
void put(std::byte* to, T value) {  // little-endian
  for (size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<std::byte>(static_cast<std::make_unsigned_t<T>>(value) >> (8 * i));
}

template <class T>
T take(const std::byte* from) {
  std::make_unsigned_t<T> value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(from[i]) << (8 * i));
  return static_cast<T>(value);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Status handshake_probe() {
  if (crypto_built()) return {};
  return Error{Code::kInvalidUsage, "not built: libsodium was not found, so connections could not be authenticated"};
}

Handshake::Handshake(Role role, Purpose purpose, const Credentials& credentials,
                     std::optional<int32_t> expected_peer_rank, std::optional<Purpose> or_for)
    : role_(role),
      purpose_(purpose),
      or_for_(or_for),
      job_(credentials.job),
      rank_(credentials.rank),
      expected_(expected_peer_rank.value_or(-1)) {
  CHECK(rank_ >= 0, "a handshake needs the rank of its own side");
  CHECK(!or_for_ || role_ == Role::kAcceptor, "a connection is made for one purpose");
  key_ = keyed_hash({}, {bytes_of("trestle handshake 1"), credentials.secret});
  random_bytes(nonce_);
  if (role_ == Role::kInitiator) put_hello(kNone);
}

Handshake::~Handshake() {
  wipe(key_);
}

void Handshake::sent(size_t bytes) {
  CHECK(bytes <= out_bytes_ - out_at_, "more was sent than the handshake had to send");
  out_at_ += bytes;
}

size_t Handshake::wanted() const {
  if (out_at_ != out_bytes_) return 0;
  if (state_ == State::kHello) return kHelloBytes - in_bytes_;
  if (state_ == State::kProof) return kProofBytes - in_bytes_;
  if (state_ == State::kAcknowledgement) return kAcknowledgementBytes - in_bytes_;
  return 0;
}

Status Handshake::received(std::span<const std::byte> data) {
  CHECK(!data.empty() && data.size() <= wanted(), "the handshake was given bytes that it did not ask for");
  std::copy(data.begin(), data.end(), in_.begin() + in_bytes_);
  in_bytes_ += data.size();
  if (!crypto_built()) return fail(handshake_probe().error().message);
  if (state_ == State::kHello) {
    // A peer with another protocol is recognised at its first byte; it need not send a whole hello.
    if (std::memcmp(in_.data(), kMagic.data(), std::min(in_bytes_, kMagic.size())) != 0)
      return fail("what the peer sent is not the beginning of a Trestle connection");
    if (in_bytes_ == kHelloBytes) return take_hello();
  } else if (state_ == State::kProof) {
    if (in_bytes_ == kProofBytes) return take_proof();
  } else if (in_bytes_ == kAcknowledgementBytes) {
    return take_acknowledgement();
  }
  return {};
}

Status Handshake::take_hello() {
  in_bytes_ = 0;
  theirs_ = in_;
  const uint16_t version = take<uint16_t>(&in_[kVersionAt]);
  version_differs_ = version != kHandshakeVersion;
  if (version_differs_)
    return fail("the peer speaks version " + std::to_string(version) + " of the protocol, this side version " +
                    std::to_string(kHandshakeVersion),
                kVersion);
  const auto refusal = static_cast<uint8_t>(in_[kRefusalAt]);
  job_differs_ = refusal == kJob;
  if (refusal != kNone) return fail(refusal_sentence(refusal));
  const auto role = static_cast<uint8_t>(in_[kRoleAt]);
  const Role other = role_ == Role::kInitiator ? Role::kAcceptor : Role::kInitiator;
  if (role != static_cast<uint8_t>(other))
    return fail("the peer claims the same role in the handshake as this side (its own bytes sent back?)");
  const auto purpose = static_cast<uint8_t>(in_[kPurposeAt]);
  if (or_for_ && purpose == static_cast<uint8_t>(*or_for_)) purpose_ = *or_for_;
  if (purpose != static_cast<uint8_t>(purpose_))
    return fail("the peer's connection is for another purpose than this port", kPurpose);
  job_differs_ = std::memcmp(&in_[kJobAt], job_.data(), job_.size()) != 0;
  if (job_differs_) return fail("the peer belongs to another job (two jobs on one port?)", kJob);
  const auto rank = take<int32_t>(&in_[kRankAt]);
  if (rank < 0) return fail("the peer claims a negative rank", kRank);
  if (expected_ >= 0 && rank != expected_)
    return fail("the peer is rank " + std::to_string(rank) + ", not rank " + std::to_string(expected_), kRank);
  const auto wanted = take<int32_t>(&in_[kWantedAt]);
  if (wanted >= 0 && wanted != rank_)
    return fail("the peer wants rank " + std::to_string(wanted) + ", this is rank " + std::to_string(rank_), kRank);
  peer_rank_ = rank;
  state_ = State::kProof;
  if (role_ == Role::kAcceptor)
    put_hello(kNone);
  else
    put_proof(kNone);
  return {};
}

Status Handshake::take_proof() {
  in_bytes_ = 0;
  const auto refusal = static_cast<uint8_t>(in_[0]);
  secret_differs_ = refusal == kSecret;
  if (refusal != kNone) return fail(refusal_sentence(refusal));
  if (std::any_of(&in_[1], &in_[kMacAt], [](std::byte b) { return b != std::byte{0}; }))
    return fail("the peer's proof is not written as this version of the protocol writes it");
  const Hash32 right = proof_of(role_ == Role::kInitiator ? Role::kAcceptor : Role::kInitiator);
  secret_differs_ = !equal_secrets(right, {&in_[kMacAt], right.size()});
  if (secret_differs_)
    return fail("the peer, which claims to be rank " + std::to_string(peer_rank_) + ", has another secret", kSecret);
  if (role_ == Role::kAcceptor) {
    put_proof(kNone);
    state_ = State::kAcknowledgement;
  } else {
    put_acknowledgement(kNone);
    state_ = State::kDone;
  }
  return {};
}

Status Handshake::take_acknowledgement() {
  in_bytes_ = 0;
  const auto refusal = static_cast<uint8_t>(in_[0]);
  secret_differs_ = refusal == kSecret;
  if (refusal != kNone) return fail(refusal_sentence(refusal));
  if (std::memcmp(&in_[1], kAcknowledged.data(), kAcknowledged.size()) != 0)
    return fail("the peer's acknowledgement is not written as this version of the protocol writes it");
  state_ = State::kDone;
  return {};
}

void Handshake::put_hello(uint8_t refusal) {
  out_.fill(std::byte{0});
  std::memcpy(out_.data(), kMagic.data(), kMagic.size());
  put<uint16_t>(&out_[kVersionAt], kHandshakeVersion);
  out_[kPurposeAt] = static_cast<std::byte>(purpose_);
  out_[kRoleAt] = static_cast<std::byte>(role_);
  out_[kRefusalAt] = static_cast<std::byte>(refusal);
  if (refusal == kNone) {  // a stranger learns neither job nor rank
    put<int32_t>(&out_[kRankAt], rank_);
    put<int32_t>(&out_[kWantedAt], expected_);
    std::copy(job_.begin(), job_.end(), out_.begin() + kJobAt);
    std::copy(nonce_.begin(), nonce_.end(), out_.begin() + kNonceAt);
  }
  mine_ = out_;
  out_bytes_ = kHelloBytes;
  out_at_ = 0;
}

void Handshake::put_proof(uint8_t refusal) {
  out_.fill(std::byte{0});
  out_[0] = static_cast<std::byte>(refusal);
  if (refusal == kNone) {
    const Hash32 mac = proof_of(role_);
    std::copy(mac.begin(), mac.end(), out_.begin() + kMacAt);
  }
  out_bytes_ = kProofBytes;
  out_at_ = 0;
}

void Handshake::put_acknowledgement(uint8_t refusal) {
  out_.fill(std::byte{0});
  out_[0] = static_cast<std::byte>(refusal);
  if (refusal == kNone) std::memcpy(&out_[1], kAcknowledged.data(), kAcknowledged.size());
  out_bytes_ = kAcknowledgementBytes;
  out_at_ = 0;
}

// MAC(prover's role, initiator's hello, acceptor's hello): covers everything that was sent before.
Hash32 Handshake::proof_of(Role by) const {
  const auto& first = role_ == Role::kInitiator ? mine_ : theirs_;
  const auto& second = role_ == Role::kInitiator ? theirs_ : mine_;
  return keyed_hash(key_, {bytes_of(by == Role::kInitiator ? "initiator" : "acceptor "), first, second});
}

Error Handshake::fail(std::string sentence, uint8_t refusal) {
  const State at = state_;
  state_ = State::kFailed;
  out_bytes_ = out_at_ = 0;
  // The refusal replaces the message that the peer waits for.
  if (refusal != kNone && at == State::kHello && role_ == Role::kAcceptor) put_hello(refusal);
  if (refusal != kNone &&
      ((at == State::kHello && role_ == Role::kInitiator) || (at == State::kProof && role_ == Role::kAcceptor)))
    put_proof(refusal);
  if (refusal != kNone && at == State::kProof && role_ == Role::kInitiator) put_acknowledgement(refusal);
  return Error{Code::kRemoteError, std::move(sentence)};
}

std::vector<std::byte> derive_secret(std::span<const std::byte> secret, std::string_view label) {
  if (!crypto_built()) return {};
  // The inner hash allows keys of any length. The label is the message, so labels cannot collide with secrets.
  const Hash32 key = keyed_hash({}, {bytes_of("trestle derive 1"), secret});
  const Hash32 out = keyed_hash(key, {bytes_of(label)});
  return {out.begin(), out.end()};
}

std::array<std::byte, 16> job_id(std::string_view name) {
  std::array<std::byte, 16> id;
  put<uint64_t>(id.data(), Hasher().integer(1).string(name).digest());
  put<uint64_t>(id.data() + 8, Hasher().integer(2).string(name).digest());
  return id;
}

}  // namespace trestle
