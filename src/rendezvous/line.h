// RendezvousLine: a rank's connection with the rendezvous while it connects to its neighbours. Over it the rendezvous
// reports ranks that fail or die before this rank has a connection with them. The rank reports its own result.
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

  // The failure that the rendezvous has reported, if any; later calls return the same. An orderly end of the rendezvous
  // is no failure: the neighbours' connections suffice from then on.
  Status look();
  // Must be the last call, made once.
  void report(const JoinReport& report);

 private:
  Status fail(Error error);

  UniqueFd socket_;
  const Error lost_;
  std::string in_;
  Error failure_{Code::kSuccess, {}};
};

}  // namespace trestle
