// RendezvousLine: a rank's connection with the rendezvous while it connects to its neighbours. Through it the rank
// hears of ranks that fail or die meanwhile and with which it has no connection yet. It also reports its own result.
//
// Owned by the Meeting of join(), on its thread. Nothing blocks. To the rendezvous, a line that ends without report()
// is a rank that died.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "rendezvous/message.h"

namespace trestle {

class RendezvousLine {
 public:
  // `socket`: the root's first answer has been read from it. `lost`: the failure if it closes without a message.
  RendezvousLine(UniqueFd socket, Error lost) : socket_(std::move(socket)), lost_(std::move(lost)) {}

  // The failure that the rendezvous has reported, if any; the same from then on. A rendezvous that ended in order is no
  // failure: the neighbours' connections suffice from then on.
  Status look();
  // To be called once, as the last call.
  void report(const JoinReport& report);

 private:
  Status fail(Error error);

  UniqueFd socket_;
  const Error lost_;
  std::string in_;
  Error failure_{Code::kSuccess, {}};
};

}  // namespace trestle
