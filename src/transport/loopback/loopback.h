// The loopback transport: ranks that are threads of one process, and a rank's messages to itself. The reference of the
// contract in transport.h.
//
// Nothing is copied twice: the receiver copies straight from the sender's pieces, or its view is the sender's memory.
// Ranks find each other in a registry (registry.h). Both functions may be called from any thread.
#pragma once

#include <functional>
#include <memory>

#include "transport/transport.h"

namespace trestle {

struct LoopbackTransportOptions {
  // close() calls it again and again while peers still read this rank's memory through views. It drives them, so that
  // they hear of the end and give their views back. False: they are not to be waited for any longer. Empty: nobody
  // drives them, and close() waits for a second at most.
  std::function<bool()> drive_peers;
};

Status loopback_probe();
// kInvalidUsage when this process already has an open endpoint of the same job and rank.
Result<std::unique_ptr<Transport>> make_loopback_transport(const EndpointConfig& config,
                                                           LoopbackTransportOptions options = {});

}  // namespace trestle
