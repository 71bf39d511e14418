// RendezvousLine: a rank's connection with the rendezvous while it connects to its neighbours. Through it the rank
// hears of ranks that fail or die meanwhile and with which it has no connection yet, and says how it went itself.
//
// Owned by the Meeting of join(), on its thread. Nothing blocks. Ending it without report() is what dying looks like.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "rendezvous/message.h"

namespace trestle {

class RendezvousLine {
 public:
  // `socket`: behind the root's first answer. `lost`: the failure if it ends without a word.
  RendezvousLine(UniqueFd socket, Error lost) : socket_(std::move(socket)), lost_(std::move(lost)) {}

  // The failure that the rendezvous has told, if any; the same from then on. A rendezvous that ended in order is
  // missed by nobody: the neighbours' connections have to do.
  Status look();
  // Once, and the last of it.
  void report(const JoinReport& report);

 private:
  Status fail(Error error);

  UniqueFd socket_;
  const Error lost_;
  std::string in_;
  Error failure_{Code::kSuccess, {}};
};

}  // namespace trestle
