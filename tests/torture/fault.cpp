#include "torture/fault.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

namespace torture {

int fault_action(const Fault& fault, const Program& program) {
  if (fault.at < 0) return -1;
  return static_cast<int>(fault.at * static_cast<double>(program.actions.size() - 1));
}

void mark_struck(Board& board, int action) {
  board.victim_at = action;
  board.struck = 1;
}

void strike_later(const Fault& fault, Board& board, int action) {
  const int signal = fault.kind == FaultKind::kKill ? SIGKILL : SIGSTOP;
  std::thread([&board, action, signal, rounds = fault.spin] {
    for (std::atomic<uint64_t> i = 0; i < rounds;) i.fetch_add(1, std::memory_order_relaxed);
    mark_struck(board, action);
    kill(getpid(), signal);
  }).detach();
}

}  // namespace torture
