// The handshake with bytes from a stranger. It may fail in any way, but must not accept the stranger and must not
// request too many bytes. An input is either bytes for one side, or changes to a conversation between two honest sides.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "transport/auth/handshake.h"

namespace trestle {
namespace {

Credentials credentials(int32_t rank) {
  return {std::vector<std::byte>(32, std::byte{9}), job_id("fuzz"), rank};
}

// Takes bytes from the front.
class Input {
 public:
  explicit Input(std::span<const std::byte> data) : data_(data) {}
  bool empty() const { return data_.empty(); }
  uint8_t byte() { return empty() ? 0 : static_cast<uint8_t>(bytes(1)[0]); }
  std::span<const std::byte> bytes(size_t count) {
    const auto part = data_.first(std::min(count, data_.size()));
    data_ = data_.subspan(part.size());
    return part;
  }

 private:
  std::span<const std::byte> data_;
};

void strange(Role role, Input input) {
  const auto or_for = role == Role::kAcceptor ? std::optional(Purpose::kControlMove) : std::nullopt;
  Handshake handshake(role, Purpose::kTcp, credentials(1), std::nullopt, or_for);
  while (!input.empty()) {
    handshake.sent(handshake.outgoing().size());
    const size_t wanted = handshake.wanted();
    CHECK(wanted <= kHelloBytes, "the handshake asks for more than a message");
    if (wanted == 0) break;
    const size_t slice = 1 + input.byte() % wanted;
    const auto data = input.bytes(slice);
    if (data.empty() || !handshake.received(data).ok()) break;
  }
  CHECK(!handshake.done() && !handshake.peer_proved(), "a stranger got in");
}

// Changes each message of a conversation as the input says.
void tampered(Input input) {
  Handshake initiator(Role::kInitiator, Purpose::kTcp, credentials(0), 1);
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, credentials(1));
  bool changed = false;
  bool proof_changed = false;
  for (int message = 0; message < 5; ++message) {
    Handshake& from = message % 2 == 0 ? initiator : acceptor;
    Handshake& to = message % 2 == 0 ? acceptor : initiator;
    std::vector<std::byte> data(from.outgoing().begin(), from.outgoing().end());
    const std::vector<std::byte> original = data;
    from.sent(data.size());
    for (int changes = input.byte() % 4; changes > 0; --changes) {
      const size_t at = input.byte() % data.size();
      const std::byte mask{input.byte()};
      data[at] ^= mask;
    }
    changed = changed || data != original;
    proof_changed = proof_changed || (message < 4 && data != original);
    const bool heard = to.wanted() == data.size() && to.received(data).ok();
    CHECK(changed || heard, "an honest conversation failed");
    if (!heard) break;
  }
  CHECK(!(proof_changed && initiator.done()), "a changed conversation convinced the initiator");
  CHECK(!(changed && acceptor.done()), "a changed conversation convinced the acceptor");
  CHECK(changed || (initiator.done() && acceptor.done()), "an honest conversation did not end");
}

}  // namespace
}  // namespace trestle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trestle;
  if (size == 0) return 0;
  const Input input(std::as_bytes(std::span(data + 1, size - 1)));
  if (data[0] % 3 == 0)
    tampered(input);
  else
    strange(data[0] % 3 == 1 ? Role::kInitiator : Role::kAcceptor, input);
  return 0;
}
