// Ends this process at a chosen message, for tests in which a rank dies or stops inside a call.
#pragma once

namespace ending {

// Raises SIGKILL or SIGSTOP at once.
[[noreturn]] void end_now(int signal);
// Ends the process when any of its threads is about to send the n-th message from now on (1: the first).
void end_at_message(int n, int signal);
// Calls `what` there instead, on the thread that sends.
void call_at_message(int n, void (*what)());

}  // namespace ending
