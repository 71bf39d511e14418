// The end of this process at a chosen message: for tests in which a rank dies or stands still inside a call.
#pragma once

namespace ending {

// SIGKILL or SIGSTOP, at once.
[[noreturn]] void end_now(int signal);
// When the process is about to send its n-th message from now on (1: the first), by any thread.
void end_at_message(int n, int signal);
// Likewise a call of the test's, on the thread that sends.
void call_at_message(int n, void (*what)());

}  // namespace ending
