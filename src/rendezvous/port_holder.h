// Which program of this host listens at a port, as far as this user may know. For sentences only.
#pragma once

#include <cstdint>
#include <string>

namespace trestle {

// "python3 (pid 12)"; "": nobody listens there, or it is another user's. Reads /proc; any thread.
std::string port_holder(uint16_t port);

}  // namespace trestle
