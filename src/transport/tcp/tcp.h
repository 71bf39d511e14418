// The tcp transport: one authenticated connection per pair of ranks, made at first use. See transport.h for the
// contract.
//
// Both functions may be called from any thread. make_tcp_transport opens the listening socket and the epoll descriptor.
#pragma once

#include <memory>

#include "transport/transport.h"

namespace trestle {

// Success, or why tcp cannot be used here: libsodium was not found.
Status tcp_probe();
// kInvalidArgument: no such interface, family or port range; kSystemError: no free port, no descriptors.
Result<std::unique_ptr<Transport>> make_tcp_transport(const EndpointConfig& config);

}  // namespace trestle
