// The loopback transport: ranks that are threads of one process, and a rank's messages to itself. The reference of the
// contract in transport.h.
//
// Nothing is copied twice: the receiver copies straight from the sender's pieces, or its view is the sender's memory.
// Ranks find each other on a board (board.h). Both functions may be called from any thread.
#pragma once

#include <memory>

#include "transport/transport.h"

namespace trestle {

Status loopback_probe();
// kInvalidUsage when this process already has an open endpoint of the same job and rank.
Result<std::unique_ptr<Transport>> make_loopback_transport(const EndpointConfig& config);

}  // namespace trestle
